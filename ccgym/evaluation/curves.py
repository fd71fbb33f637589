"""Data of a run's two figures, reduced so that they can be drawn again without the packets.

Bins are Pantheon's (``src/analysis/tunnel_graph.py`` @23e738c): 500 ms bins from the first event of the
log; a bin's value is its bits / 0.5 s. Delays are kept as the occupied cells of a fine grid, so that a run takes tens
of kilobytes instead of megabytes. The native core computes bins and cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ccgym._core import log_curves
from ccgym.evaluation.capacity import LinkCapacity, mean_per_bin_mbps
from ccgym.evaluation.kept_arrays import read_arrays, record
from ccgym.evaluation.metrics import PacketLog

if TYPE_CHECKING:
    from ccgym._core import SimResult

BIN_NS: Final = 500_000_000
"""Width of a throughput bin, nanoseconds (Pantheon's 500 ms)."""

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
    """Capacity per bin, Mbit/s, at the bin's start; empty if unknown."""
    flows: tuple[FlowCurves, ...]
    """The curves of the flows, in order of flow number."""

    @classmethod
    def of_run(cls, native: SimResult, capacity: LinkCapacity | None, duration_ns: int) -> RunCurves:
        """Return the binned and thinned curves of a recorded run.

        Args:
            native: the run.
            capacity: the bottleneck's capacity; None without a bottleneck.
            duration_ns: length of the run, nanoseconds.
        """
        capacity_mbps = np.empty(0, dtype=np.float64)
        if capacity is not None and duration_ns >= BIN_NS:
            # Whole bins only: a last bin that the end of the run cuts would look like a drop of the link's rate.
            edges = np.arange(duration_ns // BIN_NS + 1, dtype=np.int64) * BIN_NS
            capacity_mbps = mean_per_bin_mbps(capacity, edges)
        return cls(BIN_NS / 1e9, capacity_mbps, tuple(FlowCurves(*flow) for flow in native.curves(duration_ns)))

    @classmethod
    def from_log(cls, log: PacketLog) -> RunCurves:
        """Return the curves of a packet log; the link's delivery opportunities count as a flow that only enters."""
        entered = (
            np.concatenate([log.opportunity_ns, log.arrival_ns]),
            np.concatenate([log.opportunity_bytes, log.arrival_bytes]),
            np.append(np.zeros_like(log.opportunity_ns), 1 + np.searchsorted(log.flows, log.arrival_flow)),
        )
        places = 1 + np.searchsorted(log.flows, log.departure_flow)
        left = (log.departure_ns, log.departure_bytes, places, log.delay_ns)
        link, *flows = (FlowCurves(*flow) for flow in log_curves(entered, left, 1 + len(log.flows)))
        return cls(BIN_NS / 1e9, link.ingress_mbps, tuple(flows))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays to keep: one array with a field per curve, with the flows one after another, and the
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
        """Return the curves of kept arrays, as from :meth:`arrays`; the previous version kept one array per curve."""
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
        """Read the curves of a run that an evaluation kept; raise :class:`ResultsError` if this fails."""
        return read_arrays(file, cls.of_arrays)
