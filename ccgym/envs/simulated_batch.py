"""Simulated episodes side by side in the native core."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from ccgym.config.catalog import resolve_trace
from ccgym.envs.batch import RUNNING, EpisodeBatch, Floats, Numbers
from ccgym.envs.episode import Episode
from ccgym.envs.rollout import Rollout
from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError, SimulationError, explained

if TYPE_CHECKING:
    from ccgym import _core
    from ccgym.schemes.policies import LearnedPolicy


@dataclass(frozen=True)
class EpisodeState:
    """An episode under way, as plain data: an :class:`Episode` with the names of its traces, and its actions so far."""

    spec: str
    traces: list[str]
    path: dict[str, Any]
    seed: int
    actions: Floats
    """The learners' one after the other."""
    decisions: list[int] = field(default_factory=list)
    """How many of them are each learner's; empty where there is a single one."""
    ways: list[dict[str, Any]] = field(default_factory=list)
    """As in :class:`Episode`."""

    def episode(self) -> Episode:
        """The episode that it is a state of."""
        traces = {name: resolve_trace(name).load() for name in self.traces}
        learners = max(1, len(self.decisions))
        return Episode(self.spec, traces, self.path, self.seed, learners, ways=tuple(self.ways))

    def by_learner(self) -> list[Floats]:
        """The actions of each learner."""
        return np.split(self.actions, np.cumsum(self.decisions)[:-1]) if self.decisions else [self.actions]


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
        self._open = np.zeros(rows, dtype=np.uint8)
        self.deciding_truth = np.zeros_like(self.privileged)
        """Ground truth when the decision in force, or due, was taken; known after :meth:`note_truth`, :meth:`roll` and
        :meth:`restore`."""
        self._drawn = np.zeros_like(self.actions)
        """Actions in force as a rollout drew them."""
        self._labels = (np.full_like(self.actions, np.nan), np.full(rows, np.nan))
        self._label_distances = np.full((rows, len(self.agent["action"]) if self.discrete else 0), np.nan)

    @override
    def _start(self, index: int, episode: Episode) -> None:
        try:
            self._native.reset(index, episode.spec, episode.traces, self.settings.steps or 0, self.obs)
        except ValueError as error:
            refused = explained(SimulationError, error, "simulation-refused", where="episode")
            refused.hint = "; ".join(filter(None, (refused.hint, f"the path is {episode.path}")))
            raise refused from None
        self._native.due(self.due)

    @override
    def _advance(self) -> bool:
        if self._journal is not None:
            rows = np.flatnonzero(self.due)
            self._room(self._journal, int(self.lengths.max()) + 1)[rows, self.lengths[rows]] = self.actions[rows]
        return self._native.step(
            self.actions, self.obs, self.reward, self.reward_terms, self.stats, self.due, self.ended
        )

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
        before, lengths = rollout.taken.astype(np.int64), self.lengths.copy()
        self._native.rollout(
            actor, rollout.noise, rollout.decided, rollout.taken, rollout.learners, rollout.observations,
            rollout.privileged, rollout.actions, rollout.rewards, self.obs, self.deciding_truth, self._drawn,
            self.returns, self.term_sums, self.lengths, self.ended,
        )  # fmt: skip
        self._native.due(self.due)
        self.due &= np.repeat(self.ended == RUNNING, self.learners)
        self._native.open(self._open)
        if self._journal is not None:
            journal = self._room(self._journal, int(self.lengths.max()) + 1)
            spans = zip(before.tolist(), rollout.taken.tolist(), strict=True)
            for index, (start, end) in enumerate(spans):
                whose = rollout.learners[index, start:end]
                for learner in range(self.learners):
                    row = index * self.learners + learner
                    mine = rollout.actions[index, start:end][whose == learner]
                    journal[row, lengths[row] : lengths[row] + len(mine)] = np.clip(mine, *bounds)
            still = np.flatnonzero(self._open)
            journal[still, self.lengths[still]] = np.clip(self._drawn[still], *bounds)
        self._running = not self.ended.any()
        return not self._running

    def write_bootstrap_state(self, rollout: Rollout) -> None:
        """Write to a full rollout what its learners decide on next, or have an open decision on."""
        rollout.last_observations[:], rollout.last_privileged[:] = self.obs, self.deciding_truth
        rollout.last_actions[:], rollout.open[:] = self._drawn, self._open == 1

    def note_truth(self) -> None:
        """All episodes have just begun: the decisions that are due are taken on the ground truth of now."""
        self.deciding_truth[:] = self.refresh_privileged()

    def set_earlier(self, policies: Mapping[str, LearnedPolicy], drawn: Sequence[str]) -> None:
        """See :meth:`ccgym.envs.SB3LinkVecEnv.set_earlier`."""
        self.earlier = replace(self.earlier, policies=tuple(drawn))
        natives = {key: policy.native for key, policy in policies.items()}
        self._native.set_policies({**self._native_policies, **natives})

    @override
    def summaries(self, index: int) -> list[dict[str, Any]]:
        summaries: list[dict[str, Any]] = json.loads(self._native.summary(index))
        if self.learners > 1:
            index_of_fairness = jain([one["fair_share_ratio"] for one in summaries if one["steps"] > 0])
            for one in summaries:
                one["jain"] = index_of_fairness
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
            raise ConfigError("argument-missing", "a batch without journal", expected="journal=True when it is made")
        if not self._running:
            raise self._not_running()
        self._native.open(self._open)
        decisions = (self.lengths + self._open).reshape(self.count, self.learners).tolist()
        states = []
        for index, episode in enumerate(self.episodes):
            assert episode is not None
            rows = range(index * self.learners, index * self.learners + episode.learners)
            taken = [self._journal[row, :decided] for row, decided in zip(rows, decisions[index], strict=False)]
            states.append(
                EpisodeState(
                    spec=episode.spec,
                    traces=list(episode.traces),
                    path=dict(episode.path),
                    seed=episode.seed,
                    actions=np.concatenate(taken),
                    decisions=decisions[index][: episode.learners] if self.learners > 1 else [],
                    ways=[dict(way) for way in episode.ways],
                )
            )
        return states

    def capture_open(self) -> dict[str, Any]:
        """What repeating the decisions does not bring back where several flows learn.

        Returns:
            Actions as a rollout drew them, and the ground truth when they were taken.
        """
        return {"drawn": self._drawn.copy(), "truth": self.deciding_truth.copy()} if self.learners > 1 else {}

    def restore(self, states: Sequence[EpisodeState], opened: Mapping[str, Any] | None = None) -> None:
        """Bring every episode to where it was, by repeating it: the same actions give the same packets.

        Takes as long as the longest of the episodes did. All episodes step together, so shorter ones are rehearsed
        until it is time to begin.

        Args:
            states: What :meth:`capture` gave.
            opened: What :meth:`capture_open` gave.
        """
        if len(states) != self.count:
            raise ConfigError(
                "resume-changed", f"the state of {len(states)} episodes", expected=f"that of {self.count}"
            )
        episodes = [state.episode() for state in states]
        actions = [state.by_learner() for state in states]
        longest = max(len(state.actions) for state in states)
        for index, episode in enumerate(episodes):
            self._begin(index, episode)
        # A step is one decision of each episode, of the learner whose turn it is.
        for left in range(longest, 0, -1):
            begun = [len(state.actions) - left for state in states]
            for index, done in enumerate(begun):
                if done == 0 or self.ended[index] != RUNNING:
                    self._begin(index, episodes[index])
            for row in np.flatnonzero(self.due).tolist():
                index, learner = divmod(row, self.learners)
                self.actions[row] = actions[index][learner][self.lengths[row]] if begun[index] >= 0 else 0.0
            self.step()
        for index, state in enumerate(states):
            if len(state.actions) == 0 and longest > 0:
                self._begin(index, episodes[index])
        self.note_truth()
        if opened:
            self._drawn[:], self.deciding_truth[:] = opened["drawn"], opened["truth"]


def jain(shares: Sequence[float | None]) -> float | None:
    """Jain's index of what flows got of their fair shares: (Σx)² / (n·Σx²), from 1/n to 1 (equal).

    Args:
        shares: Throughput over the fair share of each (Jain, Chiu and Hawe, 1984).

    Returns:
        None for fewer than two flows, or where nothing is known of the shares.
    """
    known = [share for share in shares if share is not None]
    squares = sum(share * share for share in known)
    return sum(known) ** 2 / (len(known) * squares) if len(known) > 1 and squares > 0 else None
