"""The environments that are learned from: they can be captured in the middle of their episodes, and brought back.

Flows of the episodes to come may be steered by the policy as it was some time ago. A policy that is kept is exported in
memory: the flows that it steers are those of any exported policy. What the episodes under way and to come need is part
of checkpoints, network by network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.schemes import policies
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.policy_card import PolicyCard
from ccgym.training.checkpoint import plain, with_arrays

if TYPE_CHECKING:
    from ccgym.config.curriculum import Curriculum

    class _Base(SB3LinkVecEnv): ...

else:
    _Base = object


def _timed(name: str) -> Any:
    """The method of that name, whose time counts as spent in the environments."""

    def method(self: Resumable, *arguments: Any) -> Any:
        began = time.perf_counter()
        answer = getattr(super(Resumable, self), name)(*arguments)
        self.seconds += time.perf_counter() - began
        return answer

    return method


class Resumable(_Base):
    """What makes training environments of others, named behind it among the bases: they measure their own time, move
    along a curriculum, and go into checkpoints.
    """

    seconds = 0.0
    """Time spent in the environments since it was last set to zero."""
    paused = False
    """Whether nothing runs: :meth:`reset` must come before the next step."""
    curriculum: Curriculum | None = None
    """The one that it follows, if it does."""
    earlier: PastPolicies | None = None
    """Where the policies of earlier selves are kept, if it has such flows."""
    _progress = 0.0

    step_wait, rollout, labels, label_distances = map(_timed, ("step_wait", "rollout", "labels", "label_distances"))

    def reset(self) -> Any:
        """Begin an episode in every environment."""
        observations = super().reset()
        self.paused = False
        return observations

    def pause(self) -> None:
        """A rollout is over. Real paths would run on under the last decision, so their episodes end with it."""
        if self.missed_deadlines is not None:
            self.close()
            self.paused = True

    def set_progress(self, progress: float) -> None:
        """Move the curriculum on; ``progress``: fraction of the training that is done, 0 to 1."""
        self._progress = progress
        super().set_progress(progress)

    def add_past(self, new: PastPolicy) -> None:
        """Let flows of earlier selves in the episodes to come draw this policy, too."""
        assert self.earlier is not None
        self.earlier.add(new, self.uses)
        self.set_earlier(self.earlier.policies, self.earlier.drawn)

    def capture(self) -> dict[str, Any]:
        """All that :meth:`restore` needs: numbers, text, tensors, and containers of them."""
        return {
            "environments": plain(super().capture()),
            "progress": self._progress,
            "curriculum": None if self.curriculum is None else self.curriculum.state_dict(),
            "earlier": None if self.earlier is None else plain(self.earlier.state()),
        }

    def restore(self, state: Mapping[str, Any]) -> Any:
        """Bring every environment to where it was.

        Returns:
            The observations that were due; None where paths are real. Those do not come back; new episodes begin with
            the next rollout.
        """
        if self.curriculum is not None and state["curriculum"] is not None:
            self.curriculum.load_state_dict(state["curriculum"])
            self.set_progress(state["progress"])
        if self.earlier is not None:
            self.earlier.restore(with_arrays(state["earlier"]))
            self.set_earlier(self.earlier.policies, self.earlier.drawn)
        observations = super().restore(with_arrays(state["environments"]))
        self.paused = state["environments"].get("episodes", ()) is None
        return None if self.paused else observations


class TrainingEnv(Resumable, SB3LinkVecEnv):
    """The environments of ``ccgym train``."""


@dataclass(frozen=True)
class PastPolicy:
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


class PastPolicies:
    """The latest policies that were kept, and older ones of episodes under way.

    Args:
        every: Steps between two that are kept.
        keep: How many the flows of an episode draw from.
    """

    def __init__(self, every: int, keep: int) -> None:
        self._every, self._keep = every, keep
        self._known: list[PastPolicy] = []

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

    def add(self, new: PastPolicy, in_use: Callable[[str], bool]) -> None:
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
        self._known = [PastPolicy(one["step"], one["network"].tobytes(), one["card"]) for one in state]
