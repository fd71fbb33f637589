"""What a run's two figures show, reduced so far that a run can be redrawn without its packets.

Binning is Pantheon's (``src/analysis/tunnel_graph.py`` @23e738c): 500 ms bins counted from the first event of the
log; a bin's value is its bits / 0.5 s. Delays are kept as the occupied cells of a fine grid: a 30 s run at 77.72 Mbit/s
has 200,000 packets but a 12 in wide figure has 1,200 columns, so nothing that can be seen is lost, and a run takes
some tens of kilobytes instead of megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.capacity import LinkCapacity, mean_per_bin_mbps
from ccgym.evaluation.kept_arrays import read_arrays, record
from ccgym.evaluation.metrics import IntArray, PacketLog

BIN_NS: Final = 500_000_000
"""Width of a throughput bin, nanoseconds (Pantheon's 500 ms)."""

TIME_CELLS: Final = 1500
"""Columns of the delay grid over the whole run."""

DELAY_CELLS: Final = 800
"""Rows of the delay grid over the range of delays of one flow."""

_ARRAY: Final = "curves"

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlowCurves:
    """One flow's throughput over time and its per-packet delays."""

    ingress_mbps: FloatArray
    """Mbit/s that entered the path, one value per bin, at the bin's start."""
    egress_mbps: FloatArray
    """Mbit/s that left the path, one value per bin, at the bin's end."""
    delay_time_s: FloatArray
    """Departure times of the delay points, seconds since the first event."""
    delay_ms: FloatArray
    """One-way delays of the delay points, milliseconds."""


_FIELDS: Final = tuple(FlowCurves.__dataclass_fields__)


@dataclass(frozen=True)
class RunCurves:
    """The curves of all flows of a run, and the link's capacity."""

    bin_s: float
    """Width of a bin, seconds."""
    capacity_mbps: FloatArray
    """Capacity per bin, Mbit/s, at the bin's start; empty where it is unknown."""
    flows: tuple[FlowCurves, ...]
    """In order of flow number."""

    @classmethod
    def from_log(cls, log: PacketLog, capacity: LinkCapacity | None = None, duration_ns: int = 0) -> RunCurves:
        """Bin and thin a packet log.

        Args:
            log: the packets of the data direction.
            capacity: the bottleneck's capacity, where the log has no delivery opportunities.
            duration_ns: length of the run, nanoseconds: how far to follow ``capacity``.
        """
        origin = log.origin_ns
        capacity_mbps = np.empty(0, dtype=np.float64)
        if log.opportunity_ns.size:
            capacity_mbps = binned_rate_mbps(log.opportunity_ns, log.opportunity_bytes, origin)
        elif capacity is not None and duration_ns >= BIN_NS:
            # Whole bins only: a last bin cut short by the end of the run would look like a drop of the link's rate.
            edges = np.arange(duration_ns // BIN_NS + 1, dtype=np.int64) * BIN_NS
            capacity_mbps = mean_per_bin_mbps(capacity, edges)
        # What happens at the very end of the run belongs to its last bin, not to one of its own.
        last_bin = (duration_ns - 1) // BIN_NS if duration_ns else None
        flows = []
        for number in log.flows:
            part = log.of_flow(number)
            times, delays = thin(part.departure_ns - origin, part.delay_ns)
            flows.append(
                FlowCurves(
                    ingress_mbps=binned_rate_mbps(part.arrival_ns, part.arrival_bytes, origin, last_bin),
                    egress_mbps=binned_rate_mbps(part.departure_ns, part.departure_bytes, origin, last_bin),
                    delay_time_s=times,
                    delay_ms=delays,
                )
            )
        return cls(bin_s=BIN_NS / 1e9, capacity_mbps=capacity_mbps, flows=tuple(flows))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As they are kept: an array whose fields are the curves, those of all flows one after the other, and the
        ``sizes`` of each field by flow."""
        parts = {name: [getattr(flow, name).astype(np.float32) for flow in self.flows] for name in _FIELDS}
        sizes = [[part.size for part in one] for one in parts.values()]
        fields = {
            "bin_s": np.array(self.bin_s),
            "capacity_mbps": self.capacity_mbps.astype(np.float32),
            "sizes": np.array(sizes, dtype=np.int64),
            **{name: np.concatenate([np.empty(0, np.float32), *one]) for name, one in parts.items()},
        }
        return {_ARRAY: record(fields)}

    @classmethod
    def of_arrays(cls, kept: Mapping[str, npt.NDArray[Any]]) -> RunCurves:
        """The inverse of :meth:`arrays`; the version before kept each curve by itself."""
        arrays: Any = kept.get(_ARRAY, kept)
        if _ARRAY in kept:
            ends = np.cumsum(arrays["sizes"], axis=1)
            begins = ends - arrays["sizes"]
            parts = [
                [arrays[n][b:e] for b, e in zip(*at, strict=True)] for n, *at in zip(_FIELDS, begins, ends, strict=True)
            ]
        else:
            parts = [[arrays[f"flow{k}_{name}"] for k in range(1, int(arrays["flows"]) + 1)] for name in _FIELDS]
        flows = tuple(FlowCurves(*(one.astype(np.float64) for one in flow)) for flow in zip(*parts, strict=True))
        return cls(float(arrays["bin_s"]), arrays["capacity_mbps"].astype(np.float64), flows)

    @classmethod
    def load(cls, file: Path) -> RunCurves:
        """Read the curves that an evaluation kept of a run; :class:`ResultsError` where that cannot be done."""
        return read_arrays(file, cls.of_arrays)


def binned_rate_mbps(times_ns: IntArray, sizes: IntArray, origin_ns: int, last_bin: int | None = None) -> FloatArray:
    """Mbit/s per 500 ms bin, from the bin that holds ``origin_ns`` to the last one that holds an event.

    Args:
        times_ns: times of the events, nanoseconds.
        sizes: their sizes, bytes.
        origin_ns: where the first bin begins.
        last_bin: index of the last bin; events after it are counted in it.
    """
    if times_ns.size == 0:
        return np.empty(0, dtype=np.float64)
    bins = (times_ns - origin_ns) // BIN_NS
    if last_bin is not None:
        bins = np.minimum(bins, last_bin)
    bytes_per_bin = np.bincount(bins, weights=sizes)
    return np.asarray(bytes_per_bin * (8 * 1000 / BIN_NS), dtype=np.float64)


def thin(times_ns: IntArray, delays_ns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Points (seconds, milliseconds), one per occupied cell of the grid, at the cell's center.

    So a point is off by at most 1/1600 of the range of delays and 1/3000 of the run: less than half a pixel.
    """
    if times_ns.size == 0:
        empty = np.empty(0, dtype=np.float64)
        return empty, empty
    low, high = int(delays_ns.min()), int(delays_ns.max())
    last = int(times_ns.max())
    time_cell = last // TIME_CELLS + 1
    delay_cell = (high - low) // DELAY_CELLS + 1
    code = (times_ns // time_cell) * (DELAY_CELLS + 1) + (delays_ns - low) // delay_cell
    there = np.zeros(int(code.max()) + 1, dtype=bool)
    there[code] = True
    occupied = np.flatnonzero(there)
    times = (occupied // (DELAY_CELLS + 1) + 0.5) * time_cell
    delays = low + (occupied % (DELAY_CELLS + 1) + 0.5) * delay_cell
    return np.minimum(times, last) / 1e9, np.clip(delays, low, high) / 1e6
