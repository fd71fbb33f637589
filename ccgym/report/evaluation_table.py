"""The table of an evaluation: one row per scheme.

Numbers are means over the runs that count, ± one sample standard deviation. Numbers that Pantheon's table has, too, are
averaged in the same way, from the rounded numbers of the statistics files: all digits agree. The CSV has exact numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ccgym.evaluation.backends import PLACES, RECORDED, is_real
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import CellResult, SchemeSummary
from ccgym.evaluation.spread import Spread
from ccgym.report.table import Column, Row, Table, counted, number, spread

PUBLISHED_COLUMNS: Final = ("throughput_mbps", "delay_p95_ms", "loss")
"""Columns of published reports."""

MEASURED: Final = (
    Column("throughput_mbps", "throughput", "Mbit/s", spread(2), better="max", short="Mbit/s"),
    Column("delay_p95_ms", "95th %-ile\ndelay", "ms", spread(2), better="min", short="p95 ms"),
    Column("loss", "loss", "%", spread(2), better="min", short="loss %"),
    Column("utilization", "utilization", "%", spread(1, 100), better="max", short="used %"),
)

JAIN: Final = Column("jain", "Jain's\nindex", "", spread(2), better="max", short="Jain")
"""Fairness among the flows of a scheme: shown if any scheme has several flows."""

FRAMES: Final = (
    Column("frame_delay_ms", "frame\ndelay", "ms", spread(1), better="min", short="frame ms"),
    Column("frame_delay_p95_ms", "95th %-ile\nframe delay", "ms", spread(1), better="min", short="p95 frame ms"),
    Column("frame_loss", "frame\nloss", "%", spread(2, 100), better="min", short="frames lost %"),
    Column("bit_rate_mbps", "bit rate", "Mbit/s", spread(2), better="max", short="video Mbit/s"),
)
"""Columns of schemes that carry video: shown if there are any."""

_PUBLISHED: Final = tuple(
    Column(
        f"published_{one.name}", one.label, one.unit, number(2, 100 if one.unit == "%" else 1), group="published",
        under=one.name,
    )
    for one in MEASURED
    if one.name in PUBLISHED_COLUMNS
)  # fmt: skip

LIMITED_MARK: Final = "‡"
"""Mark after schemes whose numbers partly depend on the machine's speed."""

LIMITED_NOTE: Final = (
    f"{LIMITED_MARK} emulator-limited: the machine could not keep the path's schedule in some of these runs"
)

IDENTICAL_MARK: Final = "="
"""Mark after the number of runs if all runs had identical packets."""


def evaluation_table(results: ResultSet) -> Table:
    """Return a row for each evaluated scheme, with the published numbers of the scheme."""
    published = _PUBLISHED if has_published(results) else ()
    frames = _frames(results)
    # If the links of a path are unknown, there is no capacity, and no utilization.
    used = any(summary.utilization is not None for summary in results.schemes) or not results.cells
    measured = MEASURED if used else tuple(one for one in MEASURED if one.name != "utilization")
    mixed = results.parameters.get("contenders") or {}
    shared = (JAIN,) if any(summary.style.key in mixed and summary.jain for summary in results.schemes) else ()
    head = Column("scheme", "scheme", align="left"), Column("runs", "runs")
    rows = []
    for summary in results.schemes:
        rows.append(_row(summary))
        rows += _flow_rows(summary) if summary.style.key in mixed else []
    return Table(
        columns=[*head, *measured, *shared, *frames, *published],
        rows=rows,
        notes=_notes(results),
        legend="p95: 95th percentile of the one-way delay" + ("; used: fraction of the capacity" if used else ""),
        kind="stack",
    )


def scaled(spread: Spread, factor: float) -> Spread:
    """Return the spread in another unit."""
    return replace(spread, mean=spread.mean * factor, std=None if spread.std is None else spread.std * factor)


def _frames(results: ResultSet) -> tuple[Column, ...]:
    shown = any(summary.of_frames(one.name) is not None for summary in results.schemes for one in FRAMES)
    return FRAMES if shown else ()


def has_published(results: ResultSet) -> bool:
    """Return whether there are published numbers of the evaluated schemes."""
    return any(summary.published is not None for summary in results.schemes)


def explanation(results: ResultSet) -> str:
    """Return the explanation of the numbers below the table of a report."""
    text = (
        "Mean ± one standard deviation over the runs that count. Delay is one-way, per packet, propagation included. "
        "Loss is by bytes; bytes in flight at the end count as lost."
    )
    if _frames(results):
        text += (
            " Frame delay is from the capture of a video frame to the arrival of its last packet; frame loss counts "
            "frames that did not arrive completely; bit rate is the rate of the encoder."
        )
    return text + _published_source(results)


def _published_source(results: ResultSet) -> str:
    return f" Published: {results.published_source}." if has_published(results) else ""


