"""State next: fraction of a scheme's stays in a state that were followed by one of the named states."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.state_time import OfState, States


class StateNext(OfState):
    """Fraction of the stays that began in the part of the run and ended; None if there is no such stay."""

    label: str = "followed by"
    unit: str = "%"
    next: States
    """The state, or several states, one of which must follow directly."""

    @override
    def of(self, run: Measured) -> float | None:
        visits = self.within(run)
        return float(np.mean([one.following in self.next for one in visits])) if visits else None
