"""docs/published.md: published figures next to ours, with a reason where they differ."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from pages.cellular import LINKS, measured_cellular, numbers, published_cellular
from pages.data import kept_rows
from pages.markdown import code, table

QUANTITIES = {"throughput_mbps": (0.05, True), "delay_p95_ms": (2.0, False), "loss_percent": (1.0, False)}
"""What counts as a difference, as in ``ccgym compare backends``: throughput relative, delay in ms, loss in points."""


def published_runs(run: str = "") -> list[dict[str, str]]:
    """The report's runs, or the row of its means."""
    return [row for row in kept_rows("pantheon-77.72mbps") if (row["run"] == "mean") == (run == "mean")]


def our_runs(results: str, scheme: str) -> list[dict[str, float]]:
    """Throughput, delay and loss of our runs."""
    return [
        {
            "throughput_mbps": float(row["throughput_mbps"]),
            "delay_p95_ms": float(row["delay_p95_ms"]),
            "loss_percent": 100 * float(row["loss"]),
        }
        for row in kept_rows("published-runs")
        if row["results"] == results and row["scheme"] == scheme
    ]


def means(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each quantity; nothing without a run."""
    return {name: statistics.fmean(run[name] for run in runs) for name in QUANTITIES} if runs else {}


def differs(published: Mapping[str, str], ours: Mapping[str, float]) -> bool:
    """Whether any quantity is further from the published one than counts."""
    return any(
        abs(ours[name] - float(published[name])) > limit * (float(published[name]) if relative else 1)
        for name, (limit, relative) in QUANTITIES.items()
    )


def three(row: Mapping[str, float | str]) -> str:
    """Throughput, delay and loss in a cell."""
    if not row:
        return "–"
    throughput, delay, loss = (float(row[name]) for name in QUANTITIES)
    return f"{throughput:.2f} / {delay:.1f} / {loss:.2f}"


COLUMNS = {"77.72mbps": "Simulated", "77.72mbps-emulated": "Emulated"}
"""Our results on the report's path."""


def report() -> list[str]:
    """The table of the report on 77.72mbps."""
    rows = []
    for row in published_runs("mean"):
        found = [our_runs(results, row["scheme"]) for results in COLUMNS]
        if row["scheme"] == "bbr":
            found.append(our_runs("77.72mbps-emulated", "tcp_bbr"))
        cells = [three(means(runs)) + (f" ({len(runs)})" if runs else "") for runs in found]
        rows.append((row["label"], three(row), *cells[:2], *(cells[2:] or ["–"]), row["note"]))
    return table(["", "Published (5)", *(f"{name} (runs)" for name in COLUMNS.values()), "The kernel's", "Why"], rows)


def report_runs() -> list[str]:
    """Every run of the report, and every emulated one of ours."""
    ours = {row["scheme"]: our_runs("77.72mbps-emulated", row["scheme"]) for row in published_runs("mean")}
    rows = []
    for row in published_runs():
        own = ours[row["scheme"]]
        number = int(row["run"])
        rows.append((row["label"], number, three(row), three(own[number - 1]) if number <= len(own) else "–"))
    return table(["", "Run", "Published", "Emulated"], rows)


def cellular_report() -> list[str]:
    """The table of the cellular report, all its schemes."""
    columns = {**{name: ("cellular", link) for link, name in LINKS.items()},
               "Verizon LTE, emulated": ("cellular-emulated", "verizon-lte")}  # fmt: skip
    rows = []
    for row in published_cellular():
        found = [measured_cellular(row, *column) for column in columns.values()]
        cells = ["–" if m is None else numbers(m["throughput"], m["delay_p95"], 100 * m["loss"]) for m in found]
        published = numbers(*(row[name] for name in QUANTITIES)) if row["throughput_mbps"] else "no run succeeded"
        rows.append((row["label"], code(row["scheme"]), published, *cells))
    return table(["", "Ours", "Published", *columns], rows)


def expectations() -> dict[tuple[str, str], dict[str, str]]:
    """What the tests of published numbers found."""
    return {(row["test"], row["what"]): row for row in kept_rows("expectations")}


def specifications() -> list[str]:
    """Numbers of papers and specifications, and what ours does."""
    known = expectations()
    rows = []
    for row in kept_rows("published"):
        found = known[row["test"], row["what"]]
        expected, ours = float(found["expected"]), float(found["found"])
        off = f"{100 * (ours / expected - 1):+.1f} %".replace("-", "−")
        tolerance = f"± {100 * float(found['tolerance']):.2g} %"
        test = code(row["test"].partition("::")[2])
        rows.append((row["scheme"], row["quantity"], row["setting"], row["source"], f"{expected:.4g}", f"{ours:.4g}",
                     off, tolerance, test, row["note"]))  # fmt: skip
    head = ["", "Quantity", "Setting", "Published in", "Published", "Ours", "Off", "Asserted", "Test", "Why"]
    return table(head, rows)


def windows() -> list[str]:
    """Indigo's published best windows, and those that ccgym's search finds."""
    with_published = [row for row in kept_rows("../../traces/best_windows") if row["published"]]
    rows = [
        (code(row["path"]), row["published"], row["window"],
         f"{100 * (int(row['window']) / int(row['published']) - 1):+.0f} %".replace("-", "−"))
        for row in with_published
    ]  # fmt: skip
    return table(["Path", "Published", "Ours", "Off"], rows)


def curriculum() -> list[str]:
    """Genet against uniform training: the gain in reward."""
    found = {row["name"]: row for row in kept_rows("genet")}
    gain = float(found["genet"]["mean"]) / float(found["genet_uniform"]["mean"]) - 1
    rows = [("reward of the curriculum over that of uniform training", "14 to 24 % more",
             f"{100 * gain:+.0f} %".replace("-", "−"), f"{len(found['genet']['seeds'].split(';'))} and "
             f"{len(found['genet_uniform']['seeds'].split(';'))} seeds")]  # fmt: skip
    return table(["", "Published", "Ours", "Of"], rows)


BLOCKS = {
    "docs/published.md": {
        "published-report": report,
        "published-runs": report_runs,
        "published-cellular": cellular_report,
        "published-specifications": specifications,
        "published-windows": windows,
        "published-genet": curriculum,
    }
}
