"""Circuit breaker: the flows that RFC 8083's breaker would have cut off, or when it would have cut off the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from ccgym.config.quantities import PeriodField
from ccgym.experiments.metrics.base import Better, Measured, OverTime

ALLOWED: Final = 10.0
"""How many times the rate of the TCP throughput equation a sender may have (RFC 8083, section 4.3)."""


class CircuitBreaker(OverTime):
    """A breaker cuts off a flow that sent more than ten times what TCP would at its loss and round trip, in so many
    reporting intervals in a row. Nothing is cut off here: the rule looks at what flows sent, lost and measured.
    """

    BETTER: ClassVar[Better] = "lower"

    label: str = "cut off by a circuit breaker"
    unit: str = "%"
    what: Literal["flows", "time"] = Field(default="flows", alias="of")
    """``flows``: the fraction of them that are cut off; ``time``: seconds until the first is, none where none is."""
    reporting: PeriodField = 5_000_000_000
    """A reporting interval; RTCP's is 5 s by default (RFC 3550, section 6.2)."""
    intervals: int = 3
    """Intervals in a row: RFC 8083's formula has 3 of 5 s where a round trip is below 1.5 s."""

    @property
    @override
    def better(self) -> Better:
        return "higher" if self.what == "time" else self.BETTER

    @override
    def of(self, run: Measured) -> float | None:
        times = [self._tripped(run, place) for place in self.places(run)]
        tripped = [time for time in times if time is not None]
        if self.what == "time":
            return min(tripped, default=None)
        return len(tripped) / len(times)

    def _tripped(self, run: Measured, place: int) -> float | None:
        row = 0
        for after, exceeded in self._reports(run, place):
            row = row + 1 if exceeded else 0
            if row == self.intervals:
                return after
        return None

    def _reports(self, run: Measured, place: int) -> Iterator[tuple[float, bool]]:
        """Seconds since the beginning at the end of each interval, and whether the flow sent too much in it."""
        begin_s, end_s = self.span(run)
        length = self.reporting / 1e9
        rtt_ms: float | None = None
        for number in range(1, int((end_s - begin_s) / length + 1e-9) + 1):
            low, high = begin_s + (number - 1) * length, begin_s + number * length
            rtt_ms = run.sample.rtt_ms(place, low, high) or rtt_ms
            sent = run.sample.sent_packets(place, low, high)
            loss = min(run.sample.loss([place], low, high), 1.0)
            yield number * length, rtt_ms is not None and sent / length > ALLOWED * equation(loss, rtt_ms / 1e3)


def equation(loss: float, rtt_s: float) -> float:
    """Packets a second of TCP at a fraction of loss (RFC 5348, section 3.1, with a timeout of four round trips)."""
    if loss <= 0:
        return math.inf
    timeouts = 4 * 3 * math.sqrt(3 * loss / 8) * loss * (1 + 32 * loss**2)
    return 1 / (rtt_s * (math.sqrt(2 * loss / 3) + timeouts))
