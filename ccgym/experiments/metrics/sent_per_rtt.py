"""Sent per round trip: packets that the flows sent per base round trip; with full back-off far below one."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ccgym.config.quantities import PeriodField
from ccgym.experiments.metrics.base import Better, Measured, OverTime


class SentPerRtt(OverTime):
    """Data packets, retransmissions included, of all chosen flows together."""

    BETTER: ClassVar[Better] = "neither"

    label: str = "sent per round trip"
    unit: str = "packets"
    rtt: PeriodField
    """Base round-trip time."""

    @override
    def of(self, run: Measured) -> float:
        begin_s, end_s = self.span(run)
        sent = sum(run.sample.sent_packets(place, begin_s, end_s) for place in self.places(run))
        return sent * self.rtt / 1e9 / (end_s - begin_s)
