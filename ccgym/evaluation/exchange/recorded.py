"""A run with its packets, as input for other formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ccgym.errors import ConfigError, ResultsError, did_you_mean, shown
from ccgym.evaluation.kept_series import read_series
from ccgym.evaluation.metrics import IntArray, PacketLog
from ccgym.evaluation.pantheon.directory import PantheonDirectory, RunFiles
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.results_file import has_results
from ccgym.evaluation.run_record import RunRecord, series_table
from ccgym.units import TimeLike

End: TypeAlias = Literal["sender", "receiver"]
"""Where packets are captured."""

LOST: Final = -1
"""Departure time of a packet that did not leave the path."""

ROUNDING_NS: Final = 2_000
"""Maximum difference of the times of one packet in a log: both times are rounded to microseconds."""


@dataclass(frozen=True)
class Packets:
    """Packets of a direction, in order of entering."""

    flow: IntArray
    """Flow number, from 1."""
    number: IntArray
    """Number of the packet in its flow, from 0."""
    entered_ns: IntArray
    left_ns: IntArray
    """Departure time, nanoseconds; :data:`LOST` if the packet did not leave."""
    size: IntArray
    """Size of the IP packet, bytes."""

    @classmethod
    def of(cls, flow: IntArray, entered_ns: IntArray, left_ns: IntArray, size: IntArray) -> Packets:
        """Return the packets sorted and numbered."""
        order = np.argsort(entered_ns, kind="stable")
        flow = flow[order]
        number = np.zeros(flow.size, dtype=np.int64)
        for one in np.unique(flow):
            own = flow == one
            number[own] = np.arange(np.count_nonzero(own))
        return cls(flow, number, entered_ns[order], left_ns[order], size[order])

    @classmethod
    def of_native(cls, packets: Mapping[str, npt.NDArray[Any]]) -> Packets:
        """Return the packets of the native core's arrays; their largest number (never left) becomes -1."""
        entered, left = (np.asarray(packets[name]).astype(np.int64) for name in ("entered_ns", "left_ns"))
        return cls.of(np.asarray(packets["flow"]).astype(np.int64) + 1, entered, left, packets["size"].astype(np.int64))

    @classmethod
    def of_log(cls, log: PacketLog) -> Packets:
        """Return the packets of a log. It contains the delay of a packet that left, but not which entered packet it
        was. If several packets match, the first is taken."""
        left = np.full(log.arrival_ns.size, LOST)
        began = log.departure_ns - log.delay_ns
        for flow in np.unique(log.arrival_flow):
            ours, theirs = np.flatnonzero(log.arrival_flow == flow), np.flatnonzero(log.departure_flow == flow)
            for size in np.unique(log.arrival_bytes[ours]):
                entered = ours[log.arrival_bytes[ours] == size]
                gone = theirs[log.departure_bytes[theirs] == size]
                entered = entered[np.argsort(log.arrival_ns[entered], kind="stable")]
                gone = gone[np.argsort(began[gone], kind="stable")]
                place = 0
                for one in gone:
                    while place < entered.size and log.arrival_ns[entered[place]] < began[one] - ROUNDING_NS:
                        place += 1
                    if place < entered.size:
                        left[entered[place]] = log.departure_ns[one]
                        place += 1
        return cls.of(log.arrival_flow, log.arrival_ns, left, log.arrival_bytes)

    @property
    def arrived(self) -> npt.NDArray[np.bool_]:
        """Which packets left the path."""
        return np.asarray(self.left_ns != LOST)

    def table(self) -> dict[str, Any]:
        """Return the columns of ``RunRecord.to_pandas("packets")``."""
        left = np.where(self.arrived, self.left_ns, np.nan)
        return {
            "flow": self.flow,
            "entered_s": self.entered_ns / 1e9,
            "left_s": left / 1e9,
            "one_way_delay_ms": (left - self.entered_ns) / 1e6,
            "size_bytes": self.size,
        }


