"""The table of an evaluation: one row per scheme.

Numbers are means over the runs that count, ± one sample standard deviation. Those that Pantheon's table has, too, are
averaged as there, from the rounded numbers of the statistics files, so that every digit agrees. The CSV has exact ones.
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
"""What published reports have."""

MEASURED: Final = (
    Column("throughput_mbps", "throughput", "Mbit/s", spread(2), better="max", short="Mbit/s"),
    Column("delay_p95_ms", "95th %-ile\ndelay", "ms", spread(2), better="min", short="p95 ms"),
    Column("loss", "loss", "%", spread(2), better="min", short="loss %"),
    Column("utilization", "utilization", "%", spread(1, 100), better="max", short="used %"),
)

JAIN: Final = Column("jain", "Jain's\nindex", "", spread(2), better="max", short="Jain")
"""Of the flows of what is several flows: shown if there is any."""

FRAMES: Final = (
    Column("frame_delay_ms", "frame\ndelay", "ms", spread(1), better="min", short="frame ms"),
    Column("frame_delay_p95_ms", "95th %-ile\nframe delay", "ms", spread(1), better="min", short="p95 frame ms"),
    Column("frame_loss", "frame\nloss", "%", spread(2, 100), better="min", short="frames lost %"),
    Column("bit_rate_mbps", "bit rate", "Mbit/s", spread(2), better="max", short="video Mbit/s"),
)
"""Of schemes that carry video: shown if there are any."""

_PUBLISHED: Final = tuple(
    Column(
        f"published_{one.name}", one.label, one.unit, number(2, 100 if one.unit == "%" else 1), group="published",
        under=one.name,
    )
    for one in MEASURED
    if one.name in PUBLISHED_COLUMNS
)  # fmt: skip

LIMITED_MARK: Final = "‡"
"""Behind schemes whose numbers are partly the machine's own."""

LIMITED_NOTE: Final = (
    f"{LIMITED_MARK} emulator-limited: the machine could not hold the path's schedule in some of these runs"
)

IDENTICAL_MARK: Final = "="
"""Behind the number of runs that were the same packets."""


def evaluation_table(results: ResultSet) -> Table:
    """A row for each scheme that was evaluated, with what was published for it."""
    published = _PUBLISHED if has_published(results) else ()
    frames = _frames(results)
    # A path whose links nothing tells has no capacity, nor what uses it.
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
    """The same in another unit."""
    return replace(spread, mean=spread.mean * factor, std=None if spread.std is None else spread.std * factor)


def _frames(results: ResultSet) -> tuple[Column, ...]:
    shown = any(summary.of_frames(one.name) is not None for summary in results.schemes for one in FRAMES)
    return FRAMES if shown else ()


def has_published(results: ResultSet) -> bool:
    """Whether anything was published for the schemes that were evaluated."""
    return any(summary.published is not None for summary in results.schemes)


def explanation(results: ResultSet) -> str:
    """What the numbers are, below the table of a report."""
    text = (
        "Mean ± one standard deviation over the runs that count. Delay is one-way, per packet, propagation included. "
        "Loss is by bytes; bytes in flight at the end count as lost."
    )
    if _frames(results):
        text += (
            " Frame delay is from the capture of a video frame to the arrival of its last packet; frame loss counts "
            "those that did not arrive whole; bit rate is the encoder's."
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
    """What each of several flows got."""
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
    """What the marks mean, and why rows have no numbers."""
    notes = []
    if any(summary.limited_runs for summary in results.schemes):
        notes.append(LIMITED_NOTE)
    if any(summary.identical_runs for summary in results.schemes):
        runs = int(results.parameters["runs"])
        notes.append(
            f"{IDENTICAL_MARK} {runs} runs, identical packets: nothing random on this path, so one run says as much"
        )
    for summary in results.schemes:
        if summary.unavailable is not None:
            notes.append(f"{summary.style.label}: unavailable: {summary.unavailable}")
    return notes


def markdown(results: ResultSet) -> str:
    """The table with a caption below: it can stand in a README as it is."""
    table = evaluation_table(results)
    return table.markdown() + "\n" + "  \n".join([_caption(results), *table.notes]) + "\n"


def _caption(results: ResultSet) -> str:
    """Path, runs, seed, command and the source of what was published: what a table needs away from its report."""
    parameters = results.parameters
    runs, flows = int(parameters["runs"]), int(parameters["flows"])
    what = f"`{parameters['path_name']}`, {counted(runs, 'run')} of {parameters['runtime_s']:g} s"
    what += f" with {flows} flows" if flows != 1 else ""
    command = results.provenance.get("command")
    what += "" if parameters["seed"] is None else f", seed {parameters['seed']}"
    text = f"{what}, {PLACES[results.backend]}{f': `{command}`' if command else ''}."
    return text + _published_source(results)


def exact_table(results: ResultSet) -> Table:
    """Exact numbers with units in the column names, for CSV; loss and utilization are fractions."""
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
    """What identifies a run: its seed and, in virtual time, the hash of its packets; nothing does of Pantheon's."""
    if cell.record.seed is None:
        return ""
    seed = f"seed {cell.record.seed}"
    return seed if is_real(cell.record.backend) else f"{seed} · trajectory {cell.record.trajectory_hash}"


def clock_text(cell: CellResult) -> str:
    """Of a run between two machines, what their clocks were to one another and how exactly that is known."""
    clocks = (cell.record.path_report or {}).get("clocks")
    if not clocks:
        return ""
    offset, drift, bound = (float(clocks[name]) for name in ("offset_ms", "drift_ppm", "bound_ms"))
    known = (
        f"Clocks: the receiver's was {offset:+.3f} ms against the sender's at the start, and drifted by {drift:+.2f} "
        f"ppm. From the packets alone the offset is known to ±{bound:.3f} ms, half of the shortest round trip; "
    )
    if clocks["applied"] == "ntp":
        return f"{known}the time server's, which lies within, was used."
    measured = clocks.get("ntp_offset_ms")
    refused = "" if measured is None else f", since the time server's, {measured:+.3f} ms, lies outside"
    return f"{known}the middle of that was used{refused}."


def repeatability(results: ResultSet) -> str:
    """In a line, what to expect of the same command again."""
    if results.backend == RECORDED:
        return "read from Pantheon's logs: the same command gives the same numbers"
    if results.real:
        return "real packets in real time: the same command gives other packets; finished runs are kept as they are"
    return f"trajectory {results.trajectory_hash}  (same command, same version: same hash)"
