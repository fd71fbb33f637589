"""Offered load: what the flows sent per what the link could have carried; above 100 % they overshoot it."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class OfferedLoad(OverTime):
    """Bits of the packets that were sent, retransmissions included, per bit of the link's capacity."""

    BETTER: ClassVar[Better] = "neither"
    LAYER: ClassVar[str] = "l3"

    label: str = "offered load"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        places = self.places(run)
        return run.sample.offered_load(places, *self.span(run))
