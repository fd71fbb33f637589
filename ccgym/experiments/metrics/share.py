"""Share: what flows' packets took of the link, in bytes of IP packets; half of it is fair where two flows meet."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class Share(OverTime):
    """Fraction of the link's capacity.

    Packets count as the path carries them: schemes whose packets have other sizes and headers are compared by what they
    take from each other, not by their payload.
    """

    BETTER: ClassVar[Better] = "neither"
    LAYER: ClassVar[str] = "l3"

    label: str = "share"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float:
        return run.sample.share(self.places(run), *self.span(run))
