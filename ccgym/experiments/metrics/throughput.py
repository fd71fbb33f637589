"""Throughput: bits of IP packets that left the path, over the time from the first to the last packet (Pantheon)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.experiments.metrics.base import Better, Measured, OverTime


class Throughput(OverTime):
    """Pantheon's throughput of a part of the run; retransmissions and headers count. 0 with fewer than two."""

    BETTER: ClassVar[Better] = "higher"
    LAYER: ClassVar[str] = "l3"
    NEEDS_PACKETS: ClassVar[bool] = True

    label: str = "throughput"
    unit: str = "Mbit/s"

    @override
    def of(self, run: Measured) -> float:
        return self.departures(run).left.mbps
