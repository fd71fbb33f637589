"""Recovery time: how long after a change of the path the flows use most of the link again."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.config.quantities import PeriodField, ProbabilityField, TimeField
from ccgym.experiments.metrics.base import NOTHING, Better, Measured, Metric


class RecoveryTime(Metric):
    """Time from a change to the first window in which a fraction of the capacity is used.

    Where there is none, it is the time from the change to ``until``, which is then shown with ``≥``.
    """

    better: ClassVar[Better] = "lower"

    label: str = "recovery time"
    unit: str = "s"
    change: TimeField
    """When the path changes."""
    until: TimeField
    """Where the last window ends."""
    blind: TimeField = 0
    """Windows begin this long after the change: what arrives earlier was sent before the sender could know."""
    window: PeriodField = 500_000_000
    """Width of a window."""
    fraction: ProbabilityField = 0.8
    """Of the capacity."""

    @override
    def of(self, run: Measured) -> float:
        change, until = self.change / 1e9, self.until / 1e9
        return run.sample.time_to(self.fraction, change, change + self.blind / 1e9, until, self.window / 1e9)

    @override
    def show(self, value: float | None) -> str:
        if value is None:
            return NOTHING
        limit = (self.until - self.change) / 1e9
        return f"≥ {value:.0f} {self.unit}" if value > limit - 0.05 else f"{value:.1f} {self.unit}"
