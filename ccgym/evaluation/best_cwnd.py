"""The best constant window of a path, found by simulation: the window of an expert that has the path's parameters.

A window is judged after the start-up (the first fifth of a run is left out) by

    ln throughput + ln(1 − loss) − weight · ln max(p95, base RTT + allowance)

with p95 the 95th percentile of the round-trip times. Indigo records p95 and throughput of each run
(``env/sender.py``). Queueing delay within the allowance costs nothing: a small queue keeps the link busy, and scores
no worse than an empty queue. Of the windows as good as the best one, within :data:`TIE`, the largest is chosen.

:data:`POWER`, with weight 1, is throughput over delay; its windows are close to the windows of Indigo's experts.
:data:`THROUGHPUT_FIRST` gives delay a fifth of this weight. With constant capacity, both criteria agree. With varying
capacity, the second one gives a larger window, which costs queueing delay and keeps the link busy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ccgym.config.best_windows import WindowRow
from ccgym.config.catalog import catalog
from ccgym.config.path import NetworkPath, PathLike
from ccgym.errors import ConfigError, SimulationError
from ccgym.evaluation.engine import Reduction, measure
from ccgym.evaluation.metrics import NEVER, percentile_nearest
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import Run, contender
from ccgym.evaluation.run_record import RunRecord
from ccgym.units import NS_PER_MS, NS_PER_S

MIN_WINDOW: Final = 2
"""Minimum window that is tried: Indigo's minimum."""
MAX_WINDOW: Final = 1_000_000
"""Maximum window that is tried."""
WARM_UP: Final = 0.2
"""Fraction of a run that is left out: the start-up, and the cold start of calibrated cellular traces."""
COARSE_STEP: Final = 1.25
"""Ratio of neighbors in the first grid."""
PER_ROUND: Final = 6
"""Windows per interval and round of refinement."""
RESOLUTION: Final = 400
"""The search ends when neighbors differ by one packet, or by this fraction of the window."""


ALLOWANCE_MS: Final = 5.0
"""Queueing delay that costs nothing, ms."""
TIE: Final = 0.001
"""Scores this close are equal."""


@dataclass(frozen=True)
class Criterion:
    """A criterion for the quality of a window."""

    delay_weight: float
    """Weight of the logarithm of the delay; the logarithm of the throughput has weight 1."""

    def score(self, measured: CwndRuns, base_rtt_ms: float) -> float:
        """Return the score: larger is better; −∞ if no packet arrives."""
        if measured.throughput_mbps <= 0 or measured.loss >= 1:
            return -math.inf
        delay = max(measured.rtt_p95_ms, base_rtt_ms + ALLOWANCE_MS)
        return math.log(measured.throughput_mbps) + math.log1p(-measured.loss) - self.delay_weight * math.log(delay)

    def best(self, measured: Iterable[CwndRuns], base_rtt_ms: float) -> CwndRuns:
        """Return the best of the measured windows; there must be at least one."""
        scored = [(self.score(one, base_rtt_ms), one) for one in measured]
        enough = max(score for score, _ in scored) - TIE
        return max((one for score, one in scored if score >= enough), key=lambda one: one.window)


THROUGHPUT_FIRST: Final = Criterion(0.2)
"""The criterion for the windows that experts use."""
POWER: Final = Criterion(1.0)
"""The criterion nearest to the published windows."""


@dataclass(frozen=True)
class CwndRuns:
    """Results of a window on a path after the start-up: means over the runs."""

    window: int
    """The window, packets."""
    throughput_mbps: float
    """Rate of the bits that left the path, Mbit/s."""
    delay_p95_ms: float
    """95th percentile of the one-way delay, ms; with Pantheon's rank."""
    rtt_p95_ms: float
    """95th percentile of the round-trip time, ms; with the same rank."""
    loss: float
    """Fraction of the entered packets that were lost; packets in flight at the end are left out."""


@dataclass(frozen=True)
class Search:
    """Parameters for the measurement of windows."""

    runs: int = 5
    """Runs per window. If the second run equals the first, nothing is random, and one run is enough."""
    runtime_ns: int = 30 * NS_PER_S
    seed: int = 1
    """Seed of the first run; each later run has the next number."""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ConfigError("out-of-range", str(self.runs), where="runs", expected="at least 1")
        if self.runtime_ns < NS_PER_S:
            raise ConfigError(
                "out-of-range", f"{self.runtime_ns / NS_PER_S:g} s", where="runtime", expected="at least 1s"
            )


