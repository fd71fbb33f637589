"""Parallel episodes with real packets: each in its own run process, in real time.

A run process does not wait. Between an interval and its action, the flow continues with the last action. An interval
that closes before the action arrives is a *missed deadline*. A step returns the first interval in which its own action
was in force, and skips the intervals before.
"""

from __future__ import annotations

import os
import warnings
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from ccgym.envs.batch import RUNNING, STEPS_DONE, TIME_DONE, EpisodeBatch, Numbers
from ccgym.envs.episode import Episode
from ccgym.envs.real_episode import Learner, RealEpisode
from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError

if TYPE_CHECKING:
    from ccgym.emulation.control_pb2 import Ended, Interval


class RealBatch(EpisodeBatch):
    """Episodes over paths that this machine emulates, with the shells of ccgym or mahimahi."""

    def __init__(self, settings: Settings, count: int, *, history: bool = False) -> None:
        super().__init__(settings, count, history=history)
        rows = count * self.learners
        self.missed = np.zeros(rows, dtype=np.int64)
        """Deadlines missed in the last step."""
        self.missed_in_episode = np.zeros(rows, dtype=np.int64)
        """Deadlines missed in the episode."""
        self.missed_deadlines: int = 0
        self.latency = np.zeros(rows)
        """Time from the close of an interval until the action for it was in force, last action, seconds."""
        self.skipped_reward = np.zeros(rows)
        """Sum of the rewards of the intervals that the last step skipped (rows)."""
        # Experts work only in the simulator: on a real path an expert would only use processor time.
        self._deployed = replace(settings, agent=settings.agent.model_copy(update={"expert": None}))
        self._real: list[RealEpisode | None] = [None] * count
        self._hashes = [0] * rows
        self._summaries: list[list[dict[str, Any]]] = [[] for _ in range(count)]
        self._shape = (
            self.obs.shape[1], self.actions.shape[1], len(self.terms), len(self.columns), len(self.privileged_names),
        )  # fmt: skip
        # A batch that is never closed is closed when Python collects it, or at exit.
        self._finalizer = weakref.finalize(self, _close_all, self._real)
        processors = os.cpu_count() or 1
        if count > max(1, processors // 2):
            warnings.warn(
                f"{count} real paths at once on {processors} processors: packets may be late, and decisions may "
                "miss their deadlines",
                stacklevel=4,
            )

    @override
    def _start(self, index: int, episode: Episode) -> None:
        self._end(index)
        rows = range(index * self.learners, (index + 1) * self.learners)
        real = RealEpisode(self._deployed, episode, self._shape, self.policies)
        self._real[index] = real
        self.missed_in_episode[rows.start : rows.stop] = 0
        self._summaries[index] = []
        for row, learner in zip(rows, real.learners, strict=True):
            self.due[row] = learner.due
            if learner.interval is not None:
                self._write(row, learner.interval)

    @override
    def _advance(self) -> bool:
        try:
            running = [(index, real) for index, real in enumerate(self._real) if real is not None]
            for index, real in running:
                for place, learner in enumerate(real.learners):
                    if learner.due:
                        learner.act(self.actions[index * self.learners + place].tolist())
            for index, real in running:
                real.wait()
                self._collect(index, real)
        except BaseException:
            # After an interruption or a failure of a path, no episode of this batch can continue.
            self.close()
            raise
        return bool(self.ended.any())

    def _collect(self, index: int, real: RealEpisode) -> None:
        """Write the latest intervals of an episode's learners; end the episode at its limit."""
        first = index * self.learners
        over = all(learner.ended is not None for learner in real.learners)
        for place, learner in enumerate(real.learners):
            row = first + place
            self.due[row] = learner.due
            if learner.due or (over and learner.was_cut_off):
                self._tell(row, learner)
            else:
                self.reward[row] = 0.0
                self.reward_terms[row] = 0.0
                self._miss(row, 0, 0.0)
        limit = self.settings.steps
        rows = slice(first, first + self.learners)
        if over:
            self.ended[index] = TIME_DONE
        elif limit is not None and (self.lengths[rows] + self.due[rows] >= limit).any():
            self.ended[index] = STEPS_DONE
        if self.ended[index] != RUNNING:
            self._finish(index, real)

    def _tell(self, row: int, learner: Learner) -> None:
        assert learner.interval is not None
        interval = learner.interval
        self._write(row, interval)
        self.reward[row] = interval.reward
        self.reward_terms[row] = interval.reward_terms
        self.stats[row] = interval.statistics
        self.latency[row] = interval.decision_latency_ns / 1e9
        self._miss(row, learner.missed, learner.skipped_reward)

    def _miss(self, row: int, missed: int, reward: float) -> None:
        self.missed[row] = missed
        self.missed_in_episode[row] += missed
        self.missed_deadlines += missed
        self.skipped_reward[row] = reward

    def _write(self, row: int, interval: Interval) -> None:
        self.obs[row] = interval.observation
        self.privileged[row] = interval.truth
        self._hashes[row] = interval.trajectory_hash

    def _finish(self, index: int, real: RealEpisode) -> None:
        real.finish()
        first = index * self.learners
        for place, learner in enumerate(real.learners):
            row = first + place
            steps = int(self.lengths[row]) + 1
            summary = _summary(learner.ended) if learner.ended is not None else {}
            self._summaries[index].append(
                {**summary, "steps": steps, "missed_deadlines": int(self.missed_in_episode[row])}
            )
        self._real[index] = None

    def _end(self, index: int) -> None:
        real, self._real[index] = self._real[index], None
        if real is not None:
            real.close()

    @override
    def close(self) -> None:
        for index in range(self.count):
            self._end(index)
        super().close()

    # --- Information --------------------------------------------------------------------------------------------------

    @override
    def step_info(self, row: int) -> dict[str, Any]:
        extra = {name: column[row].item() for name, column in self.extra_infos().items()}
        return {**super().step_info(row), **extra}

    @override
    def extra_infos(self) -> dict[str, npt.NDArray[Any]]:
        """Return missed deadlines of the step and the episode, the latency of the decision, and the skipped reward."""
        return {
            "missed_deadlines": self.missed.copy(),
            "missed_deadlines_total": self.missed_in_episode.copy(),
            "decision_latency_s": self.latency.copy(),
            "skipped_reward": self.skipped_reward.copy(),
        }

    @override
    def end_info(self, index: int, learner: int = 0) -> dict[str, Any]:
        """Return the entries as in the simulator, and that the episode is not reproducible."""
        return {**super().end_info(index, learner), "backend": self.settings.backend, "reproducible": False}

    @override
    def summaries(self, index: int) -> list[dict[str, Any]]:
        """Return one summary per learner of an ended episode.

        Raises:
            ConfigError: The episode has not ended.
        """
        if not self._summaries[index]:
            raise ConfigError("call-order", "an unfinished episode", expected="an ended episode, which has results")
        return self._summaries[index]

    @override
    def trajectory_hash(self, index: int) -> str:
        """Return a hash of the statistics of all intervals so far. It differs between runs of the same episode."""
        self._check_begun(index)
        whole = 0
        for number in self._hashes[index * self.learners : (index + 1) * self.learners]:
            whole = (whole * 1_099_511_628_211 ^ number) & (2**64 - 1)
        return f"{whole:016x}"

    def _no_labels(self) -> NoReturn:
        """Raise :class:`ConfigError`: there are no labels on a real path."""
        self._check_taught()
        knows = "an expert that needs the ground truth" if self._native.expert_truths else "an expert"
        raise ConfigError(
            "backend-unsuitable",
            f"{knows} on a real path",
            where="agent.expert",
            expected="the simulator: only virtual time waits for labels",
            hint="train by imitation with backend='sim', then run the policy on a real path",
        )

    refresh_labels = refresh_label_distances = _no_labels

    @override
    def refresh_privileged(self) -> Numbers:
        """Return the ground truth at the close of the intervals; unknown values are NaN."""
        return self.privileged


def _summary(ended: Ended) -> dict[str, Any]:
    """Return the summary by name; ``None`` for absent optional fields."""
    summary: Any = ended.summary
    return {
        field.name: None if field.has_presence and not summary.HasField(field.name) else getattr(summary, field.name)
        for field in summary.DESCRIPTOR.fields
    }


def _close_all(episodes: list[RealEpisode | None]) -> None:
    for episode in episodes:
        if episode is not None:
            episode.close()
