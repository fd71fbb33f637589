"""Recovery time: how long after a change of the path the flows use most of the link again."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from typing_extensions import override

from ccgym.config.quantities import PeriodField, ProbabilityField, TimeField
from ccgym.experiments.metrics.base import NOTHING, Better, Measured, Metric


class AfterChange(Metric):
    """Time from a change to a window in which something is reached.

    Where there is none, it is the time from the change to ``until``, which is then shown with ``≥``.
    """

    BETTER: ClassVar[Better] = "lower"
    version: ClassVar[int] = 2

    unit: str = "s"
    change: TimeField
    """When the change is."""
    until: TimeField
    """Where the last window ends."""
    blind: TimeField = 0
    """Windows begin this long after the change: what arrives earlier was sent before the sender could know."""
    window: PeriodField = 500_000_000
    """Width of a window."""

    @abstractmethod
    def reached(self, run: Measured, begin_s: float, end_s: float) -> bool:
        """Whether it is in this window, seconds."""

    def windows(self, run: Measured) -> list[tuple[float, bool]]:
        """Of each window that is looked at: how long after the change it begins, and whether it is reached there."""
        change, until, window = self.change / 1e9, self.until / 1e9, self.window / 1e9
        times = run.sample.t_s
        starts = times[(times >= change + self.blind / 1e9) & (times <= until - window)]
        return [(float(start) - change, self.reached(run, start, start + window)) for start in starts]

    @property
    def never(self) -> float:
        """What stands for no such window, seconds."""
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
    """Of the capacity."""

    @override
    def of(self, run: Measured) -> float:
        return next((after for after, reached in self.windows(run) if reached), self.never)

    @override
    def reached(self, run: Measured, begin_s: float, end_s: float) -> bool:
        return run.sample.utilization(range(len(run.sample.payload)), begin_s, end_s) >= self.fraction
