"""The environments that are learned from: they can be captured in the middle of their episodes, and brought back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn, VecEnvWrapper
from typing_extensions import override

from ccgym.config.curriculum import Curriculum
from ccgym.errors import ResultsError

if TYPE_CHECKING:
    from ccgym import _core
    from ccgym.envs.rollout import Rollout
    from ccgym.training.earlier_self import EarlierPolicies, EarlierPolicy


class RolloutEnv(VecEnvWrapper):
    """Environments that measure their own time, move along a curriculum, and go into checkpoints."""

    def __init__(self, env: Any, curriculum: Curriculum | None = None, earlier: EarlierPolicies | None = None) -> None:
        """Wrap.

        Args:
            env: A :class:`ccgym.envs.SB3LinkVecEnv`, perhaps wrapped.
            curriculum: The one that it follows, if it does.
            earlier: Where the policies of earlier selves are kept, if it has such flows.
        """
        super().__init__(env)
        self.seconds = 0.0
        """Time spent in the environments since it was last set to zero."""
        self.paused = False
        """Whether nothing runs: :meth:`reset` must come before the next step."""
        self._env = env
        self.curriculum = curriculum
        """The one that it follows, if it does."""
        self.earlier = earlier
        """Where the policies of earlier selves are kept, if it has such flows."""
        self._progress = 0.0
        self._observations = np.zeros(0, dtype=np.float32)

    @override
    def reset(self) -> npt.NDArray[np.float32]:
        self._observations = self.venv.reset()  # type: ignore[assignment]
        self.paused = False
        return self._observations

    def pause(self) -> None:
        """A rollout is over. Real paths would run on under the last decision, so their episodes end with it."""
        if self.missed_deadlines() is not None:
            self.venv.close()
            self.paused = True

    @override
    def step_wait(self) -> VecEnvStepReturn:
        began = time.perf_counter()
        outcome = self.venv.step_wait()
        self.seconds += time.perf_counter() - began
        self._observations = outcome[0]  # type: ignore[assignment]
        return outcome

    @property
    def learners(self) -> int:
        """Flows that learn on each path."""
        learners: int = self.get_attr("learners")[0]
        return learners

    @property
    def rolls(self) -> bool:
        """Whether :meth:`rollout` works."""
        able: bool = getattr(self._env, "rolls", False)
        return able

    def rollout(self, actor: _core.Actor, noise: npt.NDArray[np.float32]) -> Rollout:
        """See :meth:`ccgym.envs.SB3LinkVecEnv.rollout`."""
        began = time.perf_counter()
        rollout: Rollout = self._env.rollout(actor, noise)
        self.seconds += time.perf_counter() - began
        self._observations = rollout.last_observations
        return rollout

    def labels(self) -> npt.NDArray[np.float32]:
        """What the expert would do, of the observations last returned; NaN where it does not know."""
        began = time.perf_counter()
        wanted: npt.NDArray[np.float32] = self.venv.labels()  # type: ignore[attr-defined]
        self.seconds += time.perf_counter() - began
        return wanted

    def label_distances(self) -> npt.NDArray[np.float64]:
        """How far from the expert's target each discrete action would lead, likewise."""
        began = time.perf_counter()
        distances: npt.NDArray[np.float64] = self.venv.label_distances()  # type: ignore[attr-defined]
        self.seconds += time.perf_counter() - began
        return distances

    # --- Curriculum ---------------------------------------------------------------------------------------------------

    def set_progress(self, progress: float) -> None:
        """Move the curriculum on; ``progress``: fraction of the training that is done, 0 to 1."""
        self._progress = progress
        self._env.set_progress(progress)

    def curriculum_levels(self) -> dict[str, float]:
        """Where the curriculum stands, by name; empty without one."""
        return {} if self.curriculum is None else {"level": self.curriculum.level()}

    def missed_deadlines(self) -> int | None:
        """Decisions that came too late so far; None where time waits for them."""
        missed: int | None = getattr(self._env, "missed_deadlines", None)
        return missed

    # --- Earlier selves -----------------------------------------------------------------------------------------------

    def add_earlier(self, new: EarlierPolicy) -> None:
        """Let flows of earlier selves in the episodes to come draw this policy, too."""
        assert self.earlier is not None
        self.earlier.add(new, self._env.uses)
        self._env.set_earlier(self.earlier.policies, self.earlier.drawn)

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    def capture(self) -> dict[str, Any]:
        """All that :meth:`restore` needs: numbers, text, tensors, and containers of them."""
        state: dict[str, Any] = plain(self._env.capture())
        return {
            "environments": state,
            "observations": plain(self._observations),
            "progress": self._progress,
            "curriculum": None if self.curriculum is None else self.curriculum.state_dict(),
            "earlier": None if self.earlier is None else plain(self.earlier.state()),
        }

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Bring every environment to where it was.

        Returns:
            Whether that could be done. Real paths do not come back; new episodes begin with the next rollout.

        Raises:
            ResultsError: The environments do something else than they did: another simulator, or other paths.
        """
        if self.curriculum is not None and state["curriculum"] is not None:
            self.curriculum.load_state_dict(state["curriculum"])
            self.set_progress(state["progress"])
        if self.earlier is not None:
            self.earlier.restore(with_arrays(state["earlier"]))
            self._env.set_earlier(self.earlier.policies, self.earlier.drawn)
        self._observations = self._env.restore(with_arrays(state["environments"]))
        if state["environments"].get("episodes", ()) is None:
            self.paused = True
            return False
        if not np.array_equal(self._observations, state["observations"].numpy()):
            raise ResultsError(
                "resume-changed",
                "the environments no longer do what they did when the checkpoint was written",
                expected="the same simulator, configuration and traces",
                hint="resume with the version of ccgym in versions.json, or start a new run",
            )
        return True


def plain(value: Any) -> Any:
    """Arrays as tensors and numpy's numbers as Python's, at any depth: what ``torch.load`` reads safely."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {key: plain(inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inside) for inside in value]
    return value


def with_arrays(value: Any) -> Any:
    """The inverse of :func:`plain` for arrays, which may be written to."""
    if isinstance(value, torch.Tensor):
        return value.numpy().copy()
    if isinstance(value, Mapping):
        return {key: with_arrays(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [with_arrays(inside) for inside in value]
    return value
