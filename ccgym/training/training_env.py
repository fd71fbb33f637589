"""The training environments: they can be captured in the middle of their episodes, and restored.

Flows of later episodes may be controlled by earlier states of the policy. A kept policy is exported in memory: it
controls its flows like any exported policy. The networks that current and later episodes need are part of
checkpoints.
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
    """Return the method of this name; its time counts as time in the environments."""

    def method(self: Resumable, *arguments: Any) -> Any:
        began = time.perf_counter()
        answer = getattr(super(Resumable, self), name)(*arguments)
        self.seconds += time.perf_counter() - began
        return answer

    return method


class Resumable(_Base):
    """Mixin that turns environments, named after it among the bases, into training environments: they measure their
    time, follow a curriculum, and can be stored in checkpoints.
    """

    seconds = 0.0
    """Time spent in the environments since the last reset of this number to zero, seconds."""
    paused = False
    """Whether no episode runs: :meth:`reset` is required before the next step."""
    curriculum: Curriculum | None = None
    """The curriculum, if there is one."""
    earlier: PastPolicies | None = None
    """The policies of earlier selves, if there are such flows."""
    _progress = 0.0

    step_wait, rollout, labels, label_distances = map(_timed, ("step_wait", "rollout", "labels", "label_distances"))

    def reset(self) -> Any:
        """Begin an episode in every environment."""
        observations = super().reset()
        self.paused = False
        return observations

    def pause(self) -> None:
        """End a rollout. Real paths would continue with the last decision, so their episodes end with the rollout."""
        if self.missed_deadlines is not None:
            self.close()
            self.paused = True

    def set_progress(self, progress: float) -> None:
        """Advance the curriculum; ``progress``: finished fraction of the training, 0 to 1."""
        self._progress = progress
        super().set_progress(progress)

    def add_past(self, new: PastPolicy) -> None:
        """Let flows of earlier selves in later episodes draw this policy, too."""
        assert self.earlier is not None
        self.earlier.add(new, self.uses)
        self.set_earlier(self.earlier.policies, self.earlier.drawn)

    def capture(self) -> dict[str, Any]:
        """Return all that :meth:`restore` needs: numbers, text, tensors, and containers of them."""
        return {
            "environments": plain(super().capture()),
            "progress": self._progress,
            "curriculum": None if self.curriculum is None else self.curriculum.state_dict(),
            "earlier": None if self.earlier is None else plain(self.earlier.state()),
        }

    def restore(self, state: Mapping[str, Any]) -> Any:
        """Restore the captured state of every environment.

        Returns:
            The next observations; None with real paths: these cannot be restored, and new episodes begin with the next
            rollout.
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
    """An earlier state of the policy."""

    step: int
    """Number of decisions that it had learned from."""
    network: bytes
    """Content of an ``.onnx`` file."""
    card: str
    """Text of the card."""

    @cached_property
    def policy(self) -> LearnedPolicy:
        """The loaded policy."""
        card = PolicyCard.model_validate_json(self.card)
        return policies.from_parts(self.network, card, Path(f"{card.name}.onnx"))


class PastPolicies:
    """The latest kept policies, and older policies that unfinished episodes use.

    Args:
        every: Number of steps between two kept policies.
        keep: Number of policies that flows of an episode draw from.
    """

    def __init__(self, every: int, keep: int) -> None:
        self._every, self._keep = every, keep
        self._known: list[PastPolicy] = []

    def is_due(self, step: int) -> bool:
        """Return whether to keep the policy of this step."""
        latest = self._known[-1].step if self._known else 0
        return step // self._every > latest // self._every

    @property
    def drawn(self) -> list[str]:
        """Keys of the policies that flows draw from, oldest first."""
        return [one.policy.key for one in self._known[-self._keep :]]

    @property
    def policies(self) -> dict[str, LearnedPolicy]:
        """All policies by key."""
        return {one.policy.key: one.policy for one in self._known}

    def add(self, new: PastPolicy, in_use: Callable[[str], bool]) -> None:
        """Add the newest policy, and remove policies that are neither drawn nor (by their keys) in use."""
        self._known.append(new)
        old, latest = self._known[: -self._keep], self._known[-self._keep :]
        self._known = [one for one in old if in_use(one.policy.key)] + latest

    def state(self) -> list[dict[str, Any]]:
        """Return the state for a checkpoint."""
        return [
            {"step": one.step, "network": np.frombuffer(one.network, dtype=np.uint8), "card": one.card}
            for one in self._known
        ]

    def restore(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore the result of :meth:`state`."""
        self._known = [PastPolicy(one["step"], one["network"].tobytes(), one["card"]) for one in state]