def _row(summary: SchemeSummary) -> Row:
    valid, total = len(summary.valid_runs), len(summary.runs)
    runs = f"{valid}" if valid == total else f"{valid} of {total}"
    values: dict[str, Any] = {
        "scheme": summary.style.label + (f" {LIMITED_MARK}" if summary.limited_runs else ""),
        "runs": runs + (f" {IDENTICAL_MARK}" if summary.identical_runs else ""),
        "utilization": summary.utilization,
        "jain": summary.jain,
        **{name: summary.as_printed(name) for name in PUBLISHED_COLUMNS},
        **{one.name: summary.of_frames(one.name) for one in FRAMES},
    }
    if summary.unavailable is not None:
        values["runs"] = "unavailable"
    if summary.published is not None:
        values |= {f"published_{name}": getattr(summary.published, name) for name in PUBLISHED_COLUMNS}
    return Row(values)


def _flow_rows(summary: SchemeSummary) -> list[Row]:
    """Return a row for each flow if there are several flows."""
    flows = summary.flows if len(summary.flows) > 1 else ()
    return [
        Row(
            {
                "scheme": f"  flow {flow.number}: {flow.scheme}",
                "runs": "",
                "throughput_mbps": flow.throughput_mbps,
                "delay_p95_ms": flow.delay_p95_ms,
                "loss": flow.loss and scaled(flow.loss, 100),
            },
            tone="muted",
        )
        for flow in flows
    ]


def _notes(results: ResultSet) -> list[str]:
    """Return the meaning of the marks, and why rows have no numbers."""
    notes = []
    if any(summary.limited_runs for summary in results.schemes):
        notes.append(LIMITED_NOTE)
    if any(summary.identical_runs for summary in results.schemes):
        runs = int(results.parameters["runs"])
        notes.append(
            f"{IDENTICAL_MARK} {runs} runs, identical packets: nothing is random on this path, so one run is enough"
        )
    for summary in results.schemes:
        if summary.unavailable is not None:
            notes.append(f"{summary.style.label}: unavailable: {summary.unavailable}")
    return notes


def markdown(results: ResultSet) -> str:
    """Return the table with a caption below, ready for a README."""
    table = evaluation_table(results)
    return table.markdown() + "\n" + "  \n".join([_caption(results), *table.notes]) + "\n"


def _caption(results: ResultSet) -> str:
    """Return path, runs, seed, command and the source of published numbers, for a table outside of its report."""
    parameters = results.parameters
    runs, flows = int(parameters["runs"]), int(parameters["flows"])
    what = f"`{parameters['path_name']}`, {counted(runs, 'run')} of {parameters['runtime_s']:g} s"
    what += f" with {flows} flows" if flows != 1 else ""
    command = results.provenance.get("command")
    what += "" if parameters["seed"] is None else f", seed {parameters['seed']}"
    text = f"{what}, {PLACES[results.backend]}{f': `{command}`' if command else ''}."
    return text + _published_source(results)


def exact_table(results: ResultSet) -> Table:
    """Return exact numbers for CSV, with units in the column names; loss and utilization are fractions."""
    rows = [Row(_exact(summary, results)) for summary in results.schemes]
    return Table([Column(name, name) for name in (rows[0].values if rows else ())], rows)


def _exact(summary: SchemeSummary, results: ResultSet) -> dict[str, Any]:
    values: dict[str, Any] = {
        "scheme": summary.style.key,
        "label": summary.style.label,
        "runs": len(summary.runs),
        "valid_runs": len(summary.valid_runs),
        "identical_runs": summary.identical_runs,
    }
    if results.real:
        values |= {"limited_runs": len(summary.limited_runs), "unavailable": summary.unavailable}
    for name in [one.name for one in (*MEASURED, *_frames(results))]:
        found = getattr(summary, name) if hasattr(summary, name) else summary.of_frames(name)
        values |= {f"{name}_mean": found and found.mean, f"{name}_std": found and found.std}
    return values | {f"published_{name}": getattr(summary.published, name, None) for name in PUBLISHED_COLUMNS}


def run_facts(cell: CellResult) -> str:
    """Return the seed of a run and, in virtual time, the hash of its packets; empty for runs of Pantheon."""
    if cell.record.seed is None:
        return ""
    seed = f"seed {cell.record.seed}"
    return seed if is_real(cell.record.backend) else f"{seed} · trajectory {cell.record.trajectory_hash}"


def clock_text(cell: CellResult) -> str:
    """Return the offset of the clocks of a run between two machines, and how exactly it is known."""
    clocks = (cell.record.path_report or {}).get("clocks")
    if not clocks:
        return ""
    offset, drift, bound = (float(clocks[name]) for name in ("offset_ms", "drift_ppm", "bound_ms"))
    known = (
        f"Clocks: the receiver's clock minus the sender's was {offset:+.3f} ms at the start, and drifted by "
        f"{drift:+.2f} ppm. From the packets alone, the offset is known to ±{bound:.3f} ms, half of the min RTT; "
    )
    if clocks["applied"] == "ntp":
        return f"{known}the time server's offset is in this range, and was used."
    measured = clocks.get("ntp_offset_ms")
    refused = "" if measured is None else f", since the time server's offset, {measured:+.3f} ms, lies outside"
    return f"{known}the middle of this range was used{refused}."


def repeatability(results: ResultSet) -> str:
    """Return a line on the results of running the same command again."""
    if results.backend == RECORDED:
        return "read from Pantheon's logs: the same command gives the same numbers"
    if results.real:
        return "real packets in real time: the same command gives other packets; finished runs are kept"
    return f"trajectory {results.trajectory_hash}  (same command, same version: same hash)"
