"""The environments that are learned from: they can be captured in the middle of their episodes, and brought back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.training.checkpoint import plain, with_arrays

if TYPE_CHECKING:
    from ccgym.config.curriculum import Curriculum
    from ccgym.training.earlier_self import EarlierPolicies, EarlierPolicy

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
    earlier: EarlierPolicies | None = None
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

    def add_earlier(self, new: EarlierPolicy) -> None:
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
