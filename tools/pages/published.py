"""Tables of measurements in docs/data: published numbers next to ccgym's, cellular links, the league."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from pages.markdown import ROOT, code, decimals, signed, table
from pages.schemes import named
from tests.reproduction import genuine_programs as genuine

Measured = Mapping[str, float]


@cache
def kept_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in docs/data."""
    with (ROOT / f"docs/data/{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


# --- A cellular link -------------------------------------------------------------------------------------------------

LINKS = {
    "verizon-lte": "Verizon LTE",
    "tmobile-lte": "T-Mobile LTE",
    "tmobile-lte-driving": "T-Mobile LTE, driving",
}
"""The links of the experiment ``cellular``, and their names on pages."""
CELLULAR = {
    f"{name}{suffix}": (f"cellular{file}", link)
    for link, name in LINKS.items()
    for file, suffix in {"": "", "-emulated": ", emulated"}.items()
}
"""The columns of ccgym's results: heading, then file and link."""


def measured_cellular(row: Mapping[str, str], file: str, link: str) -> Measured | None:
    """Return ccgym's means of a published scheme over a link; None if it was not run."""
    key = row["scheme"].replace(":", "_").replace("=", "_")
    found = {
        one["metric"]: float(one["mean"])
        for one in kept_rows(file)
        if (one["scheme"], one["condition"]) == (key, f"link={link}") and one["mean"]
    }
    return found or None


def three(throughput: object, delay: object, loss: object) -> str:
    """Return a cell with throughput in Mbit/s, delay in ms and loss in percent."""
    return f"{float(str(throughput)):.2f} / {float(str(delay)):.0f} / {float(str(loss)):.2f}"


def cellular(columns: Mapping[str, tuple[str, str]], *, reasons: bool) -> list[str]:
    """Return Pantheon's published means over a cellular link, and ccgym's over recorded links."""
    rows: list[Sequence[str]] = []
    for row in kept_rows("pantheon-cellular"):
        given = [row[name] for name in QUANTITIES]
        found = [measured_cellular(row, *column) for column in columns.values()]
        cells = ["–" if m is None else three(m["throughput"], m["delay_p95"], 100 * m["loss"]) for m in found]
        cells.insert(0, three(*given) if all(given) else "no run succeeded")
        rows.append((row["label"], *cells, row["note"]) if reasons else (row["label"], code(row["scheme"]), *cells))
    head = ["Published", *columns]
    return table(["", *head, "Why they differ"] if reasons else ["", "Ours", *head], rows)


def cellular_places() -> list[str]:
    """Return the ranks of the schemes by throughput and by delay, among the common schemes."""
    both = [
        row for row in kept_rows("pantheon-cellular")
        if row["delay_p95_ms"] and measured_cellular(row, *CELLULAR["Verizon LTE"])
    ]  # fmt: skip

    def places(values: Sequence[tuple[float, float] | None]) -> list[str]:
        known = [one for one in values if one is not None]
        return [
            "–" if one is None else f"{1 + sum(x[0] > one[0] for x in known)} / {1 + sum(x[1] < one[1] for x in known)}"
            for one in values
        ]

    shown = [places([(float(row["throughput_mbps"]), float(row["delay_p95_ms"])) for row in both])]
    for column in CELLULAR.values():
        found = [measured_cellular(row, *column) for row in both]
        shown.append(places([None if m is None else (m["throughput"], m["delay_p95"]) for m in found]))
    rows = [(row["label"], *own) for row, own in zip(both, zip(*shown, strict=True), strict=True)]
    return table(["", "Published", *CELLULAR], rows)


# --- Published figures -----------------------------------------------------------------------------------------------

QUANTITIES = {"throughput_mbps": (0.05, True), "delay_p95_ms": (2.0, False), "loss_percent": (1.0, False)}
"""Minimum difference, as in ``ccgym compare backends``: throughput relative, delay in ms, loss in points."""
COLUMNS = {"77.72mbps": "Simulated", "77.72mbps-emulated": "Emulated"}
"""ccgym's results on the report's path."""


def published_runs(run: str = "") -> list[dict[str, str]]:
    """Return the report's runs, or the row of its means."""
    return [row for row in kept_rows("pantheon-77.72mbps") if (row["run"] == "mean") == (run == "mean")]


def our_runs(results: str, scheme: str) -> list[Measured]:
    """Return throughput, delay and loss of ccgym's runs."""
    rows = [row for row in kept_rows("published-runs") if (row["results"], row["scheme"]) == (results, scheme)]
    factors = {"throughput_mbps": 1, "delay_p95_ms": 1, "loss": 100}
    return [dict(zip(QUANTITIES, (by * float(row[n]) for n, by in factors.items()), strict=True)) for row in rows]


def means(runs: Sequence[Measured]) -> Measured:
    """Return the mean of each quantity; empty without a run."""
    return {name: statistics.fmean(run[name] for run in runs) for name in QUANTITIES} if runs else {}


def differs(published: Mapping[str, str], ours: Measured) -> bool:
    """Return whether any quantity differs from the published value by at least the minimum difference."""
    return any(
        abs(ours[name] - float(published[name])) > limit * (float(published[name]) if relative else 1)
        for name, (limit, relative) in QUANTITIES.items()
    )


def run_cell(row: Mapping[str, float | str]) -> str:
    """Return a cell with throughput, delay and loss."""
    if not row:
        return "–"
    throughput, delay, loss = (float(row[name]) for name in QUANTITIES)
    return f"{throughput:.2f} / {delay:.1f} / {loss:.2f}"


def report() -> list[str]:
    """Return the table of the report on 77.72mbps."""
    rows = []
    for row in published_runs("mean"):
        found = [our_runs(results, row["scheme"]) for results in COLUMNS]
        found.append(our_runs("77.72mbps-emulated", "tcp_bbr") if row["scheme"] == "bbr" else [])
        cells = [run_cell(means(runs)) + (f" ({len(runs)})" if runs else "") for runs in found]
        rows.append((row["label"], run_cell(row), *cells, row["note"]))
    return table(["", "Published (5)", *(f"{name} (runs)" for name in COLUMNS.values()), "The kernel's", "Why"], rows)


def report_runs() -> list[str]:
    """Return every run of the report, and every emulated run of ccgym."""
    rows = []
    for row in published_runs():
        own, number = our_runs("77.72mbps-emulated", row["scheme"]), int(row["run"])
        rows.append((row["label"], number, run_cell(row), run_cell(own[number - 1] if number <= len(own) else {})))
    return table(["", "Run", "Published", "Emulated"], rows)


def expectations() -> dict[tuple[str, str], dict[str, str]]:
    """Return the results of the tests of published numbers."""
    return {(row["test"], row["what"]): row for row in kept_rows("expectations")}


def specifications() -> list[str]:
    """Return numbers of papers and specifications, and ccgym's numbers."""
    known = expectations()
    rows = []
    for row in kept_rows("published"):
        found = known[row["test"], row["what"]]
        expected, ours, tolerance = (float(found[name]) for name in ("expected", "found", "tolerance"))
        rows.append((
            row["scheme"], row["quantity"], row["setting"], row["source"], f"{expected:.4g}", f"{ours:.4g}",
            signed(ours / expected - 1, 1), f"± {100 * tolerance:.2g} %", code(row["test"].partition("::")[2]),
            row["note"],
        ))  # fmt: skip
    head = ["", "Quantity", "Setting", "Published in", "Published", "Ours", "Off", "Asserted", "Test", "Why"]
    return table(head, rows)


def windows() -> list[str]:
    """Return Indigo's published best windows, and the results of ccgym's search."""
    rows = [
        (code(row["path"]), row["published"], row["window"], signed(int(row["window"]) / int(row["published"]) - 1))
        for row in kept_rows("../../traces/best_windows")
        if row["published"]
    ]
    return table(["Path", "Published", "Ours", "Off"], rows)


def curriculum() -> list[str]:
    """Return the gain in reward of Genet over uniform training."""
    found = {row["name"]: row for row in kept_rows("genet")}
    pair = [found[name] for name in ("genet", "genet_uniform")]
    gain = float(pair[0]["mean"]) / float(pair[1]["mean"]) - 1
    seeds = " and ".join(str(len(row["seeds"].split(";"))) for row in pair) + " seeds"
    rows = [("reward of the curriculum over that of uniform training", "14 to 24 % more", signed(gain), seeds)]
    return table(["", "Published", "Ours", "Of"], rows)


# --- The league ------------------------------------------------------------------------------------------------------

SECTIONS = {
    "ccbench_single": "One flow",
    "ccbench_cubic": "With Cubic",
    "cellular": "Cellular",
    "genet_rl3": "RL3",
    "prudentia": "Prudentia",
}
"""The sections of the league, and their names on its page."""


def league_of(section: str) -> dict[str, dict[str, str]]:
    """Return the ranking of a section of the league, by scheme, from best to worst."""
    return {row["scheme"]: row for row in kept_rows("league") if row["section"] == section}


def league() -> list[str]:
    """Return the league's ranking over all sections, with the rating in each section."""
    parts = {name: league_of(name) for name in SECTIONS}
    rows = [
        (row["rank"], named(scheme), decimals(row["rating"]),
         f"[{decimals(row['rating_low'])}, {decimals(row['rating_high'])}]",
         *(decimals(part.get(scheme, {}).get("rating", "")) for part in parts.values()),
         decimals(parts["ccbench_single"].get(scheme, {}).get("worst", "")))
        for scheme, row in league_of("all").items()
    ]  # fmt: skip
    return table(["", "", "Rating", "95 %", *SECTIONS.values(), "Worst tenth, one flow"], rows)


def league_games() -> list[str]:
    """Return winning rates among all schemes, in percent: with ccBench's rounding / without."""
    both = [league_of(name) for name in ("ccbench_single", "ccbench_cubic")]
    order = sorted(both[0], key=lambda one: -float(both[0][one]["winning_rate"] or -1))
    keys = ("winning_rate", "winning_rate_exact")
    rows = [
        (named(scheme), *(decimals(part[scheme][key], 1, 100) for part in both for key in keys))
        for scheme in order
        if both[0][scheme]["winning_rate"] and scheme in both[1]
    ]
    return table(["", "One flow", "exact", "With Cubic", "exact"], rows)


def league_published(section: str) -> list[str]:
    """Return published winning rates and ccgym's among the same schemes, in percent."""
    rows = [
        (row["label"] + (f" for {row['instead']}" if row["instead"] else ""),
         *(decimals(row[key], 1, 100) for key in ("published", "as_published", "exact")))
        for row in kept_rows("league-published")
        if row["section"] == section
    ]  # fmt: skip
    return table(["", "Published", "Ours, as published", "Ours, exact"], rows)


def league_weights() -> list[str]:
    """Return the rank of each scheme by the weight of the throughput."""
    known = {scheme: row for scheme, row in league_of("all").items() if row["weight_1"]}
    weights = [name for name in kept_rows("league")[0] if name.startswith("weight_")]
    order = sorted(known, key=lambda one: int(known[one]["weight_1"]))
    rows = [(named(scheme), *(known[scheme][weight] for weight in weights)) for scheme in order]
    return table(["", *(name.replace("weight_", "w = ") for name in weights)], rows)


# --- External programs next to ours ---------------------------------------------------------------------------------


def recorder(name: str) -> Any:
    """Return a module of tests/differential/record."""
    folder = str(ROOT / "tests" / "differential" / "record")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def shells() -> list[str]:
    """Return recorded results of mahimahi's shell and ccgym's with the same packets."""
    record_shell = recorder("record_shell")
    summary = json.loads(gzip.decompress(record_shell.SUMMARY.read_bytes()))
    return str(record_shell.table(summary["cases"])).splitlines()


def real_path() -> list[str]:
    """Return recorded results of simulator, emulated path and mahimahi on the same paths."""
    return str(recorder("record_real_path").table()).splitlines()


def programs() -> list[str]:
    """Return medians of throughput, 95th percentile of delay, and loss of the reports' programs and ccgym's schemes."""

    def cell(runs: tuple[genuine.Run, ...]) -> str:
        throughput, delay, loss = (genuine.middle(runs, name) for name in ("throughput_mbps", "delay_p95_ms", "loss"))
        return f"{throughput:.2f} / {delay:.0f} / {100 * loss:.1f}"

    rows = []
    for program in genuine.PROGRAMS:
        for path in genuine.PATHS:
            of_program, emulated, simulated = genuine.compared(program, path).values()
            beyond, why = genuine.BEYOND.get((program, path), ("", ""))
            cells = (cell(of_program) + f" ({len(of_program)})", cell(emulated), cell(simulated))
            rows.append((named(program), path, *cells, beyond.replace(" ", ", "), why))
    return table(["Scheme", "Path", "Program (runs)", "Ours, emulated", "Ours, simulated", "Beyond", "Why"], rows)


BLOCKS = {
    "docs/studies/cellular.md": {
        "cellular": partial(cellular, CELLULAR, reasons=True),
        "cellular-places": cellular_places,
    },
    "docs/studies/published.md": {
        "published-report": report,
        "published-runs": report_runs,
        "published-cellular": partial(
            cellular, {name: CELLULAR[name] for name in (*LINKS.values(), "Verizon LTE, emulated")}, reasons=False
        ),
        "published-specifications": specifications,
        "published-windows": windows,
        "published-genet": curriculum,
    },
    "docs/studies/league.md": {
        "league": league,
        "league-games": league_games,
        "league-single": partial(league_published, "ccbench_single"),
        "league-cubic": partial(league_published, "ccbench_cubic"),
        "league-weights": league_weights,
    },
    "docs/studies/validation.md": {
        "shells": shells,
        "programs": programs,
        "real-path": real_path,
    },
}
