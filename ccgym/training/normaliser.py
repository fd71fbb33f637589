"""The running normaliser's numbers, taken out of SB3's ``VecNormalize`` and put back: part of every checkpoint."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ccgym.training.algorithms.base import AlgorithmBase


def normalised(env: VecEnv, algorithm: AlgorithmBase) -> VecEnv:
    """The environments behind a running normaliser, where one is configured."""
    wanted = algorithm.normalisation
    if not wanted.observation and not wanted.reward:
        return env
    return VecNormalize(
        env,
        norm_obs=wanted.observation,
        norm_reward=wanted.reward,
        clip_obs=wanted.clip_observation,
        clip_reward=wanted.clip_reward,
        gamma=algorithm.discount,
    )


def frozen(env: VecEnv, of: VecNormalize | None) -> VecEnv:
    """Environments whose observations are normalised by another's statistics, which they leave as they are.

    Rewards are the plain ones: those of different times would not compare otherwise.
    """
    if of is None or not of.norm_obs:
        return env
    wrapped = VecNormalize(env, training=False, norm_reward=False, clip_obs=of.clip_obs, epsilon=of.epsilon)
    wrapped.obs_rms = of.obs_rms
    return wrapped


def capture(normaliser: VecNormalize | None) -> dict[str, Any] | None:
    """Its statistics."""
    if normaliser is None:
        return None
    state = {"returns": _tensor(normaliser.returns), "ret": _moments(normaliser.ret_rms)}
    if normaliser.norm_obs:
        state["obs"] = _moments(_observation_moments(normaliser))
    return state


def restore(normaliser: VecNormalize | None, state: dict[str, Any] | None) -> None:
    """Give it the statistics that :func:`capture` took."""
    if normaliser is None or state is None:
        return
    normaliser.returns = state["returns"].numpy().copy()
    _set_moments(normaliser.ret_rms, state["ret"])
    if normaliser.norm_obs:
        _set_moments(_observation_moments(normaliser), state["obs"])


def start_from(normaliser: VecNormalize | None, statistics: dict[str, Any] | None, samples: int) -> None:
    """Begin with the features' statistics of another run's model, as :func:`observation_statistics` gave them.

    Args:
        normaliser: Whose statistics are replaced; nothing happens if it has none of features.
        statistics: The other's.
        samples: How many samples they weigh.
    """
    if normaliser is None or not normaliser.norm_obs or statistics is None:
        return
    moments = _observation_moments(normaliser)
    moments.mean, moments.var = np.array(statistics["mean"]), np.array(statistics["variance"])
    moments.count = float(max(samples, 1))


def pickled(normaliser: VecNormalize) -> bytes:
    """What ``VecNormalize.save`` writes, for SB3's own tools."""
    return pickle.dumps(normaliser)


def observation_statistics(normaliser: VecNormalize | None) -> dict[str, Any] | None:
    """What an exported policy has to do with its features: subtract, divide, clip; None if nothing.

    Returns:
        ``mean`` and ``variance`` (lists of floats), ``epsilon`` (added to the variance) and ``clip``.
    """
    if normaliser is None or not normaliser.norm_obs:
        return None
    moments = _observation_moments(normaliser)
    return {
        "mean": np.asarray(moments.mean, dtype=np.float64).tolist(),
        "variance": np.asarray(moments.var, dtype=np.float64).tolist(),
        "epsilon": float(normaliser.epsilon),
        "clip": float(normaliser.clip_obs),
    }


def _observation_moments(normaliser: VecNormalize) -> RunningMeanStd:
    moments: Any = normaliser.obs_rms  # one per key for dictionaries of observations, which ours are not
    assert isinstance(moments, RunningMeanStd)
    return moments


def _moments(rms: RunningMeanStd) -> dict[str, Any]:
    return {"mean": _tensor(rms.mean), "var": _tensor(rms.var), "count": float(rms.count)}


def _set_moments(rms: RunningMeanStd, state: dict[str, Any]) -> None:
    rms.mean, rms.var = state["mean"].numpy().copy(), state["var"].numpy().copy()
    rms.count = state["count"]


def _tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float64))
