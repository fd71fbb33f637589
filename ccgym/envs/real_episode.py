"""An episode with real packets: a run process, and the connections to its learners."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ccgym.config.sampled_path import DEFAULT_DURATION_NS
from ccgym.emulation.control import VERSION, Connection, Server, wait_for
from ccgym.emulation.control_pb2 import Ended, Hello, Interval
from ccgym.emulation.mahimahi import mahimahi_shells, require_programs
from ccgym.emulation.plan import Plan, refuse_networks, trace_files
from ccgym.emulation.process import RunProcess
from ccgym.envs.episode import HORIZON, Episode
from ccgym.errors import ConfigError, RealPathError
from ccgym.units import format_time

if TYPE_CHECKING:
    from ccgym.envs.settings import Settings
    from ccgym.schemes.policies import LearnedPolicy

START_S: Final = 30.0
"""Max time for the flows of a new run process to connect, seconds. A slower process counts as stalled."""

STALL_S: Final = 60.0
"""Max time without the close of a decision interval, seconds. A slower process counts as stalled."""

SUMMARY_S: Final = 2.0
"""Max time for a stopped flow to report its summary, seconds."""

POLL_S: Final = 0.2
"""Time between two checks that the run process is alive, seconds."""

SIZES: Final = ("observation_size", "action_size", "reward_terms", "statistics", "truth")
"""Names of the sizes of a learner's arrays, in the learner's first message."""


class Learner:
    """The environment's view of one learning flow."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.interval: Interval | None = None
        """The latest interval that the agent got or will get."""
        self.due = False
        """Whether the flow waits for a decision."""
        self.ended: Ended | None = None
        """The flow's last message, with its summary."""
        self.missed = 0
        """Intervals between the last two that the agent got: missed deadlines."""
        self.skipped_reward = 0.0
        """Sum of the rewards of these intervals."""
        self._asked: int | None = None

    def act(self, values: Sequence[float]) -> None:
        """Send the action for the latest interval."""
        assert self.interval is not None
        self._asked = self.interval.sequence
        self.due = False
        self.skipped_reward = 0.0
        self.connection.act(self.interval, values)

    def listen(self, *, stopped: bool = False) -> None:
        """Process received messages, up to an interval that needs a decision.

        Args:
            stopped: Whether the flow must stop. Then only its last message counts.

        Raises:
            RealPathError: A message is invalid.
        """
        self.connection.receive()
        while (stopped or not self.due) and self.ended is None and (message := self.connection.next()) is not None:
            if isinstance(message, Ended):
                self.ended = message
            if not stopped and isinstance(message, Interval):
                self._on_interval(message)
            elif not stopped and isinstance(message, Ended) and message.HasField("interval"):
                self._show(message.interval)

    def _on_interval(self, interval: Interval) -> None:
        answered = self._asked is None or (
            interval.HasField("applied_sequence") and interval.applied_sequence >= self._asked
        )
        if answered:
            self._show(interval)
            self.due = True
        else:
            self.skipped_reward += interval.reward

    def _show(self, interval: Interval) -> None:
        self.interval = interval
        self.missed = 0 if self._asked is None else interval.sequence - self._asked - 1

    @property
    def was_cut_off(self) -> bool:
        """Whether the end of the flow closed its last interval early."""
        return self.ended is not None and self.ended.HasField("interval")

    @property
    def gone(self) -> bool:
        """Whether the connection closed without a summary."""
        return self.ended is None and not self.due and not self.connection.is_open


