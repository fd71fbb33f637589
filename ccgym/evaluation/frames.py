"""Results as tables: one row per flow, per interval and flow, or per packet.

A table is a mapping of column names to columns of equal length. It becomes a pandas data frame or CSV; pandas is
imported only where a frame is asked for. What is not known is NaN in a frame and an empty cell in CSV.
``docs/results.md`` is made from the tables of columns here and from the fields of
:class:`~ccgym.evaluation.run_record.FlowRecord`.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ccgym.errors import ConfigError, PlatformError, ResultsError
from ccgym.evaluation.ccperf_metrics import UNLIMITED
from ccgym.evaluation.metrics import NEVER, PacketLog
from ccgym.units import NS_PER_S, TimeLike, format_time, parse_positive_time

if TYPE_CHECKING:
    import pandas as pd

    from ccgym.evaluation.run_record import RunRecord

Table: TypeAlias = Mapping[str, "Sequence[Any] | npt.NDArray[Any]"]
"""Columns of equal length, by name."""

FLOW_COLUMN: Final = {"flow": "number of the flow, from 1, in the order in which flows were given"}
"""What stands before the fields of a :class:`FlowRecord` in the table of flows."""

SERIES_COLUMNS: Final[Mapping[str, str]] = {
    "time_s": "end of the interval, seconds since the start of the run",
    **FLOW_COLUMN,
    "scheme": "name of its congestion-control scheme",
    "throughput_mbps": "IP packets that reached the receiver in the interval, Mbit/s (10⁶ bits)",
    "goodput_mbps": "payload that reached the receiver for the first time in the interval, Mbit/s",
    "sending_rate_mbps": "IP packets that the sender sent in the interval, retransmissions included, Mbit/s",
    "one_way_delay_ms": "mean one-way delay of the packets that left the path in the interval, ms; missing if none did,"
    " or if no packets were recorded",
    "srtt_ms": "smoothed round-trip time at the end of the interval, ms; missing before the first sample",
    "cwnd_bytes": "congestion window at the end of the interval, bytes of IP packets; missing before the flow starts,"
    " and where there is none",
    "in_flight_bytes": "sent and not yet acknowledged or declared lost at the end of the interval, bytes of IP packets;"
    " missing before the flow starts",
    "pacing_rate_mbps": "pacing rate at the end of the interval, Mbit/s; missing where packets are not paced",
    "lost_packets": "packets that the sender declared lost in the interval",
}
"""Columns of the table of series, one row per interval and flow."""

PACKET_COLUMNS: Final[Mapping[str, str]] = {
    **FLOW_COLUMN,
    "entered_s": "when the packet entered the path, seconds since the start of the run",
    "left_s": "when it left the path, seconds; missing for one that was lost or still on its way at the end",
    "one_way_delay_ms": "time between the two, ms: propagation and queueing",
    "size_bytes": "length of the IP packet, bytes",
}
"""Columns of the table of packets: those of the data direction, one row each, in the order in which they entered."""


def flow_table(record: RunRecord) -> dict[str, Any]:
    """One row per flow: its number and the fields of its :class:`FlowRecord`."""
    from ccgym.evaluation.run_record import FlowRecord

    names = [item.name for item in fields(FlowRecord)]
    return {
        "flow": list(range(1, len(record.flows) + 1)),
        **{name: [getattr(flow, name) for flow in record.flows] for name in names},
    }


def series_table(record: RunRecord, step: TimeLike | None = None) -> dict[str, Any]:
    """One row per interval and flow, in order of time: :data:`SERIES_COLUMNS`.

    Args:
        record: A run with its series.
        step: Length of the intervals, a multiple of the spacing of the recorded series, which is the default. What is
            left at the end of the run is left out.

    Raises:
        ConfigError: ``step`` is not such a multiple.
        ResultsError: The record holds no series.
    """
    if record.series is None:
        raise ResultsError(
            "this record holds no series",
            expected="a record straight from simulate(), or from simulate_many(..., keep=True)",
            hint="records that were read from JSON hold numbers only; so do runs with Record(series=0)",
        )
    times: npt.NDArray[np.int64] = np.asarray(record.series["t_ns"]).astype(np.int64)
    spacing = int(times[0]) if times.size else 1
    step_ns = spacing if step is None else parse_positive_time(step)
    every = step_ns // spacing
    if step_ns % spacing:
        raise ConfigError(
            f"a step of {format_time(step_ns)}",
            where="step",
            expected=f"a multiple of {format_time(spacing)}, the spacing of the recorded series",
        )
    ends = times[every - 1 :: every]
    tables = [
        _flow_series(record, place, every, ends, step_ns / NS_PER_S) for place in range(len(record.series["flows"]))
    ]
    # By time, then by flow: a plot per flow is a group-by, and the file can be read from the top.
    return {name: np.stack([table[name] for table in tables], axis=1).ravel() for name in SERIES_COLUMNS}


def _flow_series(
    record: RunRecord, place: int, every: int, ends: npt.NDArray[np.int64], step_s: float
) -> dict[str, npt.NDArray[Any]]:
    assert record.series is not None
    series, flow = record.series["flows"][place], record.flows[place]
    begun = ends > flow.start_s * NS_PER_S

    def level(name: str, unit: float = 1.0) -> npt.NDArray[np.float64]:
        return np.asarray(series[name][every - 1 :: every], dtype=np.float64) / unit

    def change(name: str) -> npt.NDArray[np.float64]:
        return np.diff(level(name), prepend=0.0)

    def rate(name: str) -> npt.NDArray[np.float64]:
        return np.asarray(change(name) * 8 / 1e6 / step_s)

    srtt, window, pacing = level("srtt_ns", 1e6), level("cwnd_bytes"), level("pacing_bps", 1e6)
    return {
        "time_s": ends / NS_PER_S,
        "flow": np.full(ends.size, place + 1),
        "scheme": np.full(ends.size, flow.scheme, dtype=object),
        "throughput_mbps": rate("received_bytes"),
        "goodput_mbps": rate("received_unique_bytes"),
        "sending_rate_mbps": rate("sent_bytes"),
        "one_way_delay_ms": _mean_delay_ms(record.packets, place + 1, ends),
        "srtt_ms": np.where(srtt > 0, srtt, np.nan),
        "cwnd_bytes": np.where(begun & (window < UNLIMITED), window, np.nan),
        "in_flight_bytes": np.where(begun, level("in_flight_bytes"), np.nan),
        "pacing_rate_mbps": np.where(begun & (pacing > 0), pacing, np.nan),
        "lost_packets": change("lost_packets").astype(np.int64),
    }


def _mean_delay_ms(packets: PacketLog | None, flow: int, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Mean one-way delay of the packets that left in each interval, which its end belongs to."""
    if packets is None or not ends.size:
        return np.full(ends.size, np.nan)
    log = packets.of_flow(flow)
    place = np.searchsorted(ends, log.departure_ns, side="left")
    inside = place < ends.size
    counts = np.bincount(place[inside], minlength=ends.size)
    sums = np.bincount(place[inside], weights=log.delay_ns[inside], minlength=ends.size)
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1) / 1e6, np.nan), dtype=np.float64)


