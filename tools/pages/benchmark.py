"""docs/benchmark.md: what every scheme came to in the catalogue."""

from __future__ import annotations

from collections import Counter

from ccgym.experiments.catalogue import load_catalogue
from ccgym.experiments.load import load_experiment
from ccgym.schemes.reading import parse_scheme
from pages.data import kept_rows
from pages.markdown import code, decimals, table

_NAMED = 6
"""Up to so many schemes are named that alone pass, or alone fail."""


def _judged(part: str) -> bool:
    return any(row["verdict"] != "none" for row in kept_rows("benchmark") if row["part"] == part)


def _label(scheme: str) -> str:
    return parse_scheme(scheme, "benchmark").style.label


def scoreboard() -> list[str]:
    """Experiments passed in each part that judges, and ratings in leagues, by scheme."""
    parts = load_catalogue().parts
    leagues = [name for name in parts if load_experiment(name, quick=True).kind == "league"]
    judging = [name for name in parts if name not in leagues and _judged(name)]
    schemes = list(dict.fromkeys(row["scheme"] for row in kept_rows("benchmark")))
    verdicts = {(scheme, part): Counter[str]() for scheme in schemes for part in parts}
    ratings: dict[tuple[str, str], str] = {}
    for row in kept_rows("benchmark"):
        verdicts[row["scheme"], row["part"]][row["verdict"]] += row["verdict"] != "none"
        if row["part"] in leagues:
            ratings[row["scheme"], row["part"]] = decimals(row["numbers"].replace("−", "-"))

    def passed(scheme: str, names: list[str]) -> tuple[int, int]:
        found = sum((verdicts[scheme, name] for name in names), Counter[str]())
        return found["pass"], found.total()

    def text(scheme: str, names: list[str]) -> str:
        good, all_of_them = passed(scheme, names)
        return f"{good} of {all_of_them}" if all_of_them else "–"

    head = ["Scheme", "Passed", *map(code, judging), *(code(name.rpartition("/")[2]) for name in leagues)]
    rows = [
        (
            _label(scheme),
            text(scheme, judging),
            *(text(scheme, [name]) for name in judging),
            *(ratings.get((scheme, name), "–") for name in leagues),
        )
        for scheme in sorted(schemes, key=lambda one: (-passed(one, judging)[0], _label(one).lower()))
    ]
    return table(head, rows)


def experiments() -> list[str]:
    """The experiments that judge: how many schemes pass, and which where they are few."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in kept_rows("benchmark"):
        if row["verdict"] != "none":
            by_verdict = found.setdefault((row["part"], row["experiment"]), {})
            by_verdict.setdefault(row["verdict"], []).append(_label(row["scheme"]))
    titles = {
        (part, test.name): test.title
        for part in load_catalogue().parts
        for test in load_experiment(part, quick=True).experiments
    }
    rows = []
    for (part, name), by_verdict in found.items():
        good, others = by_verdict.get("pass", []), [s for v, found in by_verdict.items() if v != "pass" for s in found]
        few = f"only {', '.join(good)}" if 0 < len(good) <= min(_NAMED, len(others)) else ""
        few = few or (f"all but {', '.join(others)}" if 0 < len(others) <= min(_NAMED, len(good)) else "")
        rows.append((code(part), titles[part, name], f"{len(good)} of {len(good) + len(others)}", few))
    return table(["Part", "Experiment", "Passed by", ""], rows)


BLOCKS = {"docs/benchmark.md": {"scoreboard": scoreboard, "passed-by": experiments}}
