"""Comparison of an exported policy with the trained policy: part of every export, which fails if they differ.

Three comparisons, on episodes over held-out paths:

- **as trained**: the native action for every recorded observation against SB3's in float32. They may differ by
  :data:`TOLERANCE` of the action, or of 1 if it is smaller: float32 is not more precise after a few layers. For a
  discrete policy, the difference is the score of the best operation minus the score of the chosen operation.
- **exact**: the native action against torch's in float64, both rounded to float32. They must be equal.
- **trajectory**: the same simulation with decisions by torch, step by step from outside, and by the native policy.
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
"""Max difference from the policy as trained, relative to max(1, |action|)."""

EPISODES: Final = 5
"""Number of held-out episodes in a check."""

TRAJECTORY_NS: Final = 10 * NS_PER_S
"""Max virtual time of a compared trajectory, nanoseconds."""


class ParityError(CcgymError, RuntimeError):
    """An exported policy does not decide like the trained policy."""


@dataclass(frozen=True)
class Trajectories:
    """Hashes of one simulation, with decisions by torch from outside and by the native policy inside."""

    outside: str
    inside: str


@dataclass(frozen=True)
class Parity:
    """The result of a comparison: numbers of decisions, and differences."""

    episodes: int
    decisions: int
    max_abs_difference: float
    """Largest difference from the policy as trained, relative to max(1, |action|)."""
    inexact: int
    """Number of decisions that differ from torch's in float64, rounded to float32."""
    trajectories: tuple[Trajectories, ...]

    def require(self, where: str) -> None:
        """Raise :class:`ParityError` unless the policy passes; ``where`` names the policy."""
        worst = self.max_abs_difference
        if not worst <= TOLERANCE:
            raise ParityError(
                "policy-differs",
                f"the exported policy differs by {worst:.3g} from the trained policy, in {self.decisions} decisions",
                where=where,
                expected=f"at most {TOLERANCE:g}",
                hint="nothing was written; look for very large weights, or features that hardly vary",
            )
        different = sum(one.outside != one.inside for one in self.trajectories)
        if self.inexact or different:
            raise ParityError(
                "policy-differs",
                f"{self.inexact} of {self.decisions} decisions differ from torch's in float64, "
                f"and {different} of {len(self.trajectories)} trajectories",
                where=where,
                expected="none: the same simulation, decided by torch and by the exported policy",
                hint="nothing was written; this is a bug in ccgym: please report it with the run directory",
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of the card."""
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
        policy: The policy in torch.
        exported: The exported policy in the native core.
        settings: Settings of the environment: paths and length of the episodes.
        seed: Seed of the paths.
        episodes: Number of episodes.
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
        # At most the length of an episode: later states do not occur in training, and the policy may do anything.
        duration_ns = min(end_ns, TRAJECTORY_NS)
        trajectories.append(trajectory_parity(policy, exported, alone, [seed, index], duration_ns))
        trained, exact, native = (
            _answers(decide, observations)
            for decide in (policy.decide_as_trained, policy.decide, exported.native.decide)
        )
        difference = differences(trained, native)
        # NaN is different from every number.
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
    """Run one simulation twice: with decisions by torch from outside, and by the exported policy inside.

    Args:
        policy: The policy in torch; evaluated exactly.
        exported: The exported policy in the native core.
        settings: Settings of the environment; the path is drawn from its distribution.
        seed: Seed of the path and of the simulator's streams.
        duration_ns: Virtual time, nanoseconds.
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
    """Return the differences of actions from a trained network's outputs, relative to max(1, |output|).

    Args:
        trained: Outputs of the network, one row per decision: actions, or the scores of a discrete policy.
        actions: The taken actions: actions, or indices of operations.
    """
    expected, found = trained, actions
    if actions.shape != trained.shape:
        expected = trained.max(axis=1, keepdims=True)
        found = np.take_along_axis(trained, actions.astype(np.int64), axis=1)
    distance: Floats = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
    return distance


def actions_of(answers: Floats, components: int) -> Floats:
    """Return the actions of a network's outputs: the outputs, or the index of the operation with the largest score.

    Args:
        answers: Outputs, one row per flow.
        components: Number of values in an action; if there are more outputs, they are scores.
    """
    if answers.shape[1] == components:
        return answers
    largest: Floats = answers.argmax(axis=1, keepdims=True).astype(np.float32)
    return largest


def _decide_all(policy: Exportable, batch: SimulatedBatch) -> list[Floats]:
    """Decide in an episode that has begun until its end; return its observations."""
    state: Floats | None = None
    seen = []
    while not batch.ended[0]:
        seen.append(batch.obs[0].copy())
        answers, state = policy.decide(batch.obs, state)
        batch.actions[:] = actions_of(answers, batch.actions.shape[1])
        batch.step()
    return seen


def _answers(decide: Callable[..., Any], observations: Floats) -> Floats:
    """Return the outputs for an episode's observations, one after the other, with the state between them."""
    state, rows = None, []
    for one in observations[:, np.newaxis]:
        answer, state = decide(one, state)
        rows.append(answer[0])
    return np.array(rows, dtype=np.float32)
