"""State visit: how long a flow's scheme stayed in a state: the mean, or a percentile, of the stays that ended."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.state_time import OfState


class StateVisit(OfState):
    """Of the stays that began in the part of the run; nothing where none did."""

    label: str = "stay in the state"
    unit: str = "ms"
    percentile: float | None = Field(default=None, ge=0, le=100)
    """Which percentile, 100 being the longest; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        visits = self.within(run)
        if not visits:
            return None
        lasted = [1e3 * (one.end_s - one.begin_s) for one in visits]
        return float(np.mean(lasted) if self.percentile is None else np.percentile(lasted, self.percentile))
