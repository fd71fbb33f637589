"""The record of one run, and its tables with one row per flow, per interval and flow, or per packet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from ccgym.config.display import sparklines
from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.evaluation.capacity import LinkCapacity
from ccgym.evaluation.ccperf_metrics import UNLIMITED, CcperfMetrics
from ccgym.evaluation.curves import RunCurves
from ccgym.evaluation.frames import packet_table, to_frame, write_csv
from ccgym.evaluation.metrics import PacketLog, PantheonMetrics
from ccgym.evaluation.run_numbers import SERIES_COLUMNS, FlowRecord, RunNumbers
from ccgym.schemes.style import FLOW_COLORS
from ccgym.units import NS_PER_S, TimeLike, format_time, parse_positive_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ccgym._core import SimResult

FORMAT: Final = "ccgym-run"
FORMAT_VERSION: Final = 1


@dataclass(frozen=True)
class RunRecord(RunNumbers):
    """One run: parameters, results per flow, and, while in memory, its packets and series.

    ``print(run)`` prints the results; :meth:`to_pandas`, :meth:`to_csv` and :meth:`plot` show details. :meth:`to_json`
    writes only the numbers, without ``packets``, ``series`` and ``native``: these are None in a record that was read
    from JSON.
    """

    capacity: LinkCapacity | None = field(default=None, repr=False, compare=False)
    """Capacity of the bottleneck over time; None without a bottleneck."""
    series: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    """Sampled series, if recorded. ``t_ns``: sampling times. ``flows``: per flow, at these times, ``cwnd_bytes``,
    ``in_flight_bytes``, ``srtt_ns`` (0 before the first sample) and ``pacing_bps`` (0: not paced); for schemes with
    states, ``state``, an index into their names ``states``; and the totals so far:
    ``sent_bytes``, ``sent_packets``, ``acked_bytes``, ``lost_packets``, ``received_bytes``, ``received_unique_bytes``
    (payload, each byte once) and ``read_bytes`` (payload that can be read, without a gap before it). ``link``:
    ``queue_packets``, ``queue_bytes``, and the total ``drops``. With several links, ``links`` has the same by name for
    each link that carries data. Bytes are of IP packets, unless they are payload. ``to_pandas("series")`` has rates
    instead of totals."""
    native: SimResult | None = field(default=None, repr=False, compare=False)
    """The native result; logs are written from it."""
    started_epoch_s: float = field(default=0.0, repr=False, compare=False)
    """Start in an evaluation, seconds since the epoch. In virtual time, its runs follow one another."""

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        drawn = [] if self._recorded is None else self.curves().flows
        curves = [(color, one.egress_mbps.tolist()) for color, one in zip(FLOW_COLORS, drawn, strict=False)]
        return self.html(sparklines(curves, "throughput of each flow over time (Mbit/s)") if curves else "")

    @cached_property
    def packets(self) -> PacketLog | None:
        """The packets of the data direction, if recorded and in memory: arrays ``arrival_ns``, ``arrival_bytes``,
        ``arrival_flow`` of packets that entered the path; ``departure_ns``, ``departure_bytes``, ``departure_flow``,
        ``delay_ns`` of packets that left it; flows from 1. ``to_pandas("packets")`` has one row per packet.
        """
        recorded = self._recorded
        return None if recorded is None else PacketLog.from_packets(recorded.packets("data"), len(self.flows))

    @property
    def _recorded(self) -> SimResult | None:
        """The native result, if it contains packets."""
        return None if self.metrics is None else self.native

    @property
    def limited(self) -> str | None:
        """Reason why the machine could not hold a real path's schedule; None if it could, and in the simulator."""
        return (self.path_report or {}).get("limited") or None

    @property
    def total(self) -> PantheonMetrics:
        """Pantheon's numbers for all flows together."""
        if self.metrics is None:
            raise _not_recorded("packets")
        return self.metrics.total

    def ccperf(self) -> CcperfMetrics:
        """Return ccperf's flow, link and network metrics."""
        if self.ccperf_tables is None:
            raise _not_recorded("series")
        return self.ccperf_tables

    def curves(self) -> RunCurves:
        """Return throughput per 500 ms and delay per packet, as in Pantheon's figures of a run.

        Returns:
            ``bin_s``, the width of a bin; ``capacity_mbps``, a value per bin; ``flows``, with ``ingress_mbps`` and
            ``egress_mbps`` (a value per bin) and the points ``delay_time_s``, ``delay_ms`` of each.

        Raises:
            ResultsError: The record contains no packets.
        """
        if self._recorded is None:
            raise _not_recorded("packets")
        return RunCurves.of_run(self._recorded, self.capacity, round(self.duration_s * 1e9))

    def to_pandas(
        self, table: Literal["flows", "series", "packets"] = "flows", step: TimeLike | None = None
    ) -> pd.DataFrame:
        """Return a table of the run as a data frame; ``docs/reference/results.md`` lists the columns with their units.

        Args:
            table: ``"flows"``: one row per flow; ``"series"``: one row per interval and flow; ``"packets"``: one row
                per data packet.
            step: Length of the intervals of the series; by default the recorded sampling interval, 10 ms.

        Raises:
            ConfigError: There is no such table, or ``step`` is not a multiple of the recorded sampling interval.
            PlatformError: pandas is not installed.
            ResultsError: The record contains no series, or no packets.
        """
        if table == "flows":
            return to_frame(flow_table(self))
        if table == "series":
            return to_frame(series_table(self, step))
        if table == "packets":
            if self._recorded is None:
                raise _not_recorded("packets")
            return to_frame(packet_table(self._recorded.packets("data")))
        raise ConfigError("unknown-choice", shown(table), where="table", expected="'flows', 'series' or 'packets'")

    def to_csv(self, file: str | os.PathLike[str], step: TimeLike | None = None) -> None:
        """Write the series as CSV, one row per interval and flow: the table ``"series"`` of :meth:`to_pandas`.

        Args:
            file: The file.
            step: Length of the intervals, as in :meth:`to_pandas`.

        Raises:
            ConfigError: ``step`` is not a multiple of the recorded sampling interval.
            ResultsError: The record contains no series, or the file cannot be written.
        """
        write_csv(file, series_table(self, step))

    def plot(self, file: str | os.PathLike[str] | None = None) -> Figure:
        """Draw throughput and one-way delay over time, a color per flow.

        Args:
            file: The file to save it to: ``.png``, ``.svg`` or ``.pdf``. By default it is not saved.

        Returns:
            The matplotlib figure; its two axes are ``figure.axes``. A notebook shows it.

        Raises:
            ConfigError: matplotlib does not support the suffix of the file.
            PlatformError: matplotlib is not installed, or the file cannot be written.
            ResultsError: The record contains no packets.
        """
        from ccgym import plot_run  # drawing is in a higher layer, reached through the package

        return plot_run(self, file)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data; :meth:`from_dict` is the inverse."""
        return {**_NUMBERS.dump_python(self, mode="json", by_alias=True), "format": FORMAT, "version": FORMAT_VERSION}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunRecord:
        """Return the record of plain data from :meth:`as_dict`; raise :class:`ResultsError` if the data are damaged."""
        if data.get("format") != FORMAT or data.get("version") != FORMAT_VERSION:
            raise ResultsError(
                "results-version",
                f"format {shown(data.get('format'))}, version {shown(data.get('version'))}",
                expected=f"format {FORMAT!r}, version {FORMAT_VERSION}",
                hint="run it again with this version of ccgym",
            )
        try:
            numbers = _NUMBERS.validate_python(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ResultsError(
                "results-damaged",
                f"the record is damaged: {place}: {first['msg']}",
                expected="what RunRecord.to_json wrote",
                hint="run it again",
            ) from error
        return cls(**vars(numbers))

    def to_json(self, indent: int | None = None) -> str:
        """Return the numbers as JSON."""
        return json.dumps(self.as_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str) -> RunRecord:
        """Return the record of JSON from :meth:`to_json`; raise :class:`ResultsError` if the JSON is damaged."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ResultsError(
                "results-damaged", f"not JSON: {error}", expected="what RunRecord.to_json wrote", hint="run it again"
            ) from error
        return cls.from_dict(data)


