"""A run process that is none: its senders speak the control protocol in threads, with no path below.

Their time is not the machine's: a decision interval closes when the one before it has been answered, or has been missed
as often as a test wants.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ccgym.emulation.control import _varint
from ccgym.emulation.control_pb2 import Ended, FromSender, Hello, Interval, Summary, ToSender
from ccgym.errors import RealPathError

OBSERVATION, ACTION, STATISTICS, TRUTH = 30, 1, 24, 9
"""Sizes of Aurora's arrays."""


@dataclass
class Behavior:
    """How the fake runs behave from now on, and what they have seen."""

    period_s: float = 0.01
    """A decision interval."""
    lapses: int = 0
    """Intervals that close before an answer comes: as if the learner thought for so long."""
    terms: int = 3
    hello: dict[str, Any] = field(default_factory=dict)
    """Fields of the greeting that differ."""
    die_after: int | None = None
    """Intervals after which the process is gone; 0: before it says anything."""
    duration_s: float | None = None
    """When the flows end; None: at a stop message."""
    false_starts: int = 0
    """How often the run begins again before it begins."""
    silent: bool = False
    """Whether no interval ever closes."""
    plans: list[Any] = field(default_factory=list)
    runs: list[FakeRun] = field(default_factory=list)

    @property
    def alive(self) -> int:
        """Runs that have not ended."""
        return sum(run.poll() is None for run in self.runs)


class FakeRun:
    """Stands in for :class:`ccgym.emulation.process.RunProcess`."""

    def __init__(self, plan: Any, behavior: Behavior) -> None:
        self.behavior = behavior
        self.actions: list[list[float]] = []
        self.stopped = 0
        self.pid = 0
        self._status: int | None = None
        self._over = threading.Event()
        # Policies in the background decide for themselves.
        rows = enumerate(plan.spec["flows"])
        flows = [index for index, flow in rows if flow["scheme"] == "learned" and "policy" not in flow["params"]]
        behavior.plans.append(plan)
        behavior.runs.append(self)
        self._threads = [threading.Thread(target=self._sender, args=(plan, flow), daemon=True) for flow in flows]
        for thread in self._threads:
            thread.start()

    def poll(self) -> int | None:
        return self._status

    def failure(self, status: int) -> RealPathError:
        return RealPathError("run-failed", f"the fake died with {status}", where="faking packets")

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=5)
        if self._status is None:
            self._status = 0

    def _die(self, status: int) -> None:
        self._status = status
        self._over.set()

    def _sender(self, plan: Any, flow: int) -> None:
        if self.behavior.die_after == 0:
            self._die(2)
            return
        for attempt in range(1 + self.behavior.false_starts):
            with socket.socket(socket.AF_UNIX) as connected:
                connected.connect(str(plan.control))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._talk(connected, flow, false=attempt < self.behavior.false_starts)
        if self._status is None:
            self._status = 0

    def _talk(self, connected: socket.socket, flow: int, *, false: bool) -> None:
        behavior = self.behavior
        greeting: dict[str, Any] = {
            "version": 1,
            "flow": flow,
            "agent": "fake",
            "observation_size": OBSERVATION,
            "action_size": ACTION,
            "reward_terms": behavior.terms,
            "statistics": STATISTICS,
            "truth": TRUTH,
        }
        _say(connected, FromSender(hello=Hello(**{**greeting, **behavior.hello})))
        if false:
            if flow == 0:
                _say(connected, FromSender(ended=Ended(summary=_summary(0))))
            return
        incoming = _messages(connected)
        period, ends = behavior.period_s * (1 + flow / 4), behavior.duration_s
        sequence, missed, latency, unanswered, applied = 0, 0, 0, 0, None
        while not self._over.is_set():
            closes = period * (sequence + 1)
            if ends is not None and (behavior.silent or closes >= ends):
                last = self._interval(sequence, ends, applied, latency, missed, False) if sequence else None
                _say(connected, FromSender(ended=Ended(interval=last, summary=_summary(sequence))))
                return
            if not behavior.silent:
                interval = self._interval(sequence, closes, applied, latency, missed, True)
                _say(connected, FromSender(interval=interval))
                sequence += 1
                if sequence == behavior.die_after:
                    self._die(3)
                    return
                if unanswered < behavior.lapses:
                    unanswered += 1
                    missed += 1
                    continue
            message = self._next(connected, incoming)
            if message is None:
                return
            if message.WhichOneof("body") == "stop":
                self.stopped += 1
                _say(connected, FromSender(ended=Ended(summary=_summary(sequence))))
                return
            action = message.action
            self.actions.append(list(action.values))
            applied, unanswered = action.sequence, 0
            latency = int(closes * 1e9) - action.time_ns

    def _next(self, connected: socket.socket, incoming: Iterator[ToSender | None]) -> ToSender | None:
        """What the environment says; None when it has gone, or the run is over."""
        while not self._over.is_set():
            if select.select([connected], [], [], 0.05)[0]:
                return next(incoming)
        return None

    def _interval(
        self, sequence: int, now_s: float, applied: int | None, latency: int, missed: int, awaiting: bool
    ) -> Interval:
        """What is sent carries its own number, so that tests see which one it was."""
        terms = self.behavior.terms
        return Interval(
            sequence=sequence,
            time_ns=int(now_s * 1e9),
            observation=[sequence / 1e3, *[1.0] * (OBSERVATION - 1)],
            statistics=[now_s, *[0.0] * (STATISTICS - 1)],
            reward=float(sequence),
            reward_terms=[float(sequence), *[0.0] * (terms - 1)],
            truth=[12e6, 0.04, float("nan"), 40.0, 0.0, 1.0, 12e6, 1e6, float("inf")],
            applied_sequence=applied,
            decision_latency_ns=max(latency, 0),
            held=False,
            awaiting=awaiting,
            missed_deadlines=missed,
            trajectory_hash=sequence,
        )


def _summary(intervals: int) -> Summary:
    return Summary(
        steps=intervals, duration_s=1.0, throughput_mbps=7.5, delay_p95_ms=21.0, loss=0.125, sent_packets=100
    )


def _say(connected: socket.socket, message: FromSender) -> None:
    body = message.SerializeToString()
    connected.sendall(_varint(len(body)) + body)


def _messages(connected: socket.socket) -> Iterator[ToSender | None]:
    """One message per call; None when nobody is there any more."""
    stream = connected.makefile("rb")
    while prefix := stream.read(1):
        # What an environment says is short: its length is one byte.
        yield ToSender.FromString(stream.read(prefix[0]))
    yield None
