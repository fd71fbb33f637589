"""A critic that gets the ground truth about the path, for a policy that does not.

An agent that observes only ratios, such as Aurora, cannot distinguish a fast link from a slow link, and neither can its
value function: a reward of 0.5 or 4.5 per step then looks random, and hides the effect of an action. During training
the simulator has the path's parameters, so the value function can use them (asymmetric actor-critic; Pinto et al., RSS
2018). The policy's inputs do not change, and only the policy is exported.

The ground truth is at the end of the observation: :class:`PrivilegedEnv` appends it, and
:class:`PrivilegedCriticPolicy` passes it only to the value function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import create_mlp
from torch import nn
from typing_extensions import override

from ccgym.training.training_env import TrainingEnv

if TYPE_CHECKING:
    from ccgym import _core
    from ccgym.envs.rollout import Rollout

Floats = npt.NDArray[np.float32]

PRIVILEGED_FEATURES: Final = (
    "ln(link rate / 1 Mbit/s)",
    "ln(base RTT / 100 ms)",
    "ln(1 + backlog's delay / base RTT)",
    "ln(1 + queue limit / BDP)",
    "10 × random loss",
    "ln(flows)",
    "ln(pacing rate / link rate)",
    "ln(window / BDP)",
)
"""The appended numbers, in order: their size is about one; 0 for unlimited or unknown values."""

PACKET_BITS: Final = 12_000.0
"""Bits of a full packet on the wire."""
_SPAN: Final = 20.0
"""Max absolute value of the appended numbers."""
_TINY: Final = 1e-9


class PrivilegedEnv(TrainingEnv):
    """Environments whose observations end with the ground truth about their paths; arguments as in the base."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        inside: Any = self.observation_space
        edge = np.full(len(PRIVILEGED_FEATURES), _SPAN, dtype=np.float32)
        whole = spaces.Box(np.concatenate([inside.low, -edge]), np.concatenate([inside.high, edge]), dtype=np.float32)
        self.observation_space = whole
        self.keep_terminal_privileged = True

    @override
    def reset(self) -> Floats:
        return _whole(super().reset(), self.privileged())

    @override
    def step_wait(self) -> Any:
        observations, rewards, dones, infos = super().step_wait()
        for index in np.flatnonzero(dones).tolist():
            state = {name: np.array([value]) for name, value in infos[index].pop("terminal_privileged").items()}
            (infos[index]["terminal_observation"],) = _whole(infos[index]["terminal_observation"][None], state)
        return _whole(observations, self.privileged()), rewards, dones, infos

    @override
    def rollout(self, actor: _core.Actor, noise: Floats) -> Rollout:
        rollout: Rollout = super().rollout(actor, noise)

        def whole(observations: Floats, truth: npt.NDArray[np.float64]) -> Floats:
            return _whole(observations, self.named_truth(truth))

        count, steps, _ = rollout.observations.shape
        flat = whole(rollout.observations.reshape(count * steps, -1), rollout.privileged.reshape(count * steps, -1))
        ends = rollout.ends
        if ends:
            seen = whole(np.stack([end.observation for end in ends]), np.stack([end.privileged for end in ends]))
            ends = [replace(end, observation=one) for end, one in zip(ends, seen, strict=True)]
        last = whole(rollout.last_observations, rollout.last_privileged)
        return replace(rollout, observations=flat.reshape(count, steps, -1), last_observations=last, ends=ends)

    @override
    def restore(self, state: Mapping[str, Any]) -> Any:
        observations = super().restore(state)
        return None if observations is None else _whole(observations, self.deciding_truth())


def _whole(observations: Floats, truth: Mapping[str, npt.NDArray[np.float64]]) -> Floats:
    whole: Floats = np.concatenate([observations, privileged_features(truth)], axis=1)
    return whole


def privileged_features(state: Mapping[str, npt.NDArray[np.float64]]) -> Floats:
    """Return the numbers of :data:`PRIVILEGED_FEATURES`, one row per environment.

    Args:
        state: Columns by name, from :meth:`ccgym.envs.SB3LinkVecEnv.privileged`.
    """
    rate, rtt = state["link_rate_bps"], state["base_rtt_s"]
    pipe = np.maximum(rate * rtt / PACKET_BITS, 1.0)
    backlog = state["backlog_packets"] / pipe
    columns = [
        _ln(rate / 1e6),
        _ln(rtt / 0.1),
        np.log1p(backlog),
        np.where(np.isfinite(state["queue_limit_packets"]), np.log1p(state["queue_limit_packets"] / pipe), 0.0),
        10 * state["loss"],
        _ln(state["flows"]),
        _ln(state["pacing_rate_bps"] / np.maximum(rate, _TINY)),
        np.where(np.isfinite(state["cwnd_packets"]), _ln(state["cwnd_packets"] / pipe), 0.0),
    ]
    known = np.nan_to_num(np.stack(columns, axis=1), nan=0.0)
    whole: Floats = np.clip(known, -_SPAN, _SPAN).astype(np.float32)
    return whole


def _ln(ratio: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the logarithm; 0 for values that are 0 or not finite."""
    known = np.isfinite(ratio) & (ratio > _TINY)
    return np.log(np.where(known, ratio, 1.0))


class _Networks(nn.Module):
    """Policy and value networks; only the value network gets the whole observation."""

    def __init__(self, actor_size: int, size: int, arch: Mapping[str, list[int]], activation: type[nn.Module]) -> None:
        super().__init__()
        self.actor_size = actor_size
        self.policy_net = nn.Sequential(*create_mlp(actor_size, -1, arch["pi"], activation))
        self.value_net = nn.Sequential(*create_mlp(size, -1, arch["vf"], activation))
        self.latent_dim_pi, self.latent_dim_vf = (arch["pi"] or [actor_size])[-1], (arch["vf"] or [size])[-1]

    @override
    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """Return the policy network's output for its part of the features."""
        return self.policy_net(features[:, : self.actor_size])  # type: ignore[no-any-return]

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """Return the value network's output for all features."""
        return self.value_net(features)  # type: ignore[no-any-return]


class PrivilegedCriticPolicy(ActorCriticPolicy):
    """SB3's policy with separate networks; the policy network does not get the last :data:`PRIVILEGED_FEATURES`."""

    @property
    def actor_size(self) -> int:
        """Number of inputs of the policy network: all inputs of the deployed policy."""
        return int(np.prod(self.observation_space.shape or (0,))) - len(PRIVILEGED_FEATURES)

    @override
    def _build_mlp_extractor(self) -> None:
        assert isinstance(self.net_arch, dict)
        size = self.actor_size + len(PRIVILEGED_FEATURES)
        self.mlp_extractor = _Networks(self.actor_size, size, self.net_arch, self.activation_fn)  # type: ignore[assignment]
        self.mlp_extractor.to(self.device)

    @override
    def predict(
        self,
        observation: Any,
        state: tuple[npt.NDArray[Any], ...] | None = None,
        episode_start: npt.NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[npt.NDArray[Any], tuple[npt.NDArray[Any], ...] | None]:
        """Predict as in SB3; observations may lack the ground truth, which does not affect actions."""
        if isinstance(observation, np.ndarray) and observation.shape[-1] == self.actor_size:
            nothing = np.zeros((*observation.shape[:-1], len(PRIVILEGED_FEATURES)), dtype=observation.dtype)
            observation = np.concatenate([observation, nothing], axis=-1)
        return super().predict(observation, state, episode_start, deterministic)
