"""Completion time: from a transfer's start to its last ACK, over flows or over their sources' transfers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, Metric


class CompletionTime(Metric):
    """Mean or percentile; an unfinished transfer counts as if it ended at the end of the run."""

    BETTER: ClassVar[Better] = "lower"
    LAYER: ClassVar[str] = "l7"

    label: str = "completion time"
    unit: str = "s"
    besides: tuple[int, ...] = ()
    """Numbers of flows that do not count, from 1: flows that are no transfers."""
    percentile: float | None = Field(default=None, ge=0, le=100)
    """The percentile; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        numbers = [number for number in range(1, len(run.record.flows) + 1) if number not in self.besides]
        times = [one for number in numbers for one in self._times_s(run, number - 1)]
        if not times:
            return None
        return float(np.mean(times) if self.percentile is None else np.percentile(times, self.percentile))

    def _times_s(self, run: Measured, place: int) -> Iterable[float]:
        """Return the times of the flow's source's transfers if it makes several, else the flow's time, seconds."""
        flow = run.record.flows[place]
        if flow.transfers is None:
            return [run.duration_s - flow.start_s if flow.completion_s is None else flow.completion_s]
        assert run.record.native is not None, "the record must be of a run in this process"
        transfers = run.record.native.transfers(place)
        ended = np.minimum(transfers["finished_ns"], round(run.duration_s * 1e9))
        return [float(one) / 1e9 for one in ended.astype(np.int64) - transfers["asked_ns"].astype(np.int64)]