_NUMBERS: Final = TypeAdapter(RunNumbers)


def _not_recorded(what: str) -> ResultsError:
    return ResultsError(
        "not-recorded",
        f"this record contains no {what}",
        expected="a record directly from simulate(), or from simulate_many(..., keep=True)",
        hint=f"run it again with {what} in its Record(...); records that were read from JSON have numbers only",
    )


def flow_table(record: RunRecord) -> dict[str, Any]:
    """Return one row per flow: its number and the fields of its :class:`FlowRecord`."""
    names = [item.name for item in fields(FlowRecord)]
    return {
        "flow": list(range(1, len(record.flows) + 1)),
        **{name: [getattr(flow, name) for flow in record.flows] for name in names},
    }


def series_table(record: RunRecord, step: TimeLike | None = None) -> dict[str, Any]:
    """Return one row per interval and flow, ordered by time: :data:`SERIES_COLUMNS`.

    Args:
        record: A run with its series.
        step: Length of the intervals, a multiple of the recorded sampling interval, which is the default. A shorter
            rest at the end of the run is left out.

    Raises:
        ConfigError: ``step`` is not such a multiple.
        ResultsError: The record contains no series.
    """
    if record.series is None:
        raise _not_recorded("series")
    times: npt.NDArray[np.int64] = np.asarray(record.series["t_ns"]).astype(np.int64)
    spacing = int(times[0]) if times.size else 1
    step_ns = spacing if step is None else parse_positive_time(step)
    every = step_ns // spacing
    if step_ns % spacing:
        raise ConfigError(
            "out-of-range",
            f"a step of {format_time(step_ns)}",
            where="step",
            expected=f"a multiple of {format_time(spacing)}, the sampling interval of the recorded series",
        )
    ends = times[every - 1 :: every]
    return _interleaved(
        [
            {
                **_flow_series(record, place, every, ends, step_ns / NS_PER_S),
                **_queue_series(record, place, every, ends.size),
            }
            for place in range(len(record.series["flows"]))
        ]
    )


