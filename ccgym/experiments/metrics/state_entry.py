"""State entry: time when a flow's scheme was first in a state, from the start of the run."""

from __future__ import annotations

from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.state_time import OfState


class StateEntry(OfState):
    """First time since ``from``; if the scheme never was in the state, the end of the part of the run."""

    label: str = "first time in the state"
    unit: str = "s"

    @override
    def of(self, run: Measured) -> float | None:
        begin_s, end_s = self.span(run)
        visits = self.visits(run)
        if visits is None:
            return None
        return next(
            (max(one.begin_s, begin_s) for one in visits if one.end_s > begin_s and one.begin_s <= end_s), end_s
        )
