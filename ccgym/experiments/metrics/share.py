"""Share: fraction of the link that the flows' IP packets used, in bytes; with two flows, one half is fair."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class Share(OverTime):
    """Fraction of the link's capacity.

    Packets count with their size on the path: schemes with different packet sizes and headers are compared by the
    capacity that they use, not by their payload.
    """

    BETTER: ClassVar[Better] = "neither"
    LAYER: ClassVar[str] = "l3"

    label: str = "share"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        return run.sample.share(self.places(run), *self.span(run))
