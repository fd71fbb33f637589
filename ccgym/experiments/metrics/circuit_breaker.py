"""Circuit breaker: the flows that RFC 8083's breaker would cut off, or the time when it would cut off the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from ccgym.config.quantities import PeriodField
from ccgym.experiments.metrics.base import Better, Measured, OverTime

ALLOWED: Final = 10.0
"""Max sending rate as a multiple of the TCP throughput equation's rate (RFC 8083, section 4.3)."""


class CircuitBreaker(OverTime):
    """A breaker cuts off a flow that sent more than ten times TCP's rate at the same loss and round trip, in several
    reporting intervals in a row. No flow is really cut off: the rule uses the flows' packets, losses and RTTs.
    """

    BETTER: ClassVar[Better] = "lower"

    label: str = "cut off by a circuit breaker"
    unit: str = "%"
    what: Literal["flows", "time"] = Field(default="flows", alias="of")
    """``flows``: the fraction of flows that are cut off; ``time``: seconds until the first is cut off, or None."""
    reporting: PeriodField = 5_000_000_000
    """Length of a reporting interval; the default of RTCP is 5 s (RFC 3550, section 6.2)."""
    intervals: int = 3
    """Number of intervals in a row: RFC 8083's formula gives 3 intervals of 5 s for round trips below 1.5 s."""

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
        """Yield the end of each interval in seconds since the start, and whether the flow sent too much in it."""
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
    """Return TCP's packets per second at a fraction of loss (RFC 5348, section 3.1; timeout of four round trips)."""
    if loss <= 0:
        return math.inf
    timeouts = 4 * 3 * math.sqrt(3 * loss / 8) * loss * (1 + 32 * loss**2)
    return 1 / (rtt_s * (math.sqrt(2 * loss / 3) + timeouts))
