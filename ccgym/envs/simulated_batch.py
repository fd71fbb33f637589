"""Simulated episodes side by side in the native core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from ccgym.config.catalog import resolve_trace
from ccgym.envs.batch import RUNNING, EpisodeBatch, Floats, Numbers
from ccgym.envs.episode import Episode
from ccgym.envs.rollout import Rollout
from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError, SimulationError

if TYPE_CHECKING:
    from ccgym import _core


@dataclass(frozen=True)
class EpisodeState:
    """An episode under way, as plain data: an :class:`Episode` with the names of its traces, and its actions so far."""

    spec: str
    traces: list[str]
    path: dict[str, Any]
    seed: int
    actions: Floats

    def episode(self) -> Episode:
        """The episode that it is a state of."""
        traces = {name: resolve_trace(name).load() for name in self.traces}
        return Episode(self.spec, traces, self.path, self.seed)


class SimulatedBatch(EpisodeBatch):
    """Episodes in virtual time, exact from their seeds.

    Args:
        settings: As in :class:`EpisodeBatch`; so are ``count``, ``threads`` and ``history``.
        journal: Whether to keep the actions of the episodes under way, for :meth:`capture`.
    """

    def __init__(
        self, settings: Settings, count: int, threads: int = 1, *, history: bool = False, journal: bool = False
    ) -> None:
        super().__init__(settings, count, threads, history=history)
        rows = count * self.learners
        self._journal = np.zeros((rows, 512, self._native.action_size), dtype=np.float32) if journal else None
        self._rows = np.arange(rows)
        self._labels = (np.full_like(self.actions, np.nan), np.full(rows, np.nan))
        self._label_distances = np.full((rows, len(self.agent["action"]) if self.discrete else 0), np.nan)

    @override
    def _start(self, index: int, episode: Episode) -> None:
        try:
            self._native.reset(index, episode.spec, episode.traces, self.settings.steps or 0, self.obs)
        except ValueError as error:
            raise SimulationError(
                f"the simulator refused the episode: {error}", hint=f"the path is {episode.path}"
            ) from None
        self._native.due(self.due)

    @override
    def _advance(self) -> None:
        if self._journal is not None:
            self._note_actions(self._journal)
        self._native.step(self.actions, self.obs, self.reward, self.reward_terms, self.stats, self.due, self.ended)

    def roll(self, actor: _core.Actor, rollout: Rollout, bounds: tuple[Floats, Floats]) -> bool:
        """Let a policy decide in every environment until the rollout is full there or the episode has ended.

        Args:
            actor: The policy.
            rollout: What was decided so far; it grows.
            bounds: What the policy's actions are clipped to.

        Returns:
            Whether some episode has ended. It must be begun again before the next call.

        Raises:
            ConfigError: An episode has not begun, or has ended.
        """
        if not self._running:
            raise self._not_running()
        before = rollout.taken.astype(np.int64)
        self._native.rollout(
            actor, rollout.noise, rollout.taken, rollout.observations, rollout.privileged, rollout.actions,
            rollout.rewards, self.obs, self.privileged, self.returns, self.term_sums, self.ended,
        )  # fmt: skip
        after = rollout.taken.astype(np.int64)
        if self._journal is not None:
            lengths = self.lengths.tolist()
            journal = self._room(self._journal, int((self.lengths + after - before).max()))
            for row, (start, end) in enumerate(zip(before.tolist(), after.tolist(), strict=True)):
                journal[row, lengths[row] : lengths[row] + end - start] = np.clip(
                    rollout.actions[row, start:end], *bounds
                )
        self.lengths += after - before
        self.due[:] = self.ended == RUNNING
        self._running = not self.ended.any()
        return not self._running

    @override
    def summaries(self, index: int) -> list[dict[str, Any]]:
        summaries: list[dict[str, Any]] = json.loads(self._native.summary(index))
        return summaries

    @override
    def trajectory_hash(self, index: int) -> str:
        self._check_begun(index)
        text: str = self._native.trajectory_hash(index)
        return text

    @override
    def refresh_privileged(self) -> Numbers:
        self._native.truth(self.privileged)
        return self.privileged

    @override
    def refresh_labels(self) -> tuple[Floats, Numbers]:
        self._check_taught()
        self._native.labels(*self._labels)
        return self._labels

    @override
    def refresh_label_distances(self) -> Numbers:
        self._check_taught()
        self._native.label_distances(self._label_distances)
        return self._label_distances

    # --- Copies -------------------------------------------------------------------------------------------------------

    def _note_actions(self, journal: Floats) -> None:
        self._room(journal, int(self.lengths.max()) + 1)[self._rows, self.lengths] = self.actions

    def _room(self, journal: Floats, decisions: int) -> Floats:
        """The journal, enlarged if need be, with room for so many decisions of an episode."""
        while decisions > journal.shape[1]:
            journal = self._journal = np.concatenate([journal, np.zeros_like(journal)], axis=1)
        return journal

    def capture(self) -> list[EpisodeState]:
        """What :meth:`restore` needs to continue the episodes under way: what they are, and the actions so far.

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