@dataclass(frozen=True)
class Found:
    """The outcome of a search."""

    best: tuple[CwndRuns, CwndRuns]
    """By :data:`THROUGHPUT_FIRST` and by :data:`POWER`."""
    tried: tuple[CwndRuns, ...]
    """All measured windows, ascending."""
    runs: int
    """Actual number of runs per window."""


class _Bench:
    """Measures windows on a path, each window once."""

    def __init__(self, path: NetworkPath, search: Search) -> None:
        self.path, self.search = path, search
        self.measured: dict[int, CwndRuns] = {}
        self.runs = search.runs

    def settle_runs(self, window: int) -> None:
        """Measure a window that is large enough to show randomness; if seeds make no difference, one run is enough."""
        first, again = self._run([self._planned(window, number) for number in (0, 1)])
        if first["trajectory"] == again["trajectory"]:
            self.runs = 1
        self.measure([window])

    def measure(self, windows: Iterable[int]) -> None:
        """Measure the windows that have not been measured yet."""
        missing = [window for window in windows if window not in self.measured]
        results = iter(self._run([self._planned(window, one) for window in missing for one in range(self.runs)]))
        for window in missing:
            rows = [next(results)["numbers"] for _ in range(self.runs)]
            self.measured[window] = CwndRuns(window, *(float(value) for value in np.mean(rows, axis=0)))

    def _planned(self, window: int, number: int) -> Run:
        flow = {"scheme": "fixed_window", "params": {"cwnd": window}, "profile": "udp"}
        seed = self.search.seed + number
        record = Record(series=0, acks=True)
        return Run(self.path, contender(flow), self.search.runtime_ns, seed, record, name=f"window {window}")

    def _run(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        """Return the numbers of :class:`CwndRuns` and the trajectory hash, per run."""
        outcomes = measure(runs, reduce=_AFTER_START_UP)
        for outcome in outcomes:
            if outcome.error is not None:
                raise SimulationError("run-failed", outcome.error, where=outcome.run.name)
        return [outcome.data for outcome in outcomes]


def _after_start_up(run: Run, record: RunRecord) -> dict[str, Any]:
    assert record.native is not None
    data, acks = record.native.packets("data"), record.native.packets("ack")
    return {"numbers": _numbers(data, acks, run.duration_ns), "trajectory": record.trajectory_hash}


_AFTER_START_UP: Final = Reduction("after_start_up", 1, _after_start_up)


def _numbers(data: Mapping[str, Any], acks: Mapping[str, Any], runtime_ns: int) -> tuple[float, ...]:
    """Return throughput in Mbit/s, 95th percentiles of delay and RTT in ms, and loss of a run after its start-up."""
    entered, left = data["entered_ns"], data["left_ns"]
    begin = np.uint64(WARM_UP * runtime_ns)
    arrived = left != NEVER
    sent, received = entered[arrived], left[arrived]
    counted = received >= begin
    if not counted.any():
        return 0.0, 0.0, 0.0, 1.0
    delays = (received - sent)[counted].astype(np.int64)
    throughput = float(data["size"][arrived][counted].sum(dtype=np.int64)) * 8000 / (runtime_ns - int(begin))
    # With udp, every arriving packet is acknowledged at once, so the n-th ACK belongs to the n-th arrival.
    order = np.argsort(received, kind="stable")[: acks["left_ns"].size]
    back = acks["left_ns"][: order.size]
    heard = (back != NEVER) & (back >= begin)
    rtts = (back - sent[order])[heard].astype(np.int64)
    rtt_ms = percentile_nearest(rtts) / NS_PER_MS if rtts.size else runtime_ns / NS_PER_MS
    # For packets that entered later, it is unknown whether they are lost or in flight.
    decided = (entered >= begin) & (entered + np.uint64(delays.max()) < runtime_ns)
    loss = 1.0 - float(arrived[decided].mean()) if decided.any() else 0.0
    return throughput, percentile_nearest(delays) / NS_PER_MS, rtt_ms, loss


def search_windows(path: PathLike, search: Search | None = None) -> Found:
    """Find the best constant window of a path by both criteria, from a coarse grid to a fine one.

    The grid reaches from :data:`MIN_WINDOW` to four times the bandwidth-delay product, and is extended if the best
    window is at its end. Then the intervals around the best window, and around the largest window that is as good, are
    divided until neighbors are :data:`RESOLUTION` apart.

    Args:
        path: The path, in any form that :meth:`NetworkPath.from_any` accepts; it needs a link.
        search: Parameters of the measurement.

    Raises:
        ConfigError: The path has no link.
        SimulationError: The simulator refused the path.
    """
    path = NetworkPath.from_any(path)
    if not path.data_links:
        raise ConfigError(
            "path-without-link", "a path without a link", where="path", expected="a bottleneck that a window can fill"
        )
    search = search or Search()
    bench = _Bench(path, search)
    rtt = path.base_rtt_ms
    full = path.mean_rate_mbps * 1e6 * (path.base_rtt_ns + 5 * NS_PER_MS) / NS_PER_S / (8 * 1500)
    bench.settle_runs(max(round(full), MIN_WINDOW))
    bench.measure(_geometric(MIN_WINDOW, max(4 * full, 16)))
    while True:
        tried = sorted(bench.measured)
        ends = [criterion.best(bench.measured.values(), rtt).window for criterion in (THROUGHPUT_FIRST, POWER)]
        if max(ends) < tried[-2] or tried[-1] >= MAX_WINDOW:
            break
        bench.measure(_geometric(tried[-1], 2 * tried[-1]))
    while missing := _refinement(bench.measured, rtt):
        bench.measure(missing)
    return Found(
        best=(THROUGHPUT_FIRST.best(bench.measured.values(), rtt), POWER.best(bench.measured.values(), rtt)),
        tried=tuple(bench.measured[window] for window in sorted(bench.measured)),
        runs=bench.runs,
    )


def _geometric(low: float, high: float) -> list[int]:
    count = math.ceil(math.log(high / low) / math.log(COARSE_STEP)) + 1
    return sorted({round(value) for value in np.geomspace(low, high, count)})


def _refinement(measured: dict[int, CwndRuns], rtt: float) -> list[int]:
    """Return the windows to measure next; empty if every interval of interest is small enough."""
    tried = sorted(measured)
    wanted: set[int] = set()
    for criterion in (THROUGHPUT_FIRST, POWER):
        scores = {window: criterion.score(measured[window], rtt) for window in tried}
        for window in {max(tried, key=lambda one: scores[one]), criterion.best(measured.values(), rtt).window}:
            place = tried.index(window)
            for low, high in zip(tried[max(place - 1, 0) : place + 1], tried[max(place, 1) : place + 2], strict=False):
                if high - low > max(1, window // RESOLUTION):
                    wanted.update(round(value) for value in np.linspace(low, high, PER_ROUND + 2)[1:-1])
    return sorted(wanted - set(tried))


def path_columns(name: str) -> dict[str, Any]:
    """Return the columns of the table that identify the path and contain published numbers.

    Raises:
        PathNotFoundError: There is no such path.
    """
    path = NetworkPath.from_any(name)
    entry = None if path.name is None else catalog().paths.get(path.name)
    queue = path.queue
    limit = getattr(queue, "limit", None)
    return {
        "path": name if entry is None else path.name,
        "rate_mbps": path.mean_rate_mbps,
        "one_way_delay_ms": path.one_way_delay_ms,
        "queue": "infinite" if limit is None or limit.unlimited else str(limit),
        "random_loss": path.loss,
        "published": None if entry is None else entry.expert_cwnd,
    }


def is_of(row: WindowRow, search: Search) -> bool:
    """Return whether a row was measured on the current version of the path and with this search."""
    facts = path_columns(row.path)
    as_written = {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in facts.items()}
    return (
        all(getattr(row, name) == value for name, value in as_written.items())
        and row.runs in (1, search.runs)
        and row.runtime_s == search.runtime_ns / NS_PER_S
        and row.seed == search.seed
    )


def window_row(name: str, search: Search | None = None) -> WindowRow:
    """Measure a named path and return its row of the table.

    Raises:
        PathNotFoundError: There is no such path.
        ConfigError: The path has no link.
        SimulationError: The simulator refused the path.
    """
    search = search or Search()
    found = search_windows(name, search)
    first, power = found.best
    return WindowRow(
        **path_columns(name),
        **vars(first),
        **{f"power_{column}": value for column, value in vars(power).items()},
        runs=found.runs,
        runtime_s=search.runtime_ns / NS_PER_S,
        seed=search.seed,
    )
