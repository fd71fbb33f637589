"""A trained policy in torch, evaluated in two ways.

*As trained* is SB3's forward pass in float32, after the normalization of the training. *Exactly* is the same network
with all weights in float64, and the output rounded to float32 at the end. Sums of float32 differ between libraries, and
a control loop amplifies small differences. Sums of float64 differ, too, but about nine digits below the precision of
float32, so that two programs that evaluate the network exactly make the same decisions. The exported graph evaluates
exactly (:mod:`ccgym.training.onnx_graph`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from onnx import TensorProto
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from ccgym.errors import ConfigError, shown
from ccgym.schemes.policy_card import NetworkShape
from ccgym.training.onnx_graph import OPSET, Floats, Graph, add_layer, add_lstm, content
from ccgym.training.privileged_critic import PrivilegedCriticPolicy
from ccgym.training.tree_policy import TreePolicy

LAYERS: Final = (nn.Linear, nn.Tanh, nn.ReLU, nn.ELU, nn.SiLU, nn.Sigmoid, nn.LeakyReLU, nn.Identity)
"""Layers that can be exported."""


@dataclass(frozen=True)
class Normalizer:
    """Normalization of observations, frozen: ``clip((observation − mean) / deviation)``."""

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    """Standard deviation of each feature; never zero."""
    clip: float
    """Max absolute value of the result."""

    @classmethod
    def of(cls, statistics: Mapping[str, Any]) -> Normalizer:
        """Return a normalizer from the result of :func:`ccgym.training.normalizer.observation_statistics`."""
        variance = np.array(statistics["variance"], dtype=np.float64)
        return cls(
            mean=np.array(statistics["mean"], dtype=np.float64),
            deviation=np.sqrt(variance + float(statistics["epsilon"])),
            clip=float(statistics["clip"]),
        )

    def __call__(self, observations: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Normalize observations, in float64."""
        centered = observations.astype(np.float64) - self.mean
        return np.clip(centered / self.deviation, -self.clip, self.clip)


