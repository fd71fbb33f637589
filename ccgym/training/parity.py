"""Whether an exported policy does what the trained one does: part of every export, which fails otherwise.

Three comparisons, on episodes over held-out paths:

- **as trained**: the native action for every recorded observation against SB3's in float32. They may differ by
  :data:`TOLERANCE` of the action, or of 1 where it is smaller: float32 itself is not finer after a few layers. Of a
  discrete policy the difference is how much less the chosen operation scores than the best one.
- **exact**: the native action against torch's in float64, both rounded to float32. They must be equal.
- **trajectory**: the same simulation decided by torch, step by step from outside, and by the native policy inside.
  All packets must be sent, dropped and acknowledged at the same nanosecond: the hashes must be equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ccgym import _core
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.errors import CcgymError, SimulationError, explained
from ccgym.schemes.policies import LearnedPolicy
from ccgym.training.onnx_graph import Floats
from ccgym.training.torch_policy import Exportable
from ccgym.units import NS_PER_S

TOLERANCE: Final = 1e-5
"""Largest difference from the policy as trained, relative to max(1, |action|)."""

EPISODES: Final = 5
"""Held-out episodes of a check."""

TRAJECTORY_NS: Final = 10 * NS_PER_S
"""Longest virtual time of a compared trajectory, in nanoseconds."""


class ParityError(CcgymError, RuntimeError):
    """An exported policy does not do what the trained one does."""


@dataclass(frozen=True)
class Trajectories:
    """Hashes of one simulation, decided by torch from outside and by the native policy inside."""

    outside: str
    inside: str


@dataclass(frozen=True)
class Parity:
    """What was compared, and how large the differences were."""

    episodes: int
    decisions: int
    max_abs_difference: float
    """Largest difference from the policy as trained, relative to max(1, |action|)."""
    inexact: int
    """Decisions that are not those of torch in float64, rounded to float32."""
    trajectories: tuple[Trajectories, ...]

    def require(self, where: str) -> None:
        """Raise :class:`ParityError` unless the policy passes; ``where`` says which policy it is."""
        worst = self.max_abs_difference
        if not worst <= TOLERANCE:
            raise ParityError(
                "policy-differs",
                f"the exported policy is {worst:.3g} away from the trained one, in {self.decisions} decisions",
                where=where,
                expected=f"{TOLERANCE:g} or less",
                hint="nothing was written; very large weights or statistics of features that hardly vary do this",
            )
        different = sum(one.outside != one.inside for one in self.trajectories)
        if self.inexact or different:
            raise ParityError(
                "policy-differs",
                f"{self.inexact} of {self.decisions} decisions differ from torch's in float64, "
                f"and {different} of {len(self.trajectories)} trajectories",
                where=where,
                expected="none: the same simulation, decided by torch and by the exported policy",
                hint="nothing was written; this is a bug of ccgym, please report it with the run directory",
            )

    def as_dict(self) -> dict[str, Any]:
        """For the card."""
        return {
            "episodes": self.episodes,
            "decisions": self.decisions,
            "max_abs_difference": self.max_abs_difference,
            "tolerance": TOLERANCE,
            "relative_to": "max(1, |action|)",
            "trajectories": [one.inside for one in self.trajectories],
        }


def check_parity(
    policy: Exportable, exported: LearnedPolicy, settings: Settings, seed: int, episodes: int = EPISODES
) -> Parity:
    """Compare a trained policy with its export; see the module's text.

    Args:
        policy: As torch has it.
        exported: As the native core has it.
        settings: The environment's: paths and length of the episodes.
        seed: Decides which paths are drawn.
        episodes: How many.
    """
    alone = replace(settings, learners=settings.learners[:1])
    worst, inexact, decisions = 0.0, 0, 0
    trajectories = []
    for index in range(episodes):
        batch = SimulatedBatch(alone, 1)
        batch.begin(0, np.random.default_rng([seed, index]))
        observations = np.array(_decide_all(policy, batch), dtype=np.float32)
        end_ns = round(1e9 * batch.stats[0, batch.time_column])
        decisions += len(observations)
        # No longer than the episode: later the policy is where it never was in training, and may do anything.
        duration_ns = min(end_ns, TRAJECTORY_NS)
        trajectories.append(trajectory_parity(policy, exported, alone, [seed, index], duration_ns))
        trained, exact, native = (
            _answers(decide, observations)
            for decide in (policy.decide_as_trained, policy.decide, exported.native.decide)
        )
        difference = differences(trained, native)
        # NaN differs from everything.
        worst = max(worst, float(np.where(np.isfinite(difference), difference, np.inf).max(initial=0.0)))
        inexact += int((native != actions_of(exact, native.shape[1])).any(axis=1).sum())
    return Parity(
        episodes=episodes,
        decisions=decisions,
        max_abs_difference=worst,
        inexact=inexact,
        trajectories=tuple(trajectories),
    )


def trajectory_parity(
    policy: Exportable,
    exported: LearnedPolicy,
    settings: Settings,
    seed: Sequence[int],
    duration_ns: int = TRAJECTORY_NS,
) -> Trajectories:
    """Run one simulation twice: decided by torch from outside, and by the exported policy inside.

    Args:
        policy: As torch has it; evaluated exactly.
        exported: As the native core has it.
        settings: The environment's; its paths are drawn from.
        seed: Decides the path and the simulator's streams.
        duration_ns: Virtual time, in nanoseconds.
    """
    batch = SimulatedBatch(replace(settings, steps=None, duration_ns=duration_ns), 1)
    batch.begin(0, np.random.default_rng(seed))
    episode = batch.episodes[0]
    assert episode is not None
    _decide_all(policy, batch)
    spec = json.loads(episode.spec)
    spec["flows"][0]["params"]["policy"] = exported.key
    try:
        result = _core.simulate(json.dumps(spec), dict(episode.traces), {exported.key: exported.native})
    except ValueError as error:
        raise explained(SimulationError, error, "simulation-refused", where="simulation") from error
    inside = str(json.loads(result.summary())["trajectory_hash"])
    return Trajectories(outside=batch.trajectory_hash(0), inside=inside)


def differences(trained: Floats, actions: Floats) -> Floats:
    """How far actions are from a trained network's answers, relative to max(1, |answer|).

    Args:
        trained: Answers of the network, one row per decision: actions, or the scores of a discrete policy.
        actions: What was done: actions, or numbers of operations.
    """
    expected, found = trained, actions
    if actions.shape != trained.shape:
        expected = trained.max(axis=1, keepdims=True)
        found = np.take_along_axis(trained, actions.astype(np.int64), axis=1)
    distance: Floats = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
    return distance


def actions_of(answers: Floats, components: int) -> Floats:
    """The actions that a network's answers mean: themselves, or the number of the operation with the largest score.

    Args:
        answers: One row per flow.
        components: How many numbers an action has; scores are more than the one that is wanted.
    """
    if answers.shape[1] == components:
        return answers
    largest: Floats = answers.argmax(axis=1, keepdims=True).astype(np.float32)
    return largest


def _decide_all(policy: Exportable, batch: SimulatedBatch) -> list[Floats]:
    """Decide an episode that has begun to its end; its observations."""
    state: Floats | None = None
    seen = []
    while not batch.ended[0]:
        seen.append(batch.obs[0].copy())
        answers, state = policy.decide(batch.obs, state)
        batch.actions[:] = actions_of(answers, batch.actions.shape[1])
        batch.step()
    return seen


def _answers(decide: Callable[..., Any], observations: Floats) -> Floats:
    """Answers to an episode's observations, one after the other, by what keeps a state from one to the next."""
    state, rows = None, []
    for one in observations[:, np.newaxis]:
        answer, state = decide(one, state)
        rows.append(answer[0])
    return np.array(rows, dtype=np.float32)
