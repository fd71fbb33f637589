"""A scheme on a path of a scorecard: means, scores, training."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.scheme_summary import CellResult, SchemeSummary
from ccgym.experiments.views.score import SCORE_FLOOR, MeanMetrics, score
from ccgym.schemes.style import SchemeStyle


@dataclass(frozen=True)
class CardPath:
    """A path of a scorecard."""

    name: str
    section: str
    title: str
    one_way_delay_ms: float
    """One-way propagation delay of the data direction, ms."""
    rate_mbps: float
    """Mean rate of the bottleneck, Mbit/s."""

    @property
    def facts(self) -> str:
        """Rate and delay as text: ``77.7 Mbit/s, 51 ms``."""
        return f"{self.rate_mbps:.3g} Mbit/s, {self.one_way_delay_ms:g} ms"


@dataclass(frozen=True)
class CardScheme:
    """A scheme of a scorecard."""

    style: SchemeStyle
    reference: bool
    """Whether the scheme has the path's parameters: it then shows what is possible, and has no rank."""
    trained_on: Mapping[str, bool] | None = None
    """By path, whether a learned scheme was trained on it; None for other schemes, or if its card has no paths."""
    learned: bool = False

    @property
    def key(self) -> str:
        """Name of the scheme in files."""
        return self.style.key


@dataclass(frozen=True)
class PathResult:
    """A scheme on a path; means are over the runs that count, and None if there are none."""

    path: str
    scheme: str
    runs: int
    """Number of runs that were made."""
    counted: int
    """Number of runs that count by Pantheon's rules; other runs have the minimum score."""
    limited: int
    """Number of runs in which the machine could not keep the schedule (real packets)."""
    throughput_mbps: float | None
    delay_p95_ms: float | None
    loss: float | None
    """Mean loss, a fraction."""
    utilization: float | None
    """Normalized throughput: mean of throughput / capacity over the run."""
    delay_ratio: float | None
    """Normalized delay: mean 95th percentile / propagation delay."""
    scores: tuple[float, ...]
    """Score of each run, in order."""
    trained: bool | None
    """Whether the scheme was trained on the path; None if it is not learned or its training is unknown."""
    pareto_optimal: bool
    """Whether no competitor dominates it on the path; references neither dominate nor are dominated."""
    best: bool
    """Whether the scheme has the best score of the competitors on the path."""

    @property
    def score(self) -> float | None:
        """Mean score; None without runs."""
        return statistics.fmean(self.scores) if self.scores else None


def _path_result(
    path: CardPath, one: CardScheme, summary: SchemeSummary, scores: tuple[float, ...], free: bool, best: bool
) -> PathResult:
    spreads = {name: getattr(summary, name) for name in ("throughput_mbps", "delay_p95_ms", "loss", "utilization")}
    means = {name: None if spread is None else spread.mean for name, spread in spreads.items()}
    delay = means["delay_p95_ms"]
    return PathResult(
        path=path.name,
        scheme=one.key,
        runs=len(summary.runs),
        counted=len(summary.valid_runs),
        limited=len(summary.limited_runs),
        **means,
        delay_ratio=None if delay is None else delay / path.one_way_delay_ms,
        scores=scores,
        trained=None if one.trained_on is None else one.trained_on[path.name],
        pareto_optimal=free,
        best=best,
    )


def run_score(cell: CellResult, one_way_delay_ms: float) -> float:
    """Return the score of one run."""
    return record_score(cell.record, cell.invalid, one_way_delay_ms)


def record_score(record: RunRecord, invalid: str | None, one_way_delay_ms: float) -> float:
    """Return the score of a run. A run that does not count gets the floor: sending nothing must not pay off.

    Args:
        record: Record of the run.
        invalid: Why the run does not count, or None.
        one_way_delay_ms: One-way propagation delay of the data, ms.
    """
    total = record.total
    if invalid is not None or total.delay_p95_ms is None:
        return SCORE_FLOOR
    return score(record.link.utilization, total.delay_p95_ms / one_way_delay_ms)


def means_of(summary: SchemeSummary) -> MeanMetrics | None:
    """Return means over the runs of a scheme that count; None if one of the means is unknown."""
    throughput, delay, loss = summary.throughput_mbps, summary.delay_p95_ms, summary.loss
    if throughput is None or delay is None or loss is None:
        return None
    return MeanMetrics(throughput.mean, delay.mean, loss.mean)