class Exportable(Protocol):
    """The deterministic part of a trained policy: a network of torch, a tree, or an external network."""

    @property
    def shape(self) -> NetworkShape:
        """Sizes of inputs and outputs."""

    @property
    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Minimum and maximum of the action; None if it is discrete, or if the network does not limit it."""

    def decide(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Return actions, or scores of a discrete policy, one row per flow, as in the exported file; and the state."""

    def decide_as_trained(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Return the same as :meth:`decide`, evaluated as in training."""

    def onnx(self, name: str) -> bytes:
        """Return the file ``NAME.onnx``; equal policies give equal bytes."""


def exportable(policy: BasePolicy, statistics: Mapping[str, Any] | None) -> Exportable:
    """Return the exportable form of an SB3 model's policy.

    Args:
        policy: SB3's policy.
        statistics: Normalization of features: see :func:`ccgym.training.normalizer.observation_statistics`.

    Raises:
        ConfigError: The policy has parts that cannot be exported.
    """
    if isinstance(policy, TreePolicy):
        return policy
    return TorchPolicy(policy, None if statistics is None else Normalizer.of(statistics))


class TorchPolicy:
    """The deterministic part of a trained policy: features in, action out, and a state if the policy is recurrent.

    Actions are the mean of the Gaussian, clipped to the box as in SB3's ``predict``. For a discrete policy, they are
    the scores, of which the largest wins. The state is ``[h | c]`` layer by layer, float32 between decisions.

    Args:
        policy: SB3's policy.
        normalizer: Normalization of the features; None without normalization.

    Raises:
        ConfigError: The policy has parts that cannot be exported.
    """

    def __init__(self, policy: BasePolicy, normalizer: Normalizer | None = None) -> None:
        self._require_exportable(policy)
        self.normalizer = normalizer
        # The latest distribution of a policy in training is part of a graph, which cannot be copied.
        latest = getattr(policy, "action_dist", None)
        self._policy = copy.deepcopy(policy, {id(latest): copy.copy(latest)}).to("cpu")
        self._policy.set_training_mode(False)
        self.lstm: nn.LSTM | None = None
        if isinstance(self._policy, RecurrentActorCriticPolicy):
            self.lstm = copy.deepcopy(self._policy.lstm_actor).double()
        self.layers = [copy.deepcopy(layer).double() for layer in self._layers(self._policy)]
        for layer in self.layers:
            if not isinstance(layer, LAYERS):
                raise cannot_export(f"a layer {type(layer).__name__}", ", ".join(kind.__name__ for kind in LAYERS))
        space = self._policy.action_space
        self.bounds: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None
        if isinstance(space, spaces.Box):
            self.bounds = space.low.astype(np.float64), space.high.astype(np.float64)
        size = int(np.prod(self._policy.observation_space.shape or (0,)))
        if isinstance(self._policy, PrivilegedCriticPolicy):
            size = self._policy.actor_size
        if normalizer is not None and normalizer.mean.shape != (size,):
            raise ConfigError(
                "shape-mismatch",
                f"statistics of {normalizer.mean.size} features",
                expected=f"{size}, the number of the policy's inputs",
            )
        self.shape = NetworkShape(
            kind="mlp" if self.lstm is None else "lstm",
            observation_size=size,
            state_size=0 if self.lstm is None else 2 * self.lstm.num_layers * self.lstm.hidden_size,
            action_size=int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape or (0,))),
        )

    def decide(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Evaluate exactly: in float64, rounded to float32 at the end.

        Args:
            observations: Raw features, one row per flow.
            state: What the last call returned; None at the start of an episode.

        Returns:
            Actions, or scores of a discrete policy, one row per flow; and the new state, None without memory.
        """
        inputs = observations if self.normalizer is None else self.normalizer(observations)
        values = torch.from_numpy(inputs.astype(np.float64))
        after: Floats | None = None
        with torch.no_grad(), one_thread():
            if self.lstm is not None:
                hidden, cell = self._unpack(state, len(observations), torch.float64)
                sequence, (hidden, cell) = self.lstm(values.unsqueeze(0), (hidden, cell))
                values = sequence.squeeze(0)
                after = _pack(hidden, cell)
            for layer in self.layers:
                values = layer(values)
            if self.bounds is not None:
                values = torch.clamp(values, torch.from_numpy(self.bounds[0]), torch.from_numpy(self.bounds[1]))
        return values.numpy().astype(np.float32), after

    def decide_as_trained(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Evaluate as in training: SB3's modules in float32. Arguments and result are those of :meth:`decide`."""
        inputs = observations if self.normalizer is None else self.normalizer(observations).astype(np.float32)
        policy = self._policy
        after: Floats | None = None
        assert isinstance(policy, ActorCriticPolicy)
        with torch.no_grad(), one_thread():
            features = policy.extract_features(torch.from_numpy(inputs), policy.pi_features_extractor)
            assert isinstance(features, torch.Tensor)
            if isinstance(policy, RecurrentActorCriticPolicy):
                memory = self._unpack(state, len(observations), torch.float32)
                going_on = torch.zeros(len(observations))
                features, (hidden, cell) = policy._process_sequence(features, memory, going_on, policy.lstm_actor)
                after = _pack(hidden, cell)
            values = policy.action_net(policy.mlp_extractor.forward_actor(features)).numpy()
        if self.bounds is not None:
            values = np.clip(values, *self.bounds)
        return values.astype(np.float32), after

    def onnx(self, name: str) -> bytes:
        """Return the file ``NAME.onnx``; equal policies give equal bytes."""
        graph = Graph()
        value = graph.add("Cast", "observation", to=TensorProto.DOUBLE)
        if self.normalizer is not None:
            value = graph.add("Sub", value, graph.constant(self.normalizer.mean))
            value = graph.add("Div", value, graph.constant(self.normalizer.deviation))
            value = graph.between(value, -self.normalizer.clip, self.normalizer.clip)
        if self.lstm is not None:
            value = add_lstm(graph, value, self.lstm)
        for layer in self.layers:
            value = add_layer(graph, value, layer)
        if self.bounds is not None:
            value = graph.between(value, *self.bounds)
        graph.add("Cast", value, to=TensorProto.FLOAT, output="action")
        return content(graph.finished(name, self.shape, [("", OPSET)]), full_check=True)

    def _layers(self, policy: Any) -> list[nn.Module]:
        """Return the layers from features, or from the LSTM's output, to actions."""
        return [*policy.mlp_extractor.policy_net, policy.action_net]

    def _require_exportable(self, policy: BasePolicy) -> None:
        if not isinstance(policy, ActorCriticPolicy):
            raise cannot_export(f"a policy {type(policy).__name__}", "one of PPO, A2C, SAC, TD3, DDPG or RecurrentPPO")
        require_plain(policy, policy.features_extractor)
        if policy.squash_output:
            raise cannot_export("a squashed action", "a clipped action (squash_output: false)")
        lstm = getattr(policy, "lstm_actor", None)
        if lstm is not None and (lstm.bidirectional or lstm.proj_size or not lstm.bias or lstm.batch_first):
            raise cannot_export(f"the LSTM {lstm}", "a plain LSTM: biases, one direction, no projection")

    def _unpack(self, state: Floats | None, count: int, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the state in the form of torch's LSTM: h and c, (layers, flows, units) each."""
        assert self.lstm is not None
        size = (count, self.lstm.num_layers, 2, self.lstm.hidden_size)
        whole = torch.zeros(size, dtype=kind) if state is None else torch.from_numpy(state).to(kind).reshape(size)
        return whole[:, :, 0].transpose(0, 1).contiguous(), whole[:, :, 1].transpose(0, 1).contiguous()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread within this context: for a single row, a second thread costs more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def require_plain(policy: BasePolicy, extractor: object) -> None:
    """Raise :class:`ConfigError` unless the input is a plain feature vector, and the output a vector or a choice."""
    inputs, outputs = policy.observation_space, policy.action_space
    if not isinstance(inputs, spaces.Box) or len(inputs.shape) != 1:
        raise cannot_export(f"observations {shown(inputs)}", "a vector of features")
    if not isinstance(extractor, FlattenExtractor):
        raise cannot_export(f"a {type(extractor).__name__} before the layers", "no such part")
    if not isinstance(outputs, spaces.Discrete) and not (isinstance(outputs, spaces.Box) and len(outputs.shape) == 1):
        raise cannot_export(f"actions {shown(outputs)}", "a vector of numbers, or one of several operations")


def cannot_export(found: str, expected: str) -> ConfigError:
    """Return the error of a part that has no graph."""
    return ConfigError("policy-unsuitable", f"{found} cannot be exported", expected=expected)


def _pack(hidden: torch.Tensor, cell: torch.Tensor) -> Floats:
    """Return ``[h | c]`` layer by layer, one row per flow."""
    both = torch.stack((hidden, cell), dim=1).permute(2, 0, 1, 3)
    return both.reshape(both.shape[0], -1).numpy().astype(np.float32)