class RealEpisode:
    """A run process whose learners get their actions here. :meth:`close` ends the process in every state.

    Args:
        settings: Settings of the environment.
        episode: The drawn episode.
        shape: Values of :data:`SIZES`.
        policies: Policies of the background flows, by key.

    Raises:
        ConfigError: The backend does not support the path, or the episode ends before the first decision.
        PlatformError: The machine lacks a program, a privilege or a feature.
        RealPathError: The run process failed; ``where`` is the step that failed.
    """

    def __init__(
        self,
        settings: Settings,
        episode: Episode,
        shape: tuple[int, ...],
        policies: Mapping[str, LearnedPolicy] = MappingProxyType({}),
    ) -> None:
        self.learners: list[Learner] = []
        self._server: Server | None = None
        self._process: RunProcess | None = None
        self._shape = shape
        try:
            self._server = Server()
            self._process = RunProcess(_plan(settings, episode, self._server, policies))
            self._begin(len(settings.learners), max(flow.latest_start_ns for flow in settings.learners) / 1e9)
            self._server.close()
        except BaseException:
            self.close()
            raise
        if not any(learner.due for learner in self.learners):
            self.close()
            length = json.loads(episode.spec)["duration"]
            raise ConfigError(
                "out-of-range",
                f"the episode ends after {format_time(length)}, before the first decision",
                where="duration",
                expected="a longer episode",
            )

    def _begin(self, count: int, start_s: float) -> None:
        """Wait for the first decision. If the run process restarts because it was too slow, connect again."""
        first = self._accept()
        while first is not None:
            self._connect(first, count)
            self.wait(STALL_S + start_s, starting=True)
            if any(learner.due for learner in self.learners):
                return
            self._disconnect()
            first = self._accept()

    def _accept(self) -> Connection | None:
        """Return the next flow that connects; ``None`` if the run process has ended without an error.

        Raises:
            RealPathError: The run process failed, or no flow connects.
        """
        assert self._server is not None
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while (connection := self._server.accept(POLL_S)) is None:
            status = self._process.poll()
            if status is not None:
                if status != 0:
                    raise self._failure()
                return None
            if time.monotonic() > deadline:
                raise RealPathError(
                    "no-answer",
                    f"no learning flow has connected for {START_S:g} s",
                    where="starting the run process",
                    hint="`ccgym doctor` shows what this machine supports",
                )
        return connection

    def _connect(self, first: Connection, count: int) -> None:
        found: dict[int, Learner] = {}
        connection: Connection | None = first
        while connection is not None:
            learner = Learner(connection)
            # From here on, the connection is closed with the episode, also after a failure.
            self.learners.append(learner)
            hello = self._hello(connection)
            if hello is not None:
                found[hello.flow] = learner
            if len(found) == count:
                break
            connection = self._accept()
        if sorted(found) != list(range(count)):
            raise RealPathError(
                "protocol-error",
                f"flows {sorted(found)} connected",
                where="starting the run process",
                expected=f"the first {count} flows",
            )
        self.learners = [found[flow] for flow in range(count)]

    def _hello(self, connection: Connection) -> Hello | None:
        """Return the first message of a flow; ``None`` if the flow has closed the connection."""
        deadline = time.monotonic() + START_S
        while True:
            connection.receive()
            message = connection.next()
            if message is not None:
                break
            if not connection.is_open:
                return None
            if time.monotonic() > deadline:
                raise RealPathError(
                    "protocol-error", "no first message", where="the sender's control socket", expected="Hello"
                )
            if not wait_for([connection], POLL_S):
                self._check_process()
        found = [getattr(message, name, None) for name in ("version", *SIZES)]
        if not isinstance(message, Hello) or found != [VERSION, *self._shape]:
            raise RealPathError(
                "version-mismatch",
                f"{type(message).__name__} of version {found[0]} with sizes {found[1:]}",
                where="the sender's control socket",
                expected=f"Hello of version {VERSION} with sizes {list(self._shape)} ({', '.join(SIZES)})",
                hint="use the same version of ccgym at both ends",
            )
        return message

    def wait(self, limit_s: float = STALL_S, *, starting: bool = False) -> None:
        """Wait until an agent is due or all flows have ended.

        Args:
            limit_s: Max time to wait, seconds.
            starting: Whether a flow may close its connection without a summary.

        Raises:
            RealPathError: The run process failed or stalled.
        """
        deadline = time.monotonic() + limit_s
        while True:
            for learner in self.learners:
                learner.listen()
            if any(learner.due for learner in self.learners) or all(one.ended is not None for one in self.learners):
                return
            if any(learner.gone for learner in self.learners):
                if starting:
                    return
                raise self._failure()
            if time.monotonic() > deadline:
                raise RealPathError(
                    "run-stalled",
                    f"no decision interval has closed for {limit_s:g} s",
                    where="waiting for the sender",
                    expected="an interval of the agent's clock",
                    hint="check that the path delivers packets; an agent with a clock of ACKs needs ACKs",
                )
            if not wait_for(list(self._talking()), POLL_S):
                self._check_process()

    def _talking(self) -> Iterator[Connection]:
        return (one.connection for one in self.learners if one.ended is None and one.connection.is_open)

    def finish(self) -> None:
        """Stop the flows, receive their summaries, and end the run process."""
        try:
            for learner in self.learners:
                if learner.ended is None:
                    learner.connection.stop()
            deadline = time.monotonic() + SUMMARY_S
            while list(self._talking()) and time.monotonic() < deadline:
                wait_for(list(self._talking()), max(deadline - time.monotonic(), 0.0))
                for learner in self.learners:
                    learner.listen(stopped=True)
        finally:
            self.close()

    def close(self) -> None:
        """End the run process and close the connections."""
        self._disconnect()
        if self._server is not None:
            self._server.close()
        if self._process is not None:
            self._process.end()

    def _disconnect(self) -> None:
        for learner in self.learners:
            learner.connection.close()

    def _check_process(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            # Its last messages may still be in the sockets.
            for learner in self.learners:
                learner.listen()
            if any(learner.ended is None and not learner.due for learner in self.learners) or not self.learners:
                raise self._failure()

    def _failure(self) -> RealPathError:
        """Return the reason for the end of the run process or of one of its flows."""
        assert self._process is not None
        deadline = time.monotonic() + SUMMARY_S
        while (status := self._process.poll()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if status:
            return self._process.failure(status)
        return RealPathError(
            "run-failed",
            "a flow ended without its summary" if status is None else "the run process ended too early",
            where="waiting for the sender",
            expected="an interval, or the end of the episode",
        )


def _plan(settings: Settings, episode: Episode, server: Server, policies: Mapping[str, LearnedPolicy]) -> Plan:
    spec = json.loads(episode.spec)
    refuse_networks(spec, settings.backend)
    shells: tuple[tuple[str, ...], ...] = ()
    if settings.backend == "mahimahi":
        assert episode.drawn is not None
        length = int(spec["duration"])
        shells = mahimahi_shells(episode.drawn.path(), DEFAULT_DURATION_NS if length == HORIZON else length)
        require_programs(shells)
    return Plan(
        spec=spec,
        traces=trace_files(episode.traces),
        policies={key: policy.files for key, policy in policies.items()},
        agent=settings.agent.native(),
        control=server.path,
        mahimahi=shells,
    )
