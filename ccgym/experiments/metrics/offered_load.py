"""Offered load: bits that the flows sent per bit of the link's capacity; above 100 % they exceed the capacity."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class OfferedLoad(OverTime):
    """Bits of sent packets, retransmissions included, per bit of the link's capacity."""

    BETTER: ClassVar[Better] = "neither"
    LAYER: ClassVar[str] = "l3"

    label: str = "offered load"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        places = self.places(run)
        return run.sample.offered_load(places, *self.span(run))
