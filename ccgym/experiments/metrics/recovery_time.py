"""Recovery time: time after a change of the path until the flows use most of the link again."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from typing_extensions import override

from ccgym.config.quantities import PeriodField, ProbabilityField, TimeField
from ccgym.experiments.metrics.base import NOTHING, Better, Measured, Metric


class AfterChange(Metric):
    """Time from a change to a window in which a goal is reached.

    If there is no such window, the value is the time from the change to ``until``, shown with ``≥``.
    """

    BETTER: ClassVar[Better] = "lower"
    version: ClassVar[int] = 2

    unit: str = "s"
    change: TimeField
    """Time of the change."""
    until: TimeField
    """End of the last window."""
    blind: TimeField = 0
    """Time from the change to the first window: earlier arrivals were sent before the sender could notice it."""
    window: PeriodField = 500_000_000
    """Width of a window."""

    @abstractmethod
    def reached(self, run: Measured, begin_s: float, end_s: float) -> bool:
        """Return whether the goal is reached in this window (times in seconds)."""

    def windows(self, run: Measured) -> list[tuple[float, bool]]:
        """Return, for each window, the time from the change to its start, s, and whether the goal is reached in it."""
        change, until, window = self.change / 1e9, self.until / 1e9, self.window / 1e9
        times = run.sample.t_s
        starts = times[(times >= change + self.blind / 1e9) & (times <= until - window)]
        return [(float(start) - change, self.reached(run, start, start + window)) for start in starts]

    @property
    def never(self) -> float:
        """Value if the goal is never reached, seconds."""
        return (self.until - self.change) / 1e9

    @override
    def show(self, value: float | None) -> str:
        if value is None:
            return NOTHING
        return f"≥ {value:.0f} {self.unit}" if value > self.never - 0.05 else f"{value:.1f} {self.unit}"


class RecoveryTime(AfterChange):
    """Time from a change of the path to the first window in which a fraction of the capacity is used."""

    label: str = "recovery time"
    fraction: ProbabilityField = 0.8
    """Min used fraction of the capacity."""

    @override
    def of(self, run: Measured) -> float:
        return next((after for after, reached in self.windows(run) if reached), self.never)

    @override
    def reached(self, run: Measured, begin_s: float, end_s: float) -> bool:
        return run.sample.utilization(range(len(run.sample.payload)), begin_s, end_s) >= self.fraction