def packet_table(record: RunRecord) -> dict[str, Any]:
    """One row per data packet: :data:`PACKET_COLUMNS`.

    Raises:
        ResultsError: The record holds no packets.
    """
    if record.packets is None or record.native is None:
        raise ResultsError(
            "this record holds no packets",
            expected="a record straight from simulate(), or from simulate_many(..., keep=True)",
            hint="records that were read from JSON hold numbers only; so do runs with Record(packets=False)",
        )
    packets = record.native.packets("data")
    entered = packets["entered_ns"].astype(np.float64)
    left = np.where(packets["left_ns"] == NEVER, np.nan, packets["left_ns"].astype(np.float64))
    return {
        "flow": packets["flow"].astype(np.int64) + 1,
        "entered_s": entered / NS_PER_S,
        "left_s": left / NS_PER_S,
        "one_way_delay_ms": (left - entered) / 1e6,
        "size_bytes": packets["size"].astype(np.int64),
    }


def to_frame(table: Table) -> pd.DataFrame:
    """A table as a pandas data frame.

    Raises:
        PlatformError: pandas is not installed.
    """
    pandas = import_pandas()
    # None becomes NaN in columns of numbers; a column without any number is one of numbers, too.
    columns = {
        name: np.array(column, dtype=np.float64) if any(value is None for value in column) else column
        for name, column in table.items()
    }
    return pandas.DataFrame(columns)


def import_pandas() -> Any:
    """The module pandas; :class:`PlatformError` where it is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise PlatformError(
            f"pandas cannot be imported ({error})",
            expected="pandas, which only data frames need",
            hint="pip install 'ccgym[pandas]'; to_csv() and to_json() do without",
        ) from None
    return pandas


def to_csv(table: Table) -> str:
    """A table as CSV: a line of names, then the rows; numbers with up to nine digits, nothing where none is known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*([_cell(value) for value in column] for column in table.values()), strict=True))
    return text.getvalue()


def write_csv(file: str | os.PathLike[str], table: Table) -> None:
    """Write a table as CSV; :class:`ResultsError` where that cannot be done."""
    try:
        Path(file).write_text(to_csv(table), encoding="utf-8")
    except OSError as error:
        raise ResultsError(
            f"cannot be written: {error.strerror}", where=os.fspath(file), expected="a file in a folder that exists"
        ) from None


def _cell(value: Any) -> Any:
    if isinstance(value, float):  # numpy's, too
        return "" if math.isnan(value) else f"{value:.9g}"
    return value  # csv writes None as nothing
