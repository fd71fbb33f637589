"""State visit: duration of the stays of a flow's scheme in a state; mean or percentile of the stays that ended."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Measured
from ccgym.experiments.metrics.state_time import OfState


class StateVisit(OfState):
    """Duration over the stays that began in the part of the run; None if there is no such stay."""

    label: str = "stay in the state"
    unit: str = "ms"
    percentile: float | None = Field(default=None, ge=0, le=100)
    """The percentile, 100 is the longest stay; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        visits = self.within(run)
        if not visits:
            return None
        lasted = [1e3 * (one.end_s - one.begin_s) for one in visits]
        return float(np.mean(lasted) if self.percentile is None else np.percentile(lasted, self.percentile))
