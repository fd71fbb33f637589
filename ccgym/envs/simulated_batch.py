"""Parallel simulated episodes in the native core."""

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
    """A current episode, as plain data: an :class:`Episode` with the names of its traces, and its actions so far."""

    spec: str
    traces: list[str]
    path: dict[str, Any]
    seed: int
    actions: Floats
    """Actions of the first learner, then of the next learner, and so on."""
    decisions: list[int] = field(default_factory=list)
    """Number of actions of each learner; empty if there is only one learner."""
    ways: list[dict[str, Any]] = field(default_factory=list)
    """As in :class:`Episode`."""

    def episode(self) -> Episode:
        """Return the episode of this state."""
        traces = {name: resolve_trace(name).load() for name in self.traces}
        learners = max(1, len(self.decisions))
        return Episode(self.spec, traces, self.path, self.seed, learners, ways=tuple(self.ways))

    def by_learner(self) -> list[Floats]:
        """Return the actions of each learner."""
        return np.split(self.actions, np.cumsum(self.decisions)[:-1]) if self.decisions else [self.actions]


class SimulatedBatch(EpisodeBatch):
    """Episodes in virtual time. The seed reproduces an episode exactly.

    Args:
        settings: As in :class:`EpisodeBatch`, like ``count``, ``threads`` and ``history``.
        journal: Whether to keep the actions of the current episodes, for :meth:`capture`.
    """

    def __init__(
        self, settings: Settings, count: int, threads: int = 1, *, history: bool = False, journal: bool = False
    ) -> None:
        super().__init__(settings, count, threads, history=history)
        rows = count * self.learners
        self._journal = np.zeros((rows, 512, self._native.action_size), dtype=np.float32) if journal else None
        self._open = np.zeros(rows, dtype=np.uint8)
        self.deciding_truth = np.zeros_like(self.privileged)
        """Ground truth at the decision in force or due; valid after :meth:`note_truth`, :meth:`roll` and
        :meth:`restore`."""
        self._drawn = np.zeros_like(self.actions)
        """Actions in force, as drawn by a rollout before clipping."""
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
        """Let a policy decide in every environment until its part of the rollout is full or its episode has ended.

        Args:
            actor: The policy.
            rollout: The samples so far; the call adds samples.
            bounds: Bounds (low, high) to which the actions are clipped.

        Returns:
            Whether at least one episode has ended. It must begin again before the next call.

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
        """Write to a full rollout the observations, ground truth and actions of the next or open decisions."""
        rollout.last_observations[:], rollout.last_privileged[:] = self.obs, self.deciding_truth
        rollout.last_actions[:], rollout.open[:] = self._drawn, self._open == 1

    def note_truth(self) -> None:
        """Store the current ground truth for the decisions that are due; call it when all episodes have just begun."""
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
        """Return the journal, enlarged if necessary, with space for ``decisions`` decisions of an episode."""
        while decisions > journal.shape[1]:
            journal = self._journal = np.concatenate([journal, np.zeros_like(journal)], axis=1)
        return journal

    def capture(self) -> list[EpisodeState]:
        """Return the state of the current episodes for :meth:`restore`: the episodes, and their actions so far.

        Raises:
            ConfigError: The batch keeps no journal, or an episode has ended or not begun.
        """
        if self._journal is None:
            raise ConfigError("argument-missing", "a batch without journal", expected="a batch made with journal=True")
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
        """Return the state that repeating the decisions does not restore if several flows learn.

        Returns:
            Actions as drawn by a rollout, and the ground truth at these decisions.
        """
        return {"drawn": self._drawn.copy(), "truth": self.deciding_truth.copy()} if self.learners > 1 else {}

    def restore(self, states: Sequence[EpisodeState], opened: Mapping[str, Any] | None = None) -> None:
        """Restore every episode by repeating it: the same actions result in the same packets.

        This takes as long as the longest episode took. All episodes step together, so a shorter episode runs with
        other actions first, and begins again when its number of steps is left.

        Args:
            states: Result of :meth:`capture`.
            opened: Result of :meth:`capture_open`.
        """
        if len(states) != self.count:
            raise ConfigError(
                "resume-changed", f"the state of {len(states)} episodes", expected=f"the state of {self.count}"
            )
        episodes = [state.episode() for state in states]
        actions = [state.by_learner() for state in states]
        longest = max(len(state.actions) for state in states)
        for index, episode in enumerate(episodes):
            self._begin(index, episode)
        # A step is one decision of each episode, by the learner that is due.
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
    """Return Jain's fairness index of the flows' throughputs over their fair shares: (Σx)² / (n·Σx²), 1/n to 1 (equal).

    Args:
        shares: Throughput over fair share, per flow (Jain, Chiu and Hawe, 1984); ``None``: unknown.

    Returns:
        The index; ``None`` for fewer than two flows, or if all shares are unknown.
    """
    known = [share for share in shares if share is not None]
    squares = sum(share * share for share in known)
    return sum(known) ** 2 / (len(known) * squares) if len(known) > 1 and squares > 0 else None
