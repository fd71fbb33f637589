"""Round-trip time: the mean over time of the smoothed one that the flows' senders measured."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class RoundTripTime(OverTime):
    """Mean of the flows' own means; nothing where none has measured."""

    better: ClassVar[Better] = "lower"

    label: str = "round-trip time"
    unit: str = "ms"

    @override
    def of(self, run: Measured) -> float | None:
        means = [run.sample.rtt_ms(place, *self.span(run)) for place in self.places(run)]
        known = [mean for mean in means if mean is not None]
        return sum(known) / len(known) if known else None
