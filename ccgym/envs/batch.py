"""Episodes side by side, and the arrays that they write into.

Everything that the environments' interfaces (Gymnasium's two, stable-baselines3, PettingZoo) have in common, wherever
packets travel: in the simulator (:class:`~ccgym.envs.simulated_batch.SimulatedBatch`)
or for real (:class:`~ccgym.envs.real_batch.RealBatch`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.envs.episode import EarlierSelves, Episode, draw_episode
from ccgym.envs.render import History
from ccgym.envs.settings import Settings, read_path
from ccgym.errors import ConfigError, did_you_mean, explained, shown
from ccgym.schemes.flow import policies_of

RUNNING: Final = 0
STEPS_DONE: Final = 1
TIME_DONE: Final = 2
"""What is said of an episode after a step."""

OPTIONS: Final = ("path",)
"""What ``options`` of a ``reset`` may hold."""

Numbers = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


class EpisodeBatch(ABC):
    """``count`` episodes, each with one row per learner; row = episode · learners + learner.

    An episode in which fewer learners take part leaves its last rows alone: they are never due, and have no decisions.

    The arrays are allocated once and overwritten by every step.

    Args:
        settings: What the episodes are made of.
        count: How many run side by side.
        threads: How many threads step simulators (0: one per processor); the results do not depend on it.
        history: Whether to keep what pictures are drawn from.
    """

    missed_deadlines: int | None = None
    """Deadlines missed in all episodes; ``None`` in the simulator, where time waits for decisions."""

    def __init__(self, settings: Settings, count: int, threads: int = 1, *, history: bool = False) -> None:
        from ccgym import _core

        self.settings = settings
        self.count = count
        self.learners = len(settings.learners)
        self.background = tuple(flow.resolved(f"flows[{place}]") for place, flow in enumerate(settings.background))
        """The flows in the background, with their schemes looked up."""
        self.policies = policies_of(self.background)
        """The policies that they decide by, by key."""
        rows = count * self.learners
        self._native_policies = {key: policy.native for key, policy in self.policies.items()}
        teacher = settings.teacher
        if teacher is not None:
            self._native_policies[teacher.key] = teacher.native
        try:
            self._native = _core.AgentBatch(settings.agent_json, count, self.learners, threads, self._native_policies)
            self.agent: dict[str, Any] = json.loads(_core.describe_agent(settings.agent_json))
            """What the agent sees and does, as ``_core.describe_agent`` has it."""
        except ValueError as error:
            raise explained(ConfigError, error, "agent-invalid", where="agent") from None
        self.discrete = settings.discrete
        self.columns = _core.AgentBatch.columns()
        """Names, with units, of an interval's statistics."""
        self._interval = dict.fromkeys(self.columns, 0.0)
        self.terms = self._native.terms()
        """Names of the reward's terms."""
        self.privileged_names = _core.AgentBatch.truth_columns()
        """Names, with units, of the ground truth about a path."""
        self.time_column = self.columns.index("time_s")
        self.obs: Floats = np.zeros((rows, self._native.observation_size), dtype=np.float32)
        self.actions: Floats = np.zeros((rows, self._native.action_size), dtype=np.float32)
        self.due = np.zeros(rows, dtype=np.uint8)
        """Which rows wait for an action; the other rows of the arrays are as they were."""
        numbers = np.zeros((2, rows * (1 + len(self.terms))))
        self._outcome, self._sums = numbers
        self.reward, self.returns = numbers[:, :rows]
        self.reward_terms, self.term_sums = numbers[:, rows:].reshape(2, rows, len(self.terms))
        """Rewards and their terms of the latest step, and their sums so far, added up in one go."""
        self.stats = np.zeros((rows, len(self.columns)))
        self.privileged: Numbers = np.zeros((rows, len(self.privileged_names)))
        """What :meth:`refresh_privileged` found."""
        self.ended = np.full(count, TIME_DONE, dtype=np.uint8)
        """0: running; otherwise why it ended. Such an episode must be reset before the next step."""
        self.episodes: list[Episode | None] = [None] * count
        self.lengths = np.zeros(rows, dtype=np.int64)
        """Decisions of the episode so far whose interval has closed."""
        self.closed = np.ones(rows, dtype=np.int64)
        """1 for rows that the latest step is an outcome of a decision for, else 0."""
        self._decided = np.zeros(rows, dtype=np.bool_)
        self.earlier = EarlierSelves(settings.earlier_selves, ())
        """Flows of earlier selves, of which there are none yet."""
        names = [row["name"] for row in self.agent["action"]]
        self.histories = [History(names, discrete=self.discrete) for _ in range(rows)] if history else []
        self._running = False
        self._closed = False

    # --- Running ------------------------------------------------------------------------------------------------------

    def begin(self, index: int, rng: np.random.Generator, options: Mapping[str, Any] | None = None) -> None:
        """Draw an episode and run it to its first decision.

        Args:
            index: Which of the batch.
            rng: Decides all that is random in it.
            options: ``path``: a path to use instead of one drawn.

        Raises:
            ConfigError: An unusable path, or an unknown option.
            SimulationError: The native core refused it.
            RealPathError: It could not be run for real.
        """
        settings = self.settings
        check_options(options)
        path = options.get("path") if options else None
        source = settings.source if path is None else read_path(path, "options['path']")
        flows = settings.learners, self.background
        self._begin(index, draw_episode(source, rng, *flows, settings.duration_ns, settings.agent, self.earlier))

    def _begin(self, index: int, episode: Episode) -> None:
        rows = slice(index * self.learners, (index + 1) * self.learners)
        self.obs[rows] = 0.0  # those of learners that do not take part stay so
        self._start(index, episode)
        self.episodes[index] = episode
        self.ended[index] = RUNNING
        self._closed = False
        self._running = not np.count_nonzero(self.ended)
        self.returns[rows] = 0.0
        self.term_sums[rows] = 0.0
        self.lengths[rows] = 0
        self._decided[rows] = False
        for history in self.histories[rows]:
            history.clear()

    @abstractmethod
    def _start(self, index: int, episode: Episode) -> None:
        """Run an episode to its first decision; write the rows' ``obs``, and ``due``."""

    def step(self, *, leave_ended: bool = False) -> bool:
        """Apply the actions of the rows that are due, and run every episode to its next decision or its end.

        Args:
            leave_ended: Whether episodes that have ended before stay as they are. Their rows are to be ignored.

        Returns:
            Whether some episode has ended.

        Raises:
            ConfigError: An episode has not begun, or has ended.
            RealPathError: A real path failed.
        """
        if not (self._running or (leave_ended and not self.over().all())):
            raise self._not_running()
        if self.learners > 1:
            self._decided |= self.due == 1
            ended = self._advance()
            # What rows that were not written hold is of an earlier step and does not count.
            closed = self._decided & ((self.due == 1) | (np.repeat(self.ended, self.learners) != RUNNING))
            self.reward[~closed] = 0.0
            self.reward_terms[~closed] = 0.0
            self.closed[:] = closed
        else:
            ended = self._advance()
        self._running = not ended
        self.lengths += self.closed
        self._sums += self._outcome
        if self.histories:
            self._note()
        return ended

    @abstractmethod
    def _advance(self) -> bool:
        """Apply the actions, and let time pass; write all arrays. Returns whether some episode has ended."""

    def close(self) -> None:
        """End all episodes and give back what they hold of the machine; :meth:`begin` works again."""
        self._closed = True
        self._running = False
        self.ended[self.ended == RUNNING] = TIME_DONE

    def over(self) -> npt.NDArray[np.bool_]:
        """Which episodes have ended and wait for their next beginning.

        Raises:
            ConfigError: One has never begun, or the batch was closed.
        """
        if self._closed or any(episode is None for episode in self.episodes):
            raise self._not_running()
        over: npt.NDArray[np.bool_] = self.ended != RUNNING
        return over

    def _not_running(self) -> ConfigError:
        if self._closed:
            return ConfigError(
                "call-order", "step() after close()", expected="reset() first, which starts a new episode"
            )
        never = any(episode is None for episode in self.episodes)
        which = np.flatnonzero(self.ended != RUNNING).tolist()
        return ConfigError(
            "call-order",
            "step() before reset()" if never else "step() after the end of the episode",
            where=f"environments {which}" if self.count > 1 else "",
            expected="reset() at the start, and again when an episode was truncated",
        )

    # --- What there is to know ----------------------------------------------------------------------------------------

    def step_info(self, row: int) -> dict[str, Any]:
        """What a step says besides its observation: raw statistics, the reward's terms, the time."""
        stats = self.stats[row].tolist()
        interval: dict[str, float] = self._interval.copy()  # which has the room already
        interval.update(zip(self.columns, stats, strict=True))
        return {
            "interval": interval,
            "reward_terms": dict(zip(self.terms, self.reward_terms[row].tolist(), strict=True)),
            "time_s": stats[self.time_column],
        }

    def end_info(self, index: int, learner: int = 0) -> dict[str, Any]:
        """What the end of an episode says: a learner's summary, the path, the seed and the hash."""
        episode = self.episodes[index]
        assert episode is not None
        return {
            "summary": self.summaries(index)[learner],
            "path": dict(episode.ways[learner] if episode.ways else episode.path),
            "simulator_seed": episode.seed,
            "trajectory_hash": self.trajectory_hash(index),
        }

    def extra_infos(self) -> dict[str, npt.NDArray[Any]]:
        """What :meth:`step_info` says beyond ``interval``, ``reward_terms`` and ``time_s``, one number per row."""
        return {}

    @abstractmethod
    def summaries(self, index: int) -> list[dict[str, Any]]:
        """One summary per learner of the episode so far."""

    @abstractmethod
    def trajectory_hash(self, index: int) -> str:
        """Hash of all that happened in the episode so far.

        Raises:
            ConfigError: No episode has begun.
        """

    def _check_begun(self, index: int) -> None:
        if self.episodes[index] is None:
            raise ConfigError("call-order", "no episode has begun", expected="reset() first")

    @abstractmethod
    def refresh_privileged(self) -> Numbers:
        """The ground truth about the paths now, one row per learner; the next call overwrites it."""

    @abstractmethod
    def refresh_labels(self) -> tuple[Floats, Numbers]:
        """What the agent's expert would do in the place of every row that is due, for the decisions due now.

        Of no effect on the episodes; the next call overwrites it.

        Returns:
            Actions (rows × action size; a discrete one is its index), and the expert's target (rows): bit/s where the
            agent steers the rate, else packets. NaN in rows that are not due or for which the expert has no answer yet.

        Raises:
            ConfigError: The agent has no expert, or not one that can be asked here.
        """

    @abstractmethod
    def refresh_label_distances(self) -> Numbers:
        """How far from the expert's target the result of each listed action would be: (rows × actions).

        In packets or bit/s, or as a logarithm of a ratio, as the expert measures; NaN in the rows where labels are.

        Raises:
            ConfigError: As :meth:`refresh_labels`.
        """

    def _check_taught(self) -> None:
        if self.settings.agent.expert is None:
            raise ConfigError(
                "no-expert", "an agent without expert", where="agent.expert", expected="an expert, such as best_window"
            )

    def privileged_info(self, row: int) -> dict[str, float]:
        """A row of what :meth:`refresh_privileged` found, by name with unit."""
        return dict(zip(self.privileged_names, self.privileged[row].tolist(), strict=True))

    # --- Pictures -----------------------------------------------------------------------------------------------------

    def _note(self) -> None:
        self.refresh_privileged()
        for row, history in enumerate(self.histories):
            if self.closed[row]:
                interval = dict(zip(self.columns, self.stats[row].tolist(), strict=True))
                history.add(interval, self.privileged_info(row), self.actions[row], float(self.reward[row]))


def check_options(options: Mapping[str, Any] | None, known: Sequence[str] = OPTIONS) -> None:
    """Raise :class:`ConfigError` for an option of ``reset`` that is not known."""
    for name in options or ():
        if name not in known:
            raise ConfigError(
                "unknown-argument",
                f"unknown option {shown(name)}",
                where="options",
                expected=" or ".join(map(repr, known)),
                hint=did_you_mean(str(name), known),
            )
