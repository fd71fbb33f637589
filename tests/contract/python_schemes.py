"""Schemes in Python of each kind, for the contract test: by window, by rate, by both, at intervals."""

from __future__ import annotations

import copy
import random
from typing import Any

from ccgym.schemes.events import Ack, Interval, Loss, Start, Timeout


class Paced:
    """A window and a rate: twice the window per round trip."""

    def __init__(self, gain: float = 2.0) -> None:
        self.gain, self.cwnd, self.pacing_rate_bps, self.packet_bytes = gain, 10.0, 1e6, 1500

    def on_start(self, start: Start) -> None:
        self.packet_bytes = start.packet_bytes

    def on_ack(self, ack: Ack) -> None:
        if ack.cwnd_limited and not ack.in_recovery:
            self.cwnd += ack.acked_packets / self.cwnd
        assert ack.srtt_s is not None, "there was a sample"
        self.pacing_rate_bps = self.gain * self.cwnd * self.packet_bytes * 8 / ack.srtt_s

    def on_loss(self, loss: Loss) -> None:
        if loss.entered_recovery:
            self.cwnd = max(self.cwnd / 2, 2.0)

    def on_timeout(self, timeout: Timeout) -> None:
        self.cwnd = 2.0


class ByRate:
    """A rate alone, at intervals, and chance: it probes up or down, and keeps what delivers more."""

    def __init__(self) -> None:
        self.rate = self.pacing_rate_bps = 1e6
        self.best = 0.0
        self.random = random.Random(0)

    def on_start(self, start: Start) -> None:
        self.random = random.Random(start.seed)

    def on_interval(self, interval: Interval) -> None:
        if interval.loss_fraction > 0.1 or interval.timeouts:
            self.rate /= 2
        elif interval.delivery_rate_bps >= self.best:
            self.rate = self.pacing_rate_bps
        self.best = interval.delivery_rate_bps
        self.rate = min(max(self.rate, 1e5), 1e8)
        self.pacing_rate_bps = self.rate * self.random.choice((0.8, 1.25))


class Sleeps:
    """A window that is zero every other interval: only the timer of its intervals wakes it."""

    interval_s = 0.05

    def __init__(self) -> None:
        self.cwnd = 10

    def on_interval(self, interval: Interval) -> None:
        self.cwnd = 10 - self.cwnd


def _copied(scheme: type[Any]) -> type[Any]:
    """The scheme, and each event goes to a copy first: it must decide alike, and change nothing of the original."""

    def through(name: str) -> Any:
        method = getattr(scheme, name)

        def call(self: Any, event: Any) -> None:
            twin = copy.deepcopy(self)
            for each in (twin, self):
                method(each, event)
            decisions = [[getattr(each, part, None) for part in ("cwnd", "pacing_rate_bps")] for each in (twin, self)]
            assert decisions[0] == decisions[1], f"after {name} the copy decides {decisions[0]}, not {decisions[1]}"

        return call

    heard = ("on_start", "on_ack", "on_loss", "on_timeout", "on_interval")
    return type(f"Copied{scheme.__name__}", (scheme,), {name: through(name) for name in heard if hasattr(scheme, name)})


CopiedPaced, CopiedByRate, CopiedSleeps = _copied(Paced), _copied(ByRate), _copied(Sleeps)
