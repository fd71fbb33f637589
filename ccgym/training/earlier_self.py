"""The policy in training as it was some time ago, to steer flows of the episodes to come.

A policy that is kept is exported in memory: the flows that it steers are those of any exported policy, deterministic, and
as fast. What the episodes under way and to come need is part of checkpoints, network by network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from ccgym.schemes import policies
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.policy_card import PolicyCard
from ccgym.training import normalizer as normalizers
from ccgym.training.callbacks import Callback
from ccgym.training.exportable import exportable, onnx_file
from ccgym.training.saved_model import TrainedModel

if TYPE_CHECKING:
    from ccgym.training.trainer import Trainer


@dataclass(frozen=True)
class EarlierPolicy:
    """A policy as it was."""

    step: int
    """Decisions that it had learned from."""
    network: bytes
    """Content of an ``.onnx`` file."""
    card: str
    """The card's text."""

    @cached_property
    def policy(self) -> LearnedPolicy:
        """The same, loaded."""
        card = PolicyCard.model_validate_json(self.card)
        return policies.from_parts(self.network, card, Path(f"{card.name}.onnx"))


class EarlierPolicies:
    """The latest policies that were kept, and older ones of episodes under way.

    Args:
        keep: How many the flows of an episode draw from.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._known: list[EarlierPolicy] = []

    @property
    def latest_step(self) -> int:
        """Of the newest one; 0 if there is none."""
        return self._known[-1].step if self._known else 0

    @property
    def drawn(self) -> list[str]:
        """Keys of those that flows draw from, oldest first."""
        return [one.policy.key for one in self._known[-self._keep :]]

    @property
    def policies(self) -> dict[str, LearnedPolicy]:
        """All, by key."""
        return {one.policy.key: one.policy for one in self._known}

    def add(self, new: EarlierPolicy, in_use: Callable[[str], bool]) -> None:
        """Add the newest one, and forget those that are neither drawn nor, by their keys, in use."""
        self._known.append(new)
        old, latest = self._known[: -self._keep], self._known[-self._keep :]
        self._known = [one for one in old if in_use(one.policy.key)] + latest

    def state(self) -> list[dict[str, Any]]:
        """For a checkpoint."""
        return [
            {"step": one.step, "network": np.frombuffer(one.network, dtype=np.uint8), "card": one.card}
            for one in self._known
        ]

    def restore(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Be as it was when :meth:`state` was asked."""
        self._known = [EarlierPolicy(one["step"], one["network"].tobytes(), one["card"]) for one in state]


class EarlierSelfCallback(Callback):
    """Keeps the policy every so many steps, where the configuration has flows of earlier selves."""

    @override
    def on_update(self, trainer: Trainer, *, last: bool) -> None:
        wanted, earlier = trainer.config.environment.earlier_selves, trainer.rollouts.earlier
        if wanted is None or earlier is None or trainer.step // wanted.every <= earlier.latest_step // wanted.every:
            return
        trainer.rollouts.add_earlier(_policy_now(trainer))


def _policy_now(trainer: Trainer) -> EarlierPolicy:
    """The policy that is trained, with the agent of the training, not that of a deployment."""
    config = trainer.config
    name = f"{config.name.lower()[:40]}-{trainer.step}"
    statistics = normalizers.observation_statistics(trainer.normalizer)
    policy = exportable(TrainedModel(config, trainer.model, statistics, {}))
    network = onnx_file(policy, name)
    agent = config.agent.native()
    agent.pop("expert", None)
    learner = config.environment.flows_that_learn[0]
    card = PolicyCard(
        name=name,
        label=name,
        color="gray",
        marker=".",
        summary=f"An earlier self of {config.name}.",
        reference="trained by ccgym",
        agent=agent,
        policy=policy.shape,
        onnx_sha256=hashlib.sha256(network).hexdigest(),
        profile=learner.profile,
        ack_every=learner.ack_every,
    )
    return EarlierPolicy(trainer.step, network, card.to_json())
