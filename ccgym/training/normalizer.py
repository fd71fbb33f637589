"""Capture and restore of the running normalizer's statistics in SB3's ``VecNormalize``: part of every checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ccgym.training.checkpoint import plain, with_arrays


def frozen(env: VecEnv, of: VecNormalize | None) -> VecEnv:
    """Return environments whose observations are normalized by given statistics, which they do not change.

    Rewards are not normalized: otherwise, rewards at different times would not be comparable.
    """
    if of is None or not of.norm_obs:
        return env
    wrapped = VecNormalize(env, training=False, norm_reward=False, clip_obs=of.clip_obs, epsilon=of.epsilon)
    wrapped.obs_rms = of.obs_rms
    return wrapped


def normalized_rewards(
    normalizer: VecNormalize | None,
    rewards: npt.NDArray[np.float32],
    dones: npt.NDArray[np.bool_],
    learners: npt.NDArray[np.integer[Any]] | None = None,
) -> npt.NDArray[np.float32]:
    """Return a rollout's normalized rewards, equal to the normalizer's step by step, bit by bit; and update it.

    There is one running sum per learner. With several learners per environment, a step has one sample of each one.

    Args:
        normalizer: A normalizer that does not normalize observations, or None: rewards do not change.
        rewards: Rewards, environments × steps.
        dones: Whether each step was the last of an episode, of the same shape.
        learners: Learner of each sample, of the same shape; by default each environment has one learner.
    """
    if normalizer is None:
        return rewards
    sums = np.zeros((rewards.shape[1], rewards.shape[0]))
    if learners is None:
        learners = np.zeros(rewards.shape, dtype=np.int64)
    running = normalizer.returns.reshape(len(rewards), -1).copy()
    paths = np.arange(len(rewards))
    for row, reward, done, whose in zip(sums, rewards.T, dones.T, learners.T, strict=True):
        row[:] = running[paths, whose] * normalizer.gamma + reward
        running[paths, whose] = np.where(done, 0.0, row)
    normalizer.returns = running.reshape(-1)
    moments = normalizer.ret_rms
    # RunningMeanStd.update_from_moments in Python's floats: the same result, and faster for single numbers.
    mean, variance, count, added = float(moments.mean), float(moments.var), float(moments.count), rewards.shape[0]
    variances = []
    for its_mean, its_variance in zip(sums.mean(axis=1).tolist(), sums.var(axis=1).tolist(), strict=True):
        delta, total = its_mean - mean, count + added
        mean += delta * added / total
        variance = (variance * count + its_variance * added + delta * delta * count * added / total) / total
        count = total
        variances.append(variance)
    moments.mean, moments.var, moments.count = np.asarray(mean), np.asarray(variance), count
    if not normalizer.norm_reward:
        return rewards
    scaled = rewards / np.sqrt(np.array(variances) + normalizer.epsilon)
    return np.clip(scaled, -normalizer.clip_reward, normalizer.clip_reward).astype(np.float32)


def capture(normalizer: VecNormalize | None) -> dict[str, Any] | None:
    """Return the normalizer's statistics."""
    if normalizer is None:
        return None
    features = {"obs": vars(normalizer.obs_rms)} if normalizer.norm_obs else {}
    state: dict[str, Any] = plain({"returns": normalizer.returns, "ret": vars(normalizer.ret_rms), **features})
    return state


def restore(normalizer: VecNormalize | None, state: dict[str, Any] | None) -> None:
    """Restore the statistics from :func:`capture`."""
    if normalizer is None or state is None:
        return
    known = with_arrays(state)
    normalizer.returns = known["returns"]
    vars(normalizer.ret_rms).update(known["ret"])
    if normalizer.norm_obs:
        vars(normalizer.obs_rms).update(known["obs"])


def observation_statistics(normalizer: VecNormalize | None) -> dict[str, Any] | None:
    """Return the normalization of an exported policy's features: subtract, divide, clip; None without normalization.

    Returns:
        ``mean`` and ``variance`` (lists of floats), ``epsilon`` (added to the variance) and ``clip``.
    """
    if normalizer is None or not normalizer.norm_obs:
        return None
    moments: Any = normalizer.obs_rms  # a dictionary if observations are dictionaries, but ccgym's are not
    return {
        "mean": np.asarray(moments.mean, dtype=np.float64).tolist(),
        "variance": np.asarray(moments.var, dtype=np.float64).tolist(),
        "epsilon": float(normalizer.epsilon),
        "clip": float(normalizer.clip_obs),
    }
