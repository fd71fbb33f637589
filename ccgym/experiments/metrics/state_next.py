"""State next: of the stays of a flow's scheme in a state, the fraction that others followed, which are named."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.state_time import OfState, States


class StateNext(OfState):
    """Of the stays that began in the part of the run and ended; nothing where none did."""

    label: str = "followed by"
    unit: str = "%"
    next: States
    """The state, or one of several, that has to follow at once."""

    @override
    def of(self, run: Measured) -> float | None:
        visits = self.within(run)
        return float(np.mean([one.following in self.next for one in visits])) if visits else None