@dataclass(frozen=True)
class Recorded:
    """A run with its packets."""

    name: str
    """Name such as ``bbr_run1``."""
    schemes: tuple[str, ...]
    """The scheme of each flow."""
    duration_s: float
    started_epoch_s: float
    data: Packets
    acks: Packets | None = None
    """ACKs; None if they were not recorded."""
    series: Mapping[str, Any] | None = None
    """Columns of ``RunRecord.to_pandas("series")``; None without series."""

    @classmethod
    def of(cls, record: RunRecord, *, name: str = "run", step: TimeLike | None = None) -> Recorded:
        """Return a run directly from the simulator or a real path.

        Args:
            record: The run's record, with packets.
            name: Name of the run.
            step: Length of the intervals of the series; by default the recorded sampling interval.

        Raises:
            ResultsError: The record contains no packets, or no ACKs.
        """
        if record.native is None or record.metrics is None:
            raise ResultsError(
                "not-recorded",
                "this record contains no packets",
                expected="a record directly from simulate(), with packets",
                hint="records that were read from JSON have numbers only: run it again",
            )
        try:
            acks = record.native.packets("ack")
        except RuntimeError:
            raise ResultsError(
                "not-recorded",
                "this record contains no ACKs",
                expected="a run with recorded ACKs",
                hint="run simulate(..., record=ccgym.Record(acks=True))",
            ) from None
        return cls(
            name=name,
            schemes=tuple(flow.scheme for flow in record.flows),
            duration_s=record.duration_s,
            started_epoch_s=record.started_epoch_s,
            data=Packets.of_native(record.native.packets("data")),
            acks=Packets.of_native(acks) if len(acks["flow"]) else None,
            series=None if record.series is None else series_table(record, step),
        )

    @classmethod
    def of_files(cls, directory: PantheonDirectory, files: RunFiles) -> Recorded | None:
        """Return a run from the logs in a results directory of ccgym or Pantheon; None without a log of its data."""
        log, acks = files.read(), files.read("acklink")
        if log is None:
            return None
        data = Packets.of_log(log)
        cells = ResultSet.load(directory.path).cells if has_results(directory.path) else ()
        cell = next((one for one in cells if (one.scheme, one.run) == (files.scheme, files.run)), None)
        series = None if cell is None else read_series(directory.path, cell)
        schemes = (files.scheme,) * int(data.flow.max(initial=1))
        if series is not None:
            schemes = tuple(dict(zip(series["flow"], series["scheme"], strict=True)).values())
        return cls(
            name=f"{files.scheme}_run{files.run}",
            schemes=schemes,
            duration_s=float(max(log.arrival_ns.max(initial=0), log.departure_ns.max(initial=0))) / 1e9,
            started_epoch_s=files.statistics.started_epoch_s or 0.0,
            data=data,
            acks=None if acks is None else Packets.of_log(acks),
            series=series,
        )

    def check_flow(self, flow: int) -> None:
        """Raise :class:`ConfigError` if there is no flow with this number."""
        if not 1 <= flow <= len(self.schemes):
            raise ConfigError(
                "out-of-range", str(flow), where="flow", expected=f"a number from 1 to {len(self.schemes)}"
            )


def chosen_run(directory: PantheonDirectory, wanted: str | None) -> RunFiles:
    """Return the run that a text such as ``bbr:2`` names; without a text, the only run with packet logs.

    Raises:
        ConfigError: There is no such run, or there are several runs and no text.
        ResultsError: There are no packet logs.
    """
    known = {f"{run.scheme}:{run.run}": run for run in directory.runs if "datalink" in run.logs}
    if not known:
        raise ResultsError(
            "not-recorded",
            "there are no packet logs",
            where=str(directory.path),
            expected="logs such as cubic_datalink_run1.log",
            hint="`ccgym logs` writes the logs of existing runs",
        )
    if wanted is None and len(known) == 1:
        return next(iter(known.values()))
    key = wanted if wanted is None or ":" in wanted else f"{wanted}:1"
    if key not in known:
        raise ConfigError(
            "unknown-name",
            "no run is named" if key is None else shown(key),
            where="--run",
            expected=_several(list(known)),
            hint=did_you_mean(key, known) if key is not None else "",
        )
    return known[key]


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
