"""What toy environments for learners have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv


class ToyVecEnv(VecEnv):
    """A ``VecEnv`` of one learner each, in which nothing is real; subclasses override ``reset`` and ``step_wait``."""

    render_mode = None
    learners = 1
    missed_deadlines = None
    actions: np.ndarray

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def close(self) -> None: ...
    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
