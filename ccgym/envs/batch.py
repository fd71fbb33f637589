"""Parallel episodes, and the arrays with their results.

The common base of all interfaces (two of Gymnasium, stable-baselines3, PettingZoo). Packets travel
either in the simulator (:class:`~ccgym.envs.simulated_batch.SimulatedBatch`)
or over a real path (:class:`~ccgym.envs.real_batch.RealBatch`).
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
"""State of an episode after a step: running, at its limit of steps, or at its limit of time."""

OPTIONS: Final = ("path",)
"""Allowed keys of ``options`` in ``reset``."""

Numbers = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


class EpisodeBatch(ABC):
    """``count`` episodes, each with one row per learner; row = episode · learners + learner.

    In an episode with fewer learners, the last rows are unused: they are never due, and have no decisions.

    The arrays are allocated once. Every step overwrites them.

    Args:
        settings: Settings of the episodes.
        count: Number of episodes that run in parallel.
        threads: Number of threads for the simulators (0: one per processor). The results do not depend on it.
        history: Whether to keep the data of pictures.
    """

    missed_deadlines: int | None = None
    """Deadlines missed in all episodes; ``None`` in the simulator, where virtual time waits for decisions."""

    def __init__(self, settings: Settings, count: int, threads: int = 1, *, history: bool = False) -> None:
        from ccgym import _core

        self.settings = settings
        self.count = count
        self.learners = len(settings.learners)
        self.background = tuple(flow.resolved(f"flows[{place}]") for place, flow in enumerate(settings.background))
        """Background flows, with their schemes resolved."""
        self.policies = policies_of(self.background)
        """Policies of the background flows, by key."""
        rows = count * self.learners
        self._native_policies = {key: policy.native for key, policy in self.policies.items()}
        teacher = settings.teacher
        if teacher is not None:
            self._native_policies[teacher.key] = teacher.native
        try:
            self._native = _core.AgentBatch(settings.agent_json, count, self.learners, threads, self._native_policies)
            self.agent: dict[str, Any] = json.loads(_core.describe_agent(settings.agent_json))
            """The agent's observation, action and reward, as returned by ``_core.describe_agent``."""
        except ValueError as error:
            raise explained(ConfigError, error, "agent-invalid", where="agent") from None
        self.discrete = settings.discrete
        self.columns = _core.AgentBatch.columns()
        """Names, with units, of the statistics of an interval."""
        self._interval = dict.fromkeys(self.columns, 0.0)
        self.terms = self._native.terms()
        """Names of the terms of the reward."""
        self.privileged_names = _core.AgentBatch.truth_columns()
        """Names, with units, of the ground truth about a path."""
        self.time_column = self.columns.index("time_s")
        self.obs: Floats = np.zeros((rows, self._native.observation_size), dtype=np.float32)
        self.actions: Floats = np.zeros((rows, self._native.action_size), dtype=np.float32)
        self.due = np.zeros(rows, dtype=np.uint8)
        """1 for rows that wait for an action, else 0. The other rows of the arrays keep their values."""
        numbers = np.zeros((2, rows * (1 + len(self.terms))))
        self._outcome, self._sums = numbers
        self.reward, self.returns = numbers[:, :rows]
        self.reward_terms, self.term_sums = numbers[:, rows:].reshape(2, rows, len(self.terms))
        """Rewards and reward terms of the latest step, and their sums so far, added in one operation."""
        self.stats = np.zeros((rows, len(self.columns)))
        self.privileged: Numbers = np.zeros((rows, len(self.privileged_names)))
        """The ground truth at the last call of :meth:`refresh_privileged`."""
        self.ended = np.full(count, TIME_DONE, dtype=np.uint8)
        """0: running; else the reason for the end. An ended episode must be reset before the next step."""
        self.episodes: list[Episode | None] = [None] * count
        self.lengths = np.zeros(rows, dtype=np.int64)
        """Decisions of the episode so far whose intervals have closed."""
        self.closed = np.ones(rows, dtype=np.int64)
        """1 for rows in which the latest step closed the interval of a decision, else 0."""
        self._decided = np.zeros(rows, dtype=np.bool_)
        self.earlier = EarlierSelves(settings.earlier_selves, ())
        """Flows of earlier selves; at first, without policies."""
        names = [row["name"] for row in self.agent["action"]]
        self.histories = [History(names, discrete=self.discrete) for _ in range(rows)] if history else []
        self._running = False
        self._closed = False

    # --- Running ------------------------------------------------------------------------------------------------------

    def begin(self, index: int, rng: np.random.Generator, options: Mapping[str, Any] | None = None) -> None:
        """Draw an episode and run it to its first decision.

        Args:
            index: Index of the episode in the batch.
            rng: Source of all random numbers of the episode.
            options: ``path``: a path to use instead of a drawn path.

        Raises:
            ConfigError: The path is unusable, or an option is unknown.
            SimulationError: The native core refused the episode.
            RealPathError: The episode could not be run over a real path.
        """
        settings = self.settings
        check_options(options)
        path = options.get("path") if options else None
        source = settings.source if path is None else read_path(path, "options['path']")
        flows = settings.learners, self.background
        self._begin(index, draw_episode(source, rng, *flows, settings.duration_ns, settings.agent, self.earlier))

    def _begin(self, index: int, episode: Episode) -> None:
        rows = slice(index * self.learners, (index + 1) * self.learners)
        self.obs[rows] = 0.0  # stays zero for learners that do not take part
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
            leave_ended: Whether episodes that ended before are skipped. The caller must ignore their rows.

        Returns:
            Whether at least one episode has ended.

        Raises:
            ConfigError: An episode has not begun, or has ended.
            RealPathError: A real path failed.
        """
        if not (self._running or (leave_ended and not self.over().all())):
            raise self._not_running()
        if self.learners > 1:
            self._decided |= self.due == 1
            ended = self._advance()
            # Rows that were not written have values of an earlier step, which must not count again.
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
        """Apply the actions, let time pass and write all arrays; return whether at least one episode has ended."""

    def close(self) -> None:
        """End all episodes and release their resources. :meth:`begin` can start new episodes."""
        self._closed = True
        self._running = False
        self.ended[self.ended == RUNNING] = TIME_DONE

    def over(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the episodes that have ended and must begin again.

        Raises:
            ConfigError: An episode has never begun, or the batch was closed.
        """
        if self._closed or any(episode is None for episode in self.episodes):
            raise self._not_running()
        over: npt.NDArray[np.bool_] = self.ended != RUNNING
        return over

    def _not_running(self) -> ConfigError:
        if self._closed:
            return ConfigError("call-order", "step() after close()", expected="reset() first, to start a new episode")
        never = any(episode is None for episode in self.episodes)
        which = np.flatnonzero(self.ended != RUNNING).tolist()
        return ConfigError(
            "call-order",
            "step() before reset()" if never else "step() after the end of the episode",
            where=f"environments {which}" if self.count > 1 else "",
            expected="reset() at the start, and again after an episode was truncated",
        )

    # --- Information --------------------------------------------------------------------------------------------------

    def step_info(self, row: int) -> dict[str, Any]:
        """Return the entries of ``info`` after a step: raw statistics, reward terms and the time."""
        stats = self.stats[row].tolist()
        interval: dict[str, float] = self._interval.copy()  # faster than filling an empty dictionary
        interval.update(zip(self.columns, stats, strict=True))
        return {
            "interval": interval,
            "reward_terms": dict(zip(self.terms, self.reward_terms[row].tolist(), strict=True)),
            "time_s": stats[self.time_column],
        }

    def end_info(self, index: int, learner: int = 0) -> dict[str, Any]:
        """Return the entries of ``info`` at the end of an episode: a learner's summary, path, seed and hash."""
        episode = self.episodes[index]
        assert episode is not None
        return {
            "summary": self.summaries(index)[learner],
            "path": dict(episode.ways[learner] if episode.ways else episode.path),
            "simulator_seed": episode.seed,
            "trajectory_hash": self.trajectory_hash(index),
        }

    def extra_infos(self) -> dict[str, npt.NDArray[Any]]:
        """Return further entries of :meth:`step_info`: arrays with one number per row."""
        return {}

    @abstractmethod
    def summaries(self, index: int) -> list[dict[str, Any]]:
        """Return the summary of the episode so far for each learner."""

    @abstractmethod
    def trajectory_hash(self, index: int) -> str:
        """Return a hash of the trajectory of the episode so far.

        Raises:
            ConfigError: No episode has begun.
        """

    def _check_begun(self, index: int) -> None:
        if self.episodes[index] is None:
            raise ConfigError("call-order", "no episode has begun", expected="reset() first")

    @abstractmethod
    def refresh_privileged(self) -> Numbers:
        """Return the current ground truth about the paths, one row per learner. The next call overwrites the array."""

    @abstractmethod
    def refresh_labels(self) -> tuple[Floats, Numbers]:
        """Return the decisions of the agent's expert for all rows that are due now.

        The call does not change the episodes. The next call overwrites the arrays.

        Returns:
            Actions (rows × action size; a discrete action is its index), and the expert's target (rows): bit/s if the
            agent controls the rate, else packets. NaN in rows that are not due or have no label yet.

        Raises:
            ConfigError: The agent has no expert, or its expert does not work here.
        """

    @abstractmethod
    def refresh_label_distances(self) -> Numbers:
        """Return the distance between the expert's target and the result of each discrete action (rows × actions).

        The expert's measure decides the unit: packets, bit/s, or the logarithm of a ratio. NaN in rows without label.

        Raises:
            ConfigError: As :meth:`refresh_labels`.
        """

    def _check_taught(self) -> None:
        if self.settings.agent.expert is None:
            raise ConfigError(
                "no-expert", "an agent without expert", where="agent.expert", expected="an expert, such as best_window"
            )

    def privileged_info(self, row: int) -> dict[str, float]:
        """Return one row of the ground truth of :meth:`refresh_privileged`, by name with unit."""
        return dict(zip(self.privileged_names, self.privileged[row].tolist(), strict=True))

    # --- Pictures -----------------------------------------------------------------------------------------------------

    def _note(self) -> None:
        self.refresh_privileged()
        for row, history in enumerate(self.histories):
            if self.closed[row]:
                interval = dict(zip(self.columns, self.stats[row].tolist(), strict=True))
                history.add(interval, self.privileged_info(row), self.actions[row], float(self.reward[row]))


def check_options(options: Mapping[str, Any] | None, known: Sequence[str] = OPTIONS) -> None:
    """Raise :class:`ConfigError` for an unknown option of ``reset``."""
    for name in options or ():
        if name not in known:
            raise ConfigError(
                "unknown-argument",
                f"unknown option {shown(name)}",
                where="options",
                expected=" or ".join(map(repr, known)),
                hint=did_you_mean(str(name), known),
            )
