"""Round-trip time: mean over time, or a percentile, of the smoothed round-trip time that the senders measured."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime
from ccgym.experiments.sample import Sample


class RoundTripTime(OverTime):
    """Mean of the flows' numbers; None if no flow has a measurement."""

    BETTER: ClassVar[Better] = "lower"

    label: str = "round-trip time"
    unit: str = "ms"
    percentile: float | None = Field(default=None, ge=0, le=100)
    """The percentile over time; by default the mean."""

    @override
    def of(self, run: Measured) -> float | None:
        numbers = [self._of(run.sample, place, *self.span(run)) for place in self.places(run)]
        known = [number for number in numbers if number is not None]
        return sum(known) / len(known) if known else None

    def _of(self, sample: Sample, flow: int, begin_s: float, end_s: float) -> float | None:
        if self.percentile is None:
            return sample.rtt_ms(flow, begin_s, end_s)
        return sample.rtt_percentile_ms(flow, self.percentile, begin_s, end_s)
