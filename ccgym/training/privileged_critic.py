"""A critic that sees the ground truth about the path, for a policy that does not.

An agent that observes only ratios, as Aurora does, cannot tell a fast link from a slow one, and its value function
cannot either: whether an episode pays 0.5 or 4.5 per step is luck to it, and drowns what an action was worth. While a
policy is trained the simulator knows the path, so the value function may as well (asymmetric actor-critic; Pinto et
al., RSS 2018). The policy's inputs stay what they are, and only the policy is exported.

The ground truth travels at the end of the observation: :class:`PrivilegedEnv` appends it, and
:class:`PrivilegedCriticPolicy` shows it to the value function alone.
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
"""What is appended, in order: numbers of about one, 0 where something is unlimited or unknown."""

PACKET_BITS: Final = 12_000.0
"""Bits of a full packet on the wire."""
_SPAN: Final = 20.0
"""No appended number lies further from zero."""
_TINY: Final = 1e-9


class PrivilegedEnv(TrainingEnv):
    """Environments whose observations end with the ground truth about their paths; the arguments are the others'."""

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
    """The numbers of :data:`PRIVILEGED_FEATURES`, one row per environment.

    Args:
        state: Columns by name, as :meth:`ccgym.envs.SB3LinkVecEnv.privileged` gives them.
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
    """The logarithm; 0 of what is 0 or not finite."""
    known = np.isfinite(ratio) & (ratio > _TINY)
    return np.log(np.where(known, ratio, 1.0))


class _Networks(nn.Module):
    """Policy and value networks, of which only the second sees the whole observation."""

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
        """What the policy makes of its part."""
        return self.policy_net(features[:, : self.actor_size])  # type: ignore[no-any-return]

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """What the value function makes of all."""
        return self.value_net(features)  # type: ignore[no-any-return]


class PrivilegedCriticPolicy(ActorCriticPolicy):
    """SB3's policy with separate networks; the policy's does not see the last inputs, :data:`PRIVILEGED_FEATURES`."""

    @property
    def actor_size(self) -> int:
        """Inputs that the policy sees: all there is once it is deployed."""
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
        """As SB3's; observations may come without the ground truth, which has no influence on actions."""
        if isinstance(observation, np.ndarray) and observation.shape[-1] == self.actor_size:
            nothing = np.zeros((*observation.shape[:-1], len(PRIVILEGED_FEATURES)), dtype=observation.dtype)
            observation = np.concatenate([observation, nothing], axis=-1)
        return super().predict(observation, state, episode_start, deterministic)
