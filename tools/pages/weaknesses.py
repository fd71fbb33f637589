"""docs/weaknesses.md."""

from __future__ import annotations

import statistics

from ccgym.config.yaml_loader import parse_yaml
from pages.data import agents
from pages.markdown import ROOT, code, percent, table


def stress_tests() -> list[str]:
    """What each stress test is, in the order of the page."""
    folder = ROOT / "configs/experiments"
    names = parse_yaml((folder / "weaknesses.yaml").read_text(), "weaknesses.yaml").data["include"]
    tests = [parse_yaml((folder / name).read_text(), name).data for name in names]
    rows = [(test["title"], test["setting"], test["threshold"], test["source"]) for test in tests]
    return table(["Test", "Setting", "Passes", "After"], rows)


def training_seeds() -> list[str]:
    """The spread of every agent's score over the seeds of its training."""
    rows = []
    for name, recorded in agents("seeds.json").items():
        scores = [one["confirmed_fraction"] for one in recorded["seeds"]]
        low, middle, high = min(scores), statistics.median(scores), max(scores)
        fresh = recorded["confirmation"]
        best = max((value, scheme) for scheme, value in fresh["fraction_of_oracle"].items() if scheme != "oracle")
        chosen = "chosen" if recorded["exported"].get("asked_for") else "median"
        exported = next(one for one in recorded["seeds"] if one["seed"] == recorded["exported"]["seed"])
        rows.append(
            (code(name), len(scores), *map(percent, (low, middle, high)), f"{100 * statistics.stdev(scores):.1f}",
             f"{percent(exported['confirmed_fraction'])}, {chosen}",
             f"{percent(best[0])} ({best[1]})", fresh["episodes"])
        )  # fmt: skip
    head = ["", "Seeds", "Minimum", "Median", "Maximum", "Deviation, points", "The one that comes along"]
    return table([*head, "Best baseline", "Fresh draws"], rows)


BLOCKS = {"docs/weaknesses.md": {"stress-tests": stress_tests, "training-seeds": training_seeds}}