def logged_series(log: PacketLog, schemes: Sequence[str], duration_ns: int, step_ns: int) -> dict[str, Any]:
    """Return the table of :func:`series_table` for a run with known packets only; other columns have no values.

    Args:
        log: The packets of the data direction, at least one. The run begins at the first event of the log.
        schemes: Names of the flows' schemes, in order of the flows in the log.
        duration_ns: Length of the table, nanoseconds.
        step_ns: Length of the intervals, nanoseconds.
    """
    ends: npt.NDArray[np.int64] = np.arange(1, duration_ns // step_ns + 1, dtype=np.int64) * step_ns
    on_clock = ends + log.origin_ns
    unknown = dict.fromkeys(SERIES_COLUMNS, np.full(ends.size, np.nan))

    def rate(times: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        place = np.searchsorted(on_clock, times, side="left")
        inside = place < ends.size
        found = np.bincount(place[inside], weights=sizes[inside], minlength=ends.size)
        return np.asarray(found * (8000 / step_ns), dtype=np.float64)

    def table(place: int, number: int) -> dict[str, Any]:
        part = log.of_flow(number)
        return {
            **unknown,
            "time_s": ends / NS_PER_S,
            "flow": np.full(ends.size, place + 1),
            "scheme": np.full(ends.size, schemes[place], dtype=object),
            "throughput_mbps": rate(part.departure_ns, part.departure_bytes),
            "sending_rate_mbps": rate(part.arrival_ns, part.arrival_bytes),
            **_delays_ms(part.departure_ns, part.delay_ns, on_clock),
        }

    return _interleaved([table(place, number) for place, number in enumerate(log.flows)])


def _interleaved(tables: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, Any]:
    """Return the tables of flows as one table."""
    # Ordered by time, then by flow: a plot per flow needs one group-by, and the file is readable in order of time.
    return {name: np.stack([table[name] for table in tables], axis=1).ravel() for name in SERIES_COLUMNS}


def _queue_series(record: RunRecord, place: int, every: int, count: int) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a flow's bottleneck."""
    assert record.series is not None
    name = record.flows[place].bottleneck
    samples_of_link = record.series.get("links", {}).get(name, record.series["link"])
    if record.link.capacity_mbps is None or record.backend == "mahimahi":
        return dict.fromkeys(("queue_packets", "queue_max_packets", "dropped_packets"), np.full(count, np.nan))
    link = {name: np.asarray(values).astype(np.int64) for name, values in samples_of_link.items()}
    samples = link["queue_packets"][: count * every].reshape(count, every)
    return {
        "queue_packets": samples.mean(axis=1),
        "queue_max_packets": samples.max(axis=1),
        "dropped_packets": np.diff(link["drops"][every - 1 :: every], prepend=0),
    }


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

    left, delays = (ends[:0], ends[:0]) if record._recorded is None else record._recorded.departures(place)
    srtt, window, pacing = level("srtt_ns", 1e6), level("cwnd_bytes"), level("pacing_bps", 1e6)
    return {
        "time_s": ends / NS_PER_S,
        "flow": np.full(ends.size, place + 1),
        "scheme": np.full(ends.size, flow.scheme, dtype=object),
        "throughput_mbps": rate("received_bytes"),
        "goodput_mbps": rate("received_unique_bytes"),
        "sending_rate_mbps": rate("sent_bytes"),
        **_delays_ms(left, delays, ends),
        "srtt_ms": np.where(srtt > 0, srtt, np.nan),
        "cwnd_bytes": np.where(begun & (window < UNLIMITED), window, np.nan),
        "in_flight_bytes": np.where(begun, level("in_flight_bytes"), np.nan),
        "pacing_rate_mbps": np.where(begun & (pacing > 0), pacing, np.nan),
        "lost_packets": change("lost_packets").astype(np.int64),
        "state": _states(series, every, begun),
    }


def _states(series: Mapping[str, Any], every: int, begun: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    if "state" not in series:
        return np.full(begun.size, np.nan)
    names = np.array(series["states"], dtype=object)[np.asarray(series["state"])[every - 1 :: every].astype(np.int64)]
    return np.where(begun, names, np.nan)


def _delays_ms(
    times: npt.NDArray[np.int64], delays_ns: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return mean and range of the one-way delays of the packets that left in each interval, its end included."""
    mean, low, high = (np.full(ends.size, np.nan) for _ in range(3))
    if ends.size:
        delays = delays_ns / 1e6
        if np.all(times[1:] >= times[:-1]):
            last = np.searchsorted(times, ends, side="right")
        else:  # packets were reordered
            place = np.searchsorted(ends, times, side="left")
            order = np.argsort(place, kind="stable")
            delays, last = delays[order], np.searchsorted(place[order], np.arange(ends.size), side="right")
        counts = np.diff(last, prepend=0)
        there = counts > 0
        if there.any():
            delays, first = delays[: last[-1]], (last - counts)[there]
            mean[there] = np.add.reduceat(delays, first) / counts[there]
            low[there] = np.minimum.reduceat(delays, first)
            high[there] = np.maximum.reduceat(delays, first)
    return {"one_way_delay_ms": mean, "one_way_delay_min_ms": low, "one_way_delay_max_ms": high}
