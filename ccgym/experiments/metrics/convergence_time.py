"""Convergence time: time after a flow joined until all flows share the link equally and continue to."""

from __future__ import annotations

import itertools
from typing import ClassVar

from typing_extensions import override

from ccgym.config.quantities import ProbabilityField
from ccgym.experiments.metrics.base import Better, Measured
from ccgym.experiments.metrics.jain import jain
from ccgym.experiments.metrics.recovery_time import AfterChange


class ConvergenceTime(AfterChange):
    """Time from ``change``, when the last flow joins, to the first window from which Jain's index stays high.

    A single window is not enough: when one flow takes the link from another, their rates cross.
    """

    BETTER: ClassVar[Better] = "lower"

    label: str = "convergence time"
    flows: tuple[int, ...] = ()
    """Numbers of the flows that share, from 1; empty: all flows."""
    index: ProbabilityField = 0.9
    """Min Jain's index that is high enough."""

    @override
    def of(self, run: Measured) -> float:
        last = itertools.takewhile(lambda window: window[1], reversed(self.windows(run)))
        return min((after for after, _ in last), default=self.never)

    @override
    def reached(self, run: Measured, begin_s: float, end_s: float) -> bool:
        found = jain(run, [flow - 1 for flow in self.flows] or range(len(run.record.flows)), begin_s, end_s)
        return found is not None and found >= self.index
