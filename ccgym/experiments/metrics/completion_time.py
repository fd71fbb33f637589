"""Completion time: from the start of a transfer to its last acknowledgement, over all transfers of the run."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, Metric


class CompletionTime(Metric):
    """Mean or percentile; one that has not ended counts as if it did with the run."""

    better: ClassVar[Better] = "lower"

    label: str = "completion time"
    unit: str = "s"
    besides: tuple[int, ...] = ()
    """Numbers of flows that are no transfers, from 1."""
    percentile: float | None = Field(default=None, ge=0, le=100)
    """Which percentile; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        times = [
            run.duration_s - flow.start_s if flow.completion_s is None else flow.completion_s
            for number, flow in enumerate(run.record.flows, 1)
            if number not in self.besides
        ]
        if not times:
            return None
        return float(np.mean(times) if self.percentile is None else np.percentile(times, self.percentile))
