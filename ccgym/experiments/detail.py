"""What is kept of a run besides its metrics, for pages: all of ccperf's tables, and the flows over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.errors import ResultsError
from ccgym.evaluation.ccperf_metrics import CcperfMetrics
from ccgym.evaluation.kept_arrays import packed, read_arrays
from ccgym.evaluation.run import Run
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.store import read_run
from ccgym.files import UnreadableError

VERSION: Final = 3
"""Rises with what is kept."""
MAX_POINTS: Final = 150
"""Points of a series; several samples become one."""
FLOW_SERIES: Final = ("throughput_mbps", "srtt_ms", "in_flight")
"""The series of a flow: payload that arrived, Mbit/s; smoothed round-trip time; packets in flight."""
_ARRAYS: Final = ("ends_s", "values")

_Floats = npt.NDArray[np.float64]


def detail(run: Run, record: RunRecord) -> dict[str, Any]:
    """The flows and tables of a run as plain data.

    Returns:
        ``flows``: per flow its ``scheme``, ``start_s``, ``stop_s``, ``base_rtt_ms``, and where the path has a link the
        ``optimum`` of it alone: ``throughput_mbps`` (payload), ``srtt_ms``, ``in_flight`` (packets). ``tables``: by
        scope, ``flow_1``, ``btl_forward``, each of several links and ``net``, ccperf's metrics, each ``[value, unit,
        bin in seconds]``. ``path``: the path in words, ``duration_s``, ``seed``.
    """
    whole_path = run.path.compile(run.duration_ns).facts
    whole = None if record.capacity is None else record.capacity.average_mbps(run.duration_ns)
    flows = []
    for place, (spec, flow) in enumerate(zip(run.contender.flows, record.flows, strict=True)):
        capacity = whole if flow.bottleneck is None else record.links[flow.bottleneck].capacity_mbps
        facts = whole_path
        if spec.route or spec.reverse:
            facts = run.path.along(spec.route, spec.direction).facts(run.duration_ns)
        base_rtt = int(facts["base_rtt"])
        own_rtt = base_rtt + int(spec.native(base_rtt, f"flows[{place}]")["extra_rtt"])
        flows.append(
            {
                "scheme": flow.scheme,
                "start_s": flow.start_s,
                "stop_s": flow.stop_s,
                "base_rtt_ms": own_rtt / 1e6,
                "optimum": None
                if capacity is None
                else {
                    "throughput_mbps": capacity * spec.mss / spec.packet_bytes,
                    "srtt_ms": own_rtt / 1e6,
                    "in_flight": capacity * own_rtt / 8e3 / spec.packet_bytes,
                },
            }
        )
    return {
        "path": record.path,
        "duration_s": record.duration_s,
        "seed": run.seed,
        "flows": flows,
        "tables": _tables(record.ccperf()),
    }


def _tables(metrics: CcperfMetrics) -> dict[str, dict[str, list[Any]]]:
    return {
        scope: {name: [_short(one.value), one.unit, one.bin_s] for name, one in table.items()}
        for scope, table in metrics.scopes().items()
        if table
    }


def series(run: Run, record: RunRecord) -> bytes:
    """The flows over time as the content of an ``.npz`` file.

    ``ends_s``: ends of the intervals. ``values``: a row per flow and quantity of :data:`FLOW_SERIES`, and a last one,
    the bottleneck's mean queue in packets; NaN where nothing is known.
    """
    assert record.series is not None, "experiments sample their runs"
    times: npt.NDArray[np.int64] = record.series["t_ns"].astype(np.int64)
    every = max(1, -(-times.size // MAX_POINTS))
    count = times.size // every
    ends_s = times[every - 1 :: every][:count] / 1e9

    def sampled(values: Any) -> _Floats:
        return np.asarray(values, dtype=np.float64)[every - 1 :: every][:count]

    def mean(values: Any) -> _Floats:
        whole = np.asarray(values, dtype=np.float64)[: count * every]
        return np.asarray(whole.reshape(count, every).mean(axis=1), dtype=np.float64)

    rows = []
    for spec, flow in zip(run.contender.flows, record.series["flows"], strict=True):
        srtt = sampled(flow["srtt_ns"]) / 1e6
        arrived = np.diff(sampled(flow["received_unique_bytes"]), prepend=0.0)
        rows += [
            arrived * 8 / 1e6 / np.diff(ends_s, prepend=0.0),
            np.where(srtt > 0, srtt, np.nan),
            mean(flow["in_flight_bytes"]) / spec.packet_bytes,
        ]
    rows.append(mean(record.series["link"]["queue_packets"]))
    found = ends_s.astype(np.float32), np.asarray(rows, dtype=np.float32)
    return packed(dict(zip(_ARRAYS, found, strict=True)))


@dataclass(frozen=True)
class KeptRun:
    """What is kept of a run."""

    numbers: Mapping[str, Any]
    """What :func:`detail` made of it."""
    arrays: Mapping[str, npt.NDArray[np.float32]]
    """What :func:`series` made of it."""

    @property
    def ends_s(self) -> npt.NDArray[np.float32]:
        """Ends of the intervals, seconds."""
        return self.arrays["ends_s"]

    def over_time(self, place: int, name: str) -> npt.NDArray[np.float32]:
        """One of :data:`FLOW_SERIES` of the flow at this position."""
        row: npt.NDArray[np.float32] = self.arrays["values"][place * len(FLOW_SERIES) + FLOW_SERIES.index(name)]
        return row

    @classmethod
    def read(cls, file: Path) -> KeptRun:
        """Read the file that the run is kept in.

        Raises:
            ResultsError: It is damaged.
            FileNotFoundError: It is not there.
        """
        try:
            kept = read_run(file).data["detail"]
            return cls(kept, read_arrays(file.with_suffix(".npz"), lambda arrays: {n: arrays[n] for n in _ARRAYS}))
        except (UnreadableError, KeyError, TypeError) as error:
            raise ResultsError(
                "results-damaged",
                f"the kept run cannot be read: {error}",
                where=str(file),
                expected="what `ccgym evaluate --experiment` wrote",
                hint="run the same command again: what is damaged is run again",
            ) from None


def _short(value: float | None) -> float | None:
    """Five digits are more than a page shows."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")
