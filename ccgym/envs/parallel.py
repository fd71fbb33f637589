"""Several learning senders on one path, as a PettingZoo parallel environment."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from typing_extensions import Unpack

from ccgym.envs.batch import OPTIONS, RUNNING, check_options
from ccgym.envs.config import read_learners
from ccgym.envs.environment import EnvironmentBase, Observation
from ccgym.envs.render import RENDER_FPS, RENDER_MODES
from ccgym.envs.settings import Arguments, PathOrName, Settings
from ccgym.errors import ConfigError, PlatformError
from ccgym.schemes.flow import LearnerFlow

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise PlatformError(
        "package-missing",
        "PettingZoo is not installed",
        where="ccgym.envs.parallel_env",
        expected="the extra `train`",
        hint="pip install 'ccgym[train]'",
    ) from None


class ParallelLinkEnv(EnvironmentBase, ParallelEnv[str, Observation, Any]):  # type: ignore[misc, unused-ignore]
    """Several flows on one path, each controlled by an agent: ``flow_0``, ``flow_1`` …

    Every flow has its own clock, so decisions are rarely at the same time. A step lasts until at least one agent is
    due; ``info["due"]`` shows whether an agent is due. The other agents get their latest observation again with reward
    0, and their actions are ignored. All agents are truncated together, at the time limit or when one agent has taken
    its ``episode_steps``. The intervals cut off then count, too. The time before an agent's first decision does not.

    The infos of agents that are due are as in :class:`~ccgym.envs.LinkEnv`, with the agent's own ``summary`` at the
    end.

    Args:
        agents: Number of learning flows, or one mapping with the fields of :class:`LearnerFlow` per flow, such as
            ``[{}, {"start": "5s"}, {"extra_rtt": "40ms"}]``. Default: the configuration's ``learners``, or 2.
        config: As in :class:`~ccgym.envs.LinkEnv`.
        render_mode: As in :class:`~ccgym.envs.LinkEnv`.
        **arguments: The fields of :class:`~ccgym.envs.settings.Arguments` except ``learner``.

    Raises:
        ConfigError: An argument is wrong.
        PlatformError: PettingZoo is not installed.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc, unused-ignore]
        "name": "ccgym_path_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "is_parallelizable": True,
    }

    _kept = ("observation_spaces", "action_spaces", "_generators")

    def __init__(
        self,
        agents: int | Sequence[Mapping[str, Any] | LearnerFlow] | None = None,
        config: PathOrName | Settings = "link",
        *,
        render_mode: str | None = None,
        **arguments: Unpack[Arguments],
    ) -> None:
        if "learner" in arguments:
            raise ConfigError(
                "unknown-argument", "learner", expected="agents=[{…}, {…}], one mapping per learning flow"
            )
        settings = Settings.read(config, **arguments)
        settings = replace(settings, learners=_learners(agents, settings.learners))
        self._made_with = {"agents": settings.learners, "render_mode": render_mode}
        observation, action = self._setup(settings, 1, render_mode=render_mode, several=True)
        self.possible_agents = [f"flow_{place}" for place in range(self._batch.learners)]
        self.agents: list[str] = []
        self.observation_spaces = {agent: copy.deepcopy(observation) for agent in self.possible_agents}
        self.action_spaces = {agent: copy.deepcopy(action) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space of an agent: the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space of an agent: the same object at every call."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin an episode; arguments as in :meth:`LinkEnv.reset`.

        Unknown options only cause a warning, because PettingZoo's own test passes an unknown option.
        """
        try:
            check_options(options)
        except ConfigError as error:
            warnings.warn(str(error), stacklevel=2)
            options = {name: value for name, value in (options or {}).items() if name in OPTIONS}
        self._begin(0, seed, options)
        self.agents = list(self.possible_agents)
        return self._observations(), {
            agent: {"due": bool(self._batch.due[row]), **self._privileged(row)} for row, agent in enumerate(self.agents)
        }

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Apply the actions of the agents that are due, and run until an agent is due again.

        Args:
            actions: An action for each agent that is due; other actions are ignored.

        Raises:
            ConfigError: An action of an agent that is due is missing, or does not match its action space.
        """
        batch = self._batch
        for row in np.flatnonzero(batch.due).tolist():
            agent = self.possible_agents[row]
            if agent not in actions:
                raise ConfigError(
                    "action-shape",
                    f"actions only for {', '.join(actions) or 'no agent'}",
                    where="actions",
                    expected=f"an action for {agent}, which is due",
                )
            self._actions.read(actions[agent], row)
        ended = batch.step()
        fresh = batch.due.astype(np.bool_) | (batch.ended[0] != RUNNING)
        agents = self.agents
        infos: dict[str, dict[str, Any]] = {}
        for row, agent in enumerate(agents):
            infos[agent] = {"due": bool(batch.due[row]) and not ended, **self._privileged(row)}
            if fresh[row]:
                infos[agent].update(batch.step_info(row))
            if ended:
                infos[agent].update(batch.end_info(0, row))
        rewards = dict(zip(agents, batch.reward.tolist(), strict=True))
        observations = self._observations()
        if ended:
            self.agents = []
        return observations, rewards, dict.fromkeys(agents, False), dict.fromkeys(agents, ended), infos

    def _observations(self) -> dict[str, Observation]:
        return {agent: self._batch.obs[row].copy() for row, agent in enumerate(self.possible_agents)}

    def state(self) -> npt.NDArray[np.float64]:
        """Return the ground truth about the path, a row per agent, for central critics; see :attr:`state_columns`."""
        return np.array(self._batch.refresh_privileged())

    @property
    def state_columns(self) -> list[str]:
        """Names, with units, of the columns of :meth:`state`."""
        return list(self._batch.privileged_names)

    def render(self) -> Any:
        """Return the pictures of all agents: text for ``ansi``; for ``rgb_array``, images below each other."""
        pictures = [self._picture(row) for row in range(len(self.possible_agents))]
        if self.render_mode == "rgb_array":
            return np.concatenate(pictures, axis=0)
        named = zip(self.possible_agents, pictures, strict=True)
        return "\n".join(f"{agent}\n{picture}" for agent, picture in named)


parallel_env = ParallelLinkEnv
"""The environment under the name that PettingZoo's convention requires."""


def _learners(agents: object, defaults: tuple[LearnerFlow, ...]) -> tuple[LearnerFlow, ...]:
    if agents is None:
        agents = defaults if len(defaults) > 1 else 2
    read = read_learners(agents, "agents", None)
    flows = (defaults[0],) * read if isinstance(read, int) else read
    for place, flow in enumerate(flows):
        if flow.probability < 1:
            raise ConfigError(
                "out-of-range",
                f"probability {flow.probability:g}",
                where=f"agents[{place}]",
                expected="1: agents always take part",
            )
    return flows
