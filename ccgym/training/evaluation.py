"""Measurement of a policy, or of a baseline, on the held-out paths: one episode per path, all in parallel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ccgym.training.streams import stream_seed

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.config import TrainConfig

Floats = npt.NDArray[np.float64]

ORACLE: Final = "oracle"
"""The reference of the other baselines: a scheme that knows the link."""

METRICS: Final = {
    "throughput_mbps": "throughput_mbps",
    "rtt_ms_p95": "rtt_p95_ms",
    "delay_p95_ms": "delay_p95_ms",
    "loss": "loss",
    "utilization": "utilization",
    "jain": "jain",
}
"""Tags below ``net/``; each is the mean of a field of the episodes' summaries."""


@dataclass(frozen=True)
class EvaluationResult:
    """Episodes on the held-out paths, in the paths' order."""

    rewards: Floats
    """Sum of the rewards of each episode, or their mean if evaluated per decision. With several learners on a path, the
    mean over the learners."""
    lengths: npt.NDArray[np.int64]
    """Number of decisions of each episode, of all its learners."""
    metrics: dict[str, float]
    """Means over the episodes, by the names of :data:`METRICS`."""
    terms: dict[str, float]
    """Mean contribution of each of the reward's terms over the episodes."""

    @property
    def mean_reward(self) -> float:
        """Mean reward over the episodes."""
        return float(self.rewards.mean())


@dataclass(frozen=True)
class Baselines:
    """Results of other schemes on the same paths, with the same reward and clock."""

    rewards: dict[str, float] = field(default_factory=dict)
    """Mean episode reward by scheme."""
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """Network metrics by scheme."""

    @classmethod
    def of(cls, results: Mapping[str, EvaluationResult]) -> Baselines:
        """Return the means of results by scheme."""
        return cls(
            {scheme: result.mean_reward for scheme, result in results.items()},
            {scheme: result.metrics for scheme, result in results.items()},
        )

    @property
    def oracle_bounds(self) -> bool:
        """Whether no other baseline exceeds the oracle's reward. The oracle fills one link: with several flows or
        links, or with another kind of reward, this may not be the maximum."""
        return ORACLE in self.rewards and self.rewards[ORACLE] >= max(self.rewards.values())

    def fraction_of_oracle(self, reward: float) -> float | None:
        """Return a mean reward as a fraction of the oracle's; None if the oracle's is unknown or not above zero."""
        oracle = self.rewards.get(ORACLE, 0.0)
        return reward / oracle if oracle > 0 else None


Actor: TypeAlias = Callable[[Any, npt.NDArray[np.bool_]], npt.NDArray[Any]]
"""A function that returns actions for all environments, from their observations and the flags of new episodes."""


def deterministic(model: OnPolicyAlgorithm) -> Actor:
    """Return a model's policy without exploration; a recurrent policy keeps its state between calls."""
    state: Any = None

    def act(observations: Any, starts: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        nonlocal state
        actions, state = model.predict(observations, state=state, episode_start=starts, deterministic=True)
        return actions

    return act


def evaluation_seed(config: TrainConfig) -> int:
    """Return the seed of the held-out paths; it does not depend on the seed of the training."""
    return stream_seed(config.evaluation.seed, "evaluation")


def no_op_actor(env: VecEnv) -> Actor:
    """Return an actor without effect, for environments in which a scheme decides."""
    actions = np.zeros((env.num_envs, *(env.action_space.shape or ())), dtype=env.action_space.dtype)
    return lambda observations, starts: actions


def measure_scheme(
    env: VecEnv, seed: int, episodes: int | None = None, *, per_decision: bool = False
) -> EvaluationResult:
    """Let the scheme of environments decide, and close them; other arguments as in :func:`evaluate`."""
    found = evaluate(env, no_op_actor(env), seed, episodes, per_decision=per_decision)
    env.close()
    return found


def evaluate(
    env: VecEnv,
    actor: Actor,
    seed: int,
    episodes: int | None = None,
    *,
    per_decision: bool = False,
    done: Callable[[int], None] = lambda count: None,
) -> EvaluationResult:
    """Run one episode on every held-out path.

    Args:
        env: The environments: as many as there are paths, or fewer; then episodes run in groups. Rewards are not
            normalized.
        actor: Chooses the actions.
        seed: Seed of the paths.
        episodes: Number of paths; by default the number of environments.
        per_decision: Whether an episode's reward is the mean over its decisions, not the sum.
        done: Called after each group with the number of its episodes.
    """
    learners: int = env.get_attr("learners")[0]
    side_by_side = env.num_envs // learners
    wanted = side_by_side if episodes is None else episodes
    groups = []
    for first in range(0, wanted, side_by_side):
        groups.append(_evaluate_group(env, actor, seed + first))
        done(min(side_by_side, wanted - first))
    # One row per learner; learners that did not take part, or never decided, have no decisions.
    rewards = np.concatenate([group[0] for group in groups])[: wanted * learners]
    ends = [*chain.from_iterable(group[1] for group in groups)][: wanted * learners]
    lengths = np.array([end["episode"]["l"] for end in ends], dtype=np.int64)
    counts = np.maximum(lengths, 1) if per_decision else np.ones_like(lengths)
    decided = (lengths > 0).reshape(-1, learners)

    def per_episode(values: Floats) -> Floats:
        """Return the means over the learners of each episode."""
        means: Floats = (values / counts).reshape(-1, learners).sum(axis=1, where=decided) / decided.sum(axis=1)
        return means

    sums = [end["reward_term_sums"] for end in ends]
    return EvaluationResult(
        per_episode(rewards),
        lengths.reshape(-1, learners).sum(axis=1),
        _network_means([end for end, length in zip(ends, lengths, strict=True) if length > 0]),
        {name: float(per_episode(np.array([row[name] for row in sums])).mean()) for name in sums[0]},
    )


def _evaluate_group(env: VecEnv, actor: Actor, seed: int) -> tuple[Floats, list[dict[str, Any]]]:
    """Run one episode in every environment; after ``seed(s)``, environment ``i`` has the path of seed ``s + i``."""
    count = env.num_envs
    rewards = np.zeros(count)
    ends: list[dict[str, Any] | None] = [None] * count
    env.seed(seed)
    observations: Any = env.reset()
    starts = np.ones(count, dtype=np.bool_)
    while any(end is None for end in ends):
        observations, step_rewards, starts, infos = env.step(actor(observations, starts))
        open_ones = np.array([end is None for end in ends])
        rewards[open_ones] += step_rewards[open_ones]
        for index in np.flatnonzero(starts & open_ones):
            ends[index] = infos[index]
    return rewards, [end for end in ends if end is not None]


def _network_means(ends: list[dict[str, Any]]) -> dict[str, float]:
    summaries = [end["summary"] for end in ends if "summary" in end]
    means = {}
    for tag, name in METRICS.items():
        known = [float(row[name]) for row in summaries if row.get(name) is not None]
        if known:
            means[tag] = float(np.mean(known))
    return means
