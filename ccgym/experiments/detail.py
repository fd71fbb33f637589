"""Details of a run that are stored for pages: all tables of ccperf, and the flows over time."""

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
"""Version of the stored details: it rises when they change."""
MAX_POINTS: Final = 150
"""Max points of a series; several samples are merged into one."""
FLOW_SERIES: Final = ("throughput_mbps", "srtt_ms", "in_flight")
"""The series of a flow: payload that arrived, Mbit/s; smoothed round-trip time, ms; packets in flight."""
_ARRAYS: Final = ("ends_s", "values")

_Floats = npt.NDArray[np.float64]


def detail(run: Run, record: RunRecord) -> dict[str, Any]:
    """Return the flows and tables of a run as plain data.

    Returns:
        ``flows``: per flow ``scheme``, ``start_s``, ``stop_s``, ``base_rtt_ms``, and if the path has a link, the
        flow's ``optimum`` alone: ``throughput_mbps`` (payload), ``srtt_ms``, ``in_flight`` (packets). ``tables``: by
        scope (``flow_1``, ``btl_forward``, each of several links, ``net``) ccperf's metrics, each ``[value, unit,
        bin in seconds]``. ``path``: the path as text, ``duration_s``, ``seed``.
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
    """Return the flows over time as the content of an ``.npz`` file.

    ``ends_s``: ends of the intervals. ``values``: a row per flow and quantity of :data:`FLOW_SERIES`, and a last row
    with the bottleneck's mean queue in packets; NaN for unknown values.
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
    """Stored details of a run."""

    numbers: Mapping[str, Any]
    """The result of :func:`detail`."""
    arrays: Mapping[str, npt.NDArray[np.float32]]
    """The result of :func:`series`."""

    @property
    def ends_s(self) -> npt.NDArray[np.float32]:
        """Ends of the intervals, seconds."""
        return self.arrays["ends_s"]

    def over_time(self, place: int, name: str) -> npt.NDArray[np.float32]:
        """Return one of :data:`FLOW_SERIES` of the flow with this index."""
        row: npt.NDArray[np.float32] = self.arrays["values"][place * len(FLOW_SERIES) + FLOW_SERIES.index(name)]
        return row

    @classmethod
    def read(cls, file: Path) -> KeptRun:
        """Read the file of the run.

        Raises:
            ResultsError: The file is damaged.
            FileNotFoundError: There is no such file.
        """
        try:
            kept = read_run(file).data["detail"]
            return cls(kept, read_arrays(file.with_suffix(".npz"), lambda arrays: {n: arrays[n] for n in _ARRAYS}))
        except (UnreadableError, KeyError, TypeError) as error:
            raise ResultsError(
                "results-damaged",
                f"the kept run cannot be read: {error}",
                where=str(file),
                expected="a file that `ccgym evaluate --experiment` wrote",
                hint="run the same command again: it repeats damaged runs",
            ) from None


def _short(value: float | None) -> float | None:
    """Return the value with five digits: more than a page shows."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")
