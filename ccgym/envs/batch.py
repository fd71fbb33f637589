"""Episodes side by side in the native core, and the arrays that they write into.

Everything that the environments' interfaces (Gymnasium's two, stable-baselines3, PettingZoo) have in common.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.config.catalogue import resolve_trace
from ccgym.envs.episode import Episode, draw_episode
from ccgym.envs.render import History
from ccgym.envs.settings import Settings, read_path
from ccgym.errors import ConfigError, SimulationError

RUNNING: Final = 0
STEPS_DONE: Final = 1
TIME_DONE: Final = 2
"""What the native core says of an episode after a step."""

Numbers = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EpisodeState:
    """An episode under way, as plain data."""

    spec: str
    """The simulator's specification, JSON."""
    traces: list[str]
    """Names of the traces in it."""
    path: dict[str, Any]
    """The drawn numbers of the path."""
    seed: int
    """Seed of the simulator's random streams."""
    actions: Floats
    """Actions so far, one row each."""

    def episode(self) -> Episode:
        """The episode that it is a state of."""
        traces = {name: resolve_trace(name).load() for name in self.traces}
        return Episode(self.spec, traces, self.path, self.seed)


class Batch:
    """``count`` episodes, each with one row per learner; row = episode · learners + learner.

    The arrays are allocated once and overwritten by every step.

    Args:
        settings: What the episodes are made of.
        count: How many run side by side.
        threads: How many threads step them (0: one per processor); the results do not depend on it.
        history: Whether to keep what pictures are drawn from.
        journal: Whether to keep the actions of the episodes under way, for :meth:`capture`.
    """

    def __init__(
        self, settings: Settings, count: int, threads: int = 1, *, history: bool = False, journal: bool = False
    ) -> None:
        from ccgym import _core

        self.settings = settings
        self.count = count
        self.learners = len(settings.learners)
        rows = count * self.learners
        try:
            self._native = _core.AgentBatch(settings.agent_json, count, self.learners, threads)
            self.face: dict[str, Any] = json.loads(_core.describe_agent(settings.agent_json))
        except ValueError as error:
            raise ConfigError(str(error), where="agent") from None
        self.discrete = settings.discrete
        self.columns = _core.AgentBatch.columns()
        """Names, with units, of an interval's statistics."""
        self.terms = self._native.terms()
        """Names of the reward's terms."""
        self.truths = _core.AgentBatch.truth_columns()
        """Names, with units, of the path's truth."""
        self.time_column = self.columns.index("time_s")
        self.obs: Floats = np.zeros((rows, self._native.observation_size), dtype=np.float32)
        self.actions: Floats = np.zeros((rows, self._native.action_size), dtype=np.float32)
        self.reward = np.zeros(rows)
        self.reward_terms = np.zeros((rows, len(self.terms)))
        self.stats = np.zeros((rows, len(self.columns)))
        self.truth: Numbers = np.zeros((rows, len(self.truths)))
        """What :meth:`refresh_truth` found."""
        self.due = np.zeros(rows, dtype=np.uint8)
        """Which rows wait for an action; the other rows of the arrays are as they were."""
        self.ended = np.full(count, TIME_DONE, dtype=np.uint8)
        """0: running; otherwise why it ended. Such an episode must begin anew before the next step."""
        self.episodes: list[Episode | None] = [None] * count
        self.returns = np.zeros(rows)
        """Sum of the rewards of the episode so far."""
        self.term_sums = np.zeros_like(self.reward_terms)
        """The same for each term."""
        self.lengths = np.zeros(rows, dtype=np.int64)
        """Decisions of the episode so far."""
        names = [row["name"] for row in self.face["action"]]
        self.histories = [History(names, discrete=self.discrete) for _ in range(rows)] if history else []
        self._journal = np.zeros((rows, 512, self._native.action_size), dtype=np.float32) if journal else None
        self._rows = np.arange(rows)
        self._running = False

    # --- Running ------------------------------------------------------------------------------------------------------

    def begin(self, index: int, rng: np.random.Generator, options: Mapping[str, Any] | None = None) -> None:
        """Draw an episode and run it to its first decision.

        Args:
            index: Which of the batch.
            rng: Decides all that is random in it.
            options: ``path``: a path to use instead of one drawn.

        Raises:
            ConfigError: An unusable path.
            SimulationError: The native core refused it.
        """
        settings = self.settings
        path = options.get("path") if options else None
        source = settings.source if path is None else read_path(path, "options['path']")
        self._begin(index, draw_episode(source, rng, settings.learners, settings.background, settings.duration_ns))

    def _begin(self, index: int, episode: Episode) -> None:
        try:
            self._native.reset(index, episode.spec, episode.traces, self.settings.steps or 0, self.obs)
        except ValueError as error:
            raise SimulationError(
                f"the simulator refused the episode: {error}", hint=f"the path is {episode.path}"
            ) from None
        rows = slice(index * self.learners, (index + 1) * self.learners)
        self.episodes[index] = episode
        self.ended[index] = RUNNING
        self._running = not self.ended.any()
        self.returns[rows] = 0.0
        self.term_sums[rows] = 0.0
        self.lengths[rows] = 0
        self._native.due(self.due)
        for history in self.histories[rows]:
            history.clear()

    def step(self) -> bool:
        """Apply the actions of the rows that are due, and run every episode to its next decision or its end.

        Returns:
            Whether some episode has ended.

        Raises:
            ConfigError: An episode has not begun, or has ended.
        """
        if not self._running:
            raise self._not_running()
        if self._journal is not None:
            self._note_actions(self._journal)
        self._native.step(self.actions, self.obs, self.reward, self.reward_terms, self.stats, self.due, self.ended)
        self._running = not self.ended.any()
        if self.learners > 1:
            # What rows that were not written hold is of an earlier step, and counts for nothing.
            idle = (self.due == 0) & (np.repeat(self.ended, self.learners) == RUNNING)
            self.reward[idle] = 0.0
            self.reward_terms[idle] = 0.0
            self.lengths += ~idle
        else:
            self.lengths += 1
        self.returns += self.reward
        self.term_sums += self.reward_terms
        if self.histories:
            self._note()
        return not self._running

    def _not_running(self) -> ConfigError:
        never = any(episode is None for episode in self.episodes)
        which = np.flatnonzero(self.ended != RUNNING).tolist()
        return ConfigError(
            "step() before reset()" if never else "step() after the end of the episode",
            where=f"environments {which}" if self.count > 1 else "",
            expected="reset() at the start, and again when an episode was truncated",
        )

    # --- Copies -------------------------------------------------------------------------------------------------------

    def _note_actions(self, journal: Floats) -> None:
        if self.lengths.max() >= journal.shape[1]:
            journal = self._journal = np.concatenate([journal, np.zeros_like(journal)], axis=1)
        journal[self._rows, self.lengths] = self.actions

    def capture(self) -> list[EpisodeState]:
        """What :meth:`restore` needs to go on with the episodes under way: what they are, and the actions so far.

        Raises:
            ConfigError: The batch keeps no journal, or an episode is not under way.
        """
        if self._journal is None:
            raise ConfigError("a batch without journal", expected="journal=True when it is made")
        if not self._running:
            raise self._not_running()
        return [
            EpisodeState(
                spec=episode.spec,
                traces=list(episode.traces),
                path=dict(episode.path),
                seed=episode.seed,
                actions=self._journal[row, : self.lengths[row]].copy(),
            )
            for row, episode in enumerate(self.episodes)
            if episode is not None
        ]

    def restore(self, states: Sequence[EpisodeState]) -> None:
        """Bring every episode to where it was, by repeating it: the same actions give the same packets.

        Takes as long as the longest of the episodes did. All lanes step together, so lanes with shorter episodes
        rehearse theirs until it is time to begin.
        """
        if len(states) != self.count:
            raise ConfigError(f"the state of {len(states)} episodes", expected=f"that of {self.count}")
        episodes = [state.episode() for state in states]
        longest = max(len(state.actions) for state in states)
        for index, episode in enumerate(episodes):
            self._begin(index, episode)
        for left in range(longest, 0, -1):
            for row, state in enumerate(states):
                done = len(state.actions) - left
                if done == 0 or self.ended[row] != RUNNING:
                    self._begin(row, episodes[row])
                self.actions[row] = state.actions[done] if done >= 0 else 0.0
            self.step()
        for row, state in enumerate(states):
            if len(state.actions) == 0 and longest > 0:
                self._begin(row, episodes[row])

    # --- What there is to know ----------------------------------------------------------------------------------------

    def step_info(self, row: int) -> dict[str, Any]:
        """What a step says beside its observation: raw statistics, the reward's terms, the time."""
        stats = self.stats[row].tolist()
        return {
            "interval": dict(zip(self.columns, stats, strict=True)),
            "reward_terms": dict(zip(self.terms, self.reward_terms[row].tolist(), strict=True)),
            "time_s": stats[self.time_column],
        }

    def end_info(self, index: int, learner: int = 0) -> dict[str, Any]:
        """What the end of an episode says: a learner's summary, the path, the seed and the hash."""
        episode = self.episodes[index]
        assert episode is not None
        return {
            "summary": self.summaries(index)[learner],
            "path": dict(episode.path),
            "simulator_seed": episode.seed,
            "trajectory_hash": self.trajectory_hash(index),
        }

    def summaries(self, index: int) -> list[dict[str, Any]]:
        """One summary per learner of the episode so far."""
        summaries: list[dict[str, Any]] = json.loads(self._native.summary(index))
        return summaries

    def trajectory_hash(self, index: int) -> str:
        """Hash of all acknowledgements of the episode so far.

        Raises:
            ConfigError: No episode has begun.
        """
        if self.episodes[index] is None:
            raise ConfigError("no episode has begun", expected="reset() first")
        text: str = self._native.trajectory_hash(index)
        return text

    def refresh_truth(self) -> Numbers:
        """The truth about the paths now, one row per learner; the next call overwrites it."""
        self._native.truth(self.truth)
        return self.truth

    def truth_info(self, row: int) -> dict[str, float]:
        """A row of what :meth:`refresh_truth` found, by name with unit."""
        return dict(zip(self.truths, self.truth[row].tolist(), strict=True))

    # --- Pictures -----------------------------------------------------------------------------------------------------

    def _note(self) -> None:
        self.refresh_truth()
        for row, history in enumerate(self.histories):
            if self.learners == 1 or self.due[row] or self.ended[row // self.learners] != RUNNING:
                interval = dict(zip(self.columns, self.stats[row].tolist(), strict=True))
                history.add(interval, self.truth_info(row), self.actions[row], float(self.reward[row]))
