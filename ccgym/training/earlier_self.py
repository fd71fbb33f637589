"""The policy in training as it was some time ago, to steer flows of the episodes to come.

A policy that is kept is exported in memory: the flows that it steers are those of any exported policy. What the
episodes under way and to come need is part of checkpoints, network by network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ccgym.schemes import policies
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.policy_card import PolicyCard


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
        every: Steps between two that are kept.
        keep: How many the flows of an episode draw from.
    """

    def __init__(self, every: int, keep: int) -> None:
        self._every, self._keep = every, keep
        self._known: list[EarlierPolicy] = []

    def is_due(self, step: int) -> bool:
        """Whether the policy of that step is to be kept."""
        latest = self._known[-1].step if self._known else 0
        return step // self._every > latest // self._every

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
