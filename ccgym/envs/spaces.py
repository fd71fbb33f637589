"""Gymnasium's spaces of an agent, and the check of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ccgym.errors import ConfigError, shown

Floats: TypeAlias = npt.NDArray[np.float32]
AgentDescription: TypeAlias = Mapping[str, Any]
"""An agent as returned by ``_core.describe_agent``: rows ``observation``, ``action`` and ``reward``."""


def observation_space(agent: AgentDescription) -> spaces.Box:
    """Return the box of an agent's observations. Its bounds are the finite bounds of the features."""
    return _box(agent["observation"])


def action_space(agent: AgentDescription, *, discrete: bool) -> spaces.Box | spaces.Discrete[np.int64]:
    """Return the space of an agent's actions: ``Discrete`` if its map lists operations, else a box."""
    rows = agent["action"]
    return spaces.Discrete(max(1, len(rows))) if discrete else _box(rows)


def _box(rows: Sequence[Mapping[str, Any]]) -> spaces.Box:
    low, high = (np.array([row[edge] for row in rows], dtype=np.float32) for edge in ("low", "high"))
    return spaces.Box(low, high, dtype=np.float32)


class ActionReader:
    """Writes actions into the array of the native core, or raises an error for wrong actions.

    The native agent ignores numbers that are not finite: it keeps its last action and counts the event. This is right
    for a deployed policy. In training such a number is an error that the user should see at once, so a ``strict``
    reader refuses it. Actions outside the bounds of the box are allowed; the agent's action map defines their effect.
    """

    def __init__(self, space: spaces.Box | spaces.Discrete[np.int64], target: Floats, *, strict: bool) -> None:
        self._target = target
        self._strict = strict
        self._options = int(space.n) if isinstance(space, spaces.Discrete) else 0
        self._shape = (len(target),) if self._options else target.shape

    def read(self, actions: Any, row: int | None = None) -> None:
        """Read the actions of all rows: an array with one row (for discrete actions, one number) per environment. Or
        read the action of one row.

        Raises:
            ConfigError: The shape is wrong; or, if strict, a number is not finite or not the index of an operation.
        """
        target, shape = (self._target, self._shape) if row is None else (self._target[row], self._shape[1:])
        try:
            given = np.asarray(actions, dtype=np.float32)
        except (TypeError, ValueError):
            raise ConfigError("wrong-type", shown(actions), where="action", expected="numbers") from None
        if given.shape != shape:
            raise ConfigError(
                "action-shape",
                f"{'an array' if row is None else shown(actions)} of shape {given.shape}",
                where="action",
                expected=f"shape {shape}" if shape else "one whole number",
                hint="see `env.action_space`; `ccgym describe` explains each number",
            )
        if self._options:
            valid = (given >= 0) & (given < self._options) & (given == np.floor(given))
            if not valid.all() and (self._strict or np.isfinite(given).all()):
                raise ConfigError(
                    "action-out-of-range",
                    shown(given.tolist()),
                    where="action",
                    expected=f"whole numbers from 0 to {self._options - 1}",
                )
            target[..., 0] = given
        else:
            target[:] = given
            self.check_finite(target)

    def check_finite(self, actions: Floats) -> None:
        """Raise :class:`ConfigError` for a number that is not finite, if the reader is strict."""
        # For many numbers the sum of squares is fast. It is finite if all numbers are finite and not huge.
        fast = all(map(isfinite, actions.tolist())) if actions.ndim == 1 else isfinite(np.vdot(actions, actions))
        if self._strict and not fast and not np.isfinite(actions).all():
            raise ConfigError(
                "action-not-finite",
                f"{shown(actions[~np.isfinite(actions)].tolist())} among the actions",
                where="action",
                expected="finite numbers",
                hint="check the policy, which has diverged; with strict=False the flow keeps its last action",
            )
