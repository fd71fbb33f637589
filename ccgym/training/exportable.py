"""What an export needs of a trained policy, whether it is a network or a tree."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ccgym.schemes.policy_card import NetworkShape
from ccgym.training.foreign_network import ForeignNetwork
from ccgym.training.onnx_graph import build_onnx, build_tree
from ccgym.training.saved_model import TrainedModel
from ccgym.training.torch_policy import Floats, Normalizer, TorchPolicy
from ccgym.training.tree_policy import ExportedTree, TreePolicy


class Exportable(Protocol):
    """The deterministic part of a trained policy: features in, action out, a state between if it has a memory."""

    @property
    def shape(self) -> NetworkShape:
        """Sizes of inputs and outputs."""

    @property
    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Minimum and maximum of the action; None if it is discrete, or if the network does not limit it."""

    def decide(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Actions, or scores of a discrete policy, one row per flow, as the exported file gives them; and the state."""

    def decide_as_trained(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """The same as in training."""


def exportable(trained: TrainedModel) -> Exportable:
    """The policy of a model that was read from disk, with the statistics of its features."""
    policy: Any = trained.model.policy
    if isinstance(policy, TreePolicy):
        return ExportedTree(policy)
    statistics = trained.statistics
    return TorchPolicy(policy, None if statistics is None else Normalizer.of(statistics))


def onnx_file(policy: Exportable, name: str) -> bytes:
    """The file ``NAME.onnx``; equal policies give equal bytes."""
    if isinstance(policy, ExportedTree):
        return build_tree(policy.tree, policy.shape, name)
    if isinstance(policy, ForeignNetwork):
        return policy.widened
    assert isinstance(policy, TorchPolicy)
    return build_onnx(policy, name)
