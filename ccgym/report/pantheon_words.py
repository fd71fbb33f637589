"""Texts of Pantheon's report, in its words and order, for the page, the PDF and the titles of figures.

Words: StanfordSNR/pantheon @23e738c, ``src/analysis/report.py`` and ``plot.py``, and the two published reports.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ccgym.config.hosts import Hosts
from ccgym.evaluation.backends import RECORDED
from ccgym.evaluation.pantheon import utc_text
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.report.table import Column, Row, Table, counted, number

_TESTED: Final[Mapping[str, str]] = {
    "sim": "Tested in the simulator:",
    "emulated": "Tested over the emulated path, with real packets:",
    "mahimahi": "Tested in mahimahi, with real packets:",
    RECORDED: "Tested in mahimahi:",
}
_TITLED: Final[Mapping[str, str]] = {
    "sim": "simulated test of",
    "emulated": "emulated test of",
    "mahimahi": "test in mahimahi of",
}
"""Start of the titles of figures by backend; the path's name follows."""

NOT_AVAILABLE: Final = "N/A"


def generated() -> str:
    """Return a line with the time of the report."""
    return f"Generated at {utc_text(time.time())} (UTC)."


def tested(results: ResultSet) -> tuple[str, str]:
    """Return where the schemes were tested: a phrase, and the path unless the phrase names it."""
    hosts = _hosts(results)
    if hosts is not None:
        return f"Data path: {hosts.text}.", ""
    return _TESTED[results.backend], str(results.provenance["path"])


def _hosts(results: ResultSet) -> Hosts | None:
    """Return the two machines of a test, Pantheon's or ccgym's; None for a test over a described path."""
    return Hosts.of_metadata(results.parameters.get("pantheon") or {})


def repeated(results: ResultSet) -> list[str]:
    """Return lines with the number and length of the tests."""
    parameters = results.parameters
    flows, seconds = int(parameters["flows"]), parameters["runtime_s"]
    apart = f" with {parameters['interval_s']:g}s interval between two flows" if flows > 1 else ""
    said = [
        f"Repeated the test of {counted(len(results.styles), 'congestion control scheme')} "
        f"{counted(int(parameters['runs']), 'time')}.",
        f"Each test lasted for {seconds:g} seconds running {counted(flows, 'flow')}{apart}.",
    ]
    hosts = _hosts(results)
    applied = sum("clock_offsets_ms" in (cell.record.path_report or {}) for cell in results.cells)
    if hosts is not None and hosts.ntp_addr and applied:
        where = "" if applied == len(results.cells) else f" of {applied} of {len(results.cells)} runs"
        said.append(
            f"NTP offsets were measured against {hosts.ntp_addr} and have been applied to correct the timestamps in "
            f"logs{where}."
        )
    return said


def system_info(results: ResultSet) -> list[str]:
    """Return kernel and settings of the machine of the flows; for simulations, which use no kernel, the machine."""
    reports = (cell.record.path_report or {} for cell in results.cells)
    found: Sequence[str] | None = next((report["system"] for report in reports if report.get("system")), None)
    return list(found or [str(results.provenance["system"])])


def git_summary(results: ResultSet) -> list[str]:
    """Return the version of ccgym, and the loaded policies, Python classes and programs with their hashes."""
    lines = str(results.provenance.get("git") or "").splitlines()
    for name, what in (results.provenance.get("policies") or {}).items():
        known = what if isinstance(what, Mapping) else {}
        digest = next((str(known[key]) for key in ("digest", "sha256", "policy_sha256", "version") if key in known), "")
        lines.append(f"{name} @ {digest}" if digest else str(name))
    return lines


def figure_title(results: ResultSet, what: str) -> str:
    """Return the title of a figure of an evaluation; it begins with ``what`` the figure shows."""
    parameters = results.parameters
    apart = (
        f", {parameters['flows']} flows with {parameters['interval_s']:g}s interval between two flows"
        if parameters["flows"] > 1
        else ""
    )
    times = f"{counted(int(parameters['runs']), 'run')} of {parameters['runtime_s']:g}s each per scheme"
    return f"{what}\n{_where(results)}, {times}{apart}"


def _where(results: ResultSet) -> str:
    hosts = _hosts(results)
    if hosts is not None:
        return f"test from {hosts.title}"
    if results.backend == RECORDED:
        return "local test in mahimahi"
    return f"{_TITLED[results.backend]} {results.parameters['path_name']}"


def flow_table(results: ResultSet) -> Table:
    """Return means over the runs per flow, from the rounded numbers of the statistics files, as in Pantheon's table."""
    flows = range(1, 1 + max((len(cell.record.flows) for cell in results.cells), default=1))
    columns = [Column("scheme", "scheme", align="left"), Column("runs", "# runs")]
    for name, label in _FLOW_COLUMNS.items():
        columns += [Column(f"{name}{flow}", f"{label}\nflow {flow}", "") for flow in flows]
    rows = []
    for summary in results.schemes:
        values: dict[str, Any] = {"scheme": summary.style.label, "runs": str(len(summary.valid_runs))}
        for name in _FLOW_COLUMNS:
            for flow in flows:
                mean = summary.flow_as_printed(name, flow)
                values[f"{name}{flow}"] = NOT_AVAILABLE if mean is None else f"{mean:.2f}"
        rows.append(Row(values))
    return Table(columns=columns, rows=rows)


_FLOW_COLUMNS: Final = {
    "throughput_mbps": "mean avg tput\n(Mbit/s)",
    "delay_p95_ms": "mean 95th-%ile\ndelay (ms)",
    "loss": "mean loss rate\n(%)",
}


def published_table(results: ResultSet) -> Table | None:
    """Return every published run of the evaluated schemes; None if no report has them."""
    rows = [
        Row({"scheme": one.published.label, "run": number, "throughput": throughput, "delay": delay, "loss": loss})
        for one in results.schemes
        if one.published is not None
        for number, (throughput, delay, loss) in enumerate(one.published.each, start=1)
    ]
    return Table(columns=_PUBLISHED, rows=rows) if rows else None


_PUBLISHED: Final = (
    Column("scheme", "scheme", align="left"),
    Column("run", "run"),
    Column("throughput", "throughput", "Mbit/s", number(2)),
    Column("delay", "95th %-ile\ndelay", "ms", number(3)),
    Column("loss", "loss", "%", number(2, 100)),
)


def statistics_title(cell: CellResult, label: str) -> str:
    """Return the heading of a run's numbers."""
    return f"Run {cell.run}: Statistics of {label}"


def figures_title(cell: CellResult, label: str, link: str) -> str:
    """Return the heading of a run's figures; ``link`` is Pantheon's name of a direction."""
    return f"Run {cell.run}: Report of {label} — {'Data' if link == 'datalink' else 'ACK'} Link"
