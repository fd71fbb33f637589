"""One sender on one path, as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
from gymnasium import spaces
from typing_extensions import Unpack

from ccgym.envs.environment import EnvironmentBase, Observation
from ccgym.envs.render import RENDER_FPS, RENDER_MODES
from ccgym.envs.settings import Arguments, PathOrName, Settings


class LinkEnv(EnvironmentBase, gymnasium.Env[Observation, Any]):
    """A flow on a path, simulated or real; each step is one decision of its sender.

    A step lasts from one decision to the next, as the agent's clock has it: in virtual time or, on a real path, in
    real time. An episode never *terminates*; its limit of steps or time *truncates* it, so a learner bootstraps the
    value of the last state.

    ``info`` of a step has

    - ``interval``: raw statistics of the interval by name with unit,
    - ``reward_terms``: the reward's terms, weighted; their sum is the reward,
    - ``time_s``: time in seconds since the start,
    - ``privileged``: the ground truth about the path, for experts and critics, if asked for; at resets too.

    The last step of an episode adds ``summary`` (throughput, delay, loss … of the flow), ``path`` (the drawn numbers),
    ``simulator_seed`` and ``trajectory_hash``.

    A real path does not wait: until an action is there, the last one holds. ``info`` then also has

    - ``missed_deadlines``: intervals that closed before the action was there, which the step skips;
      ``missed_deadlines_total``: those of the episode so far,
    - ``skipped_reward``: the sum of their rewards, which the step's reward does not include,
    - ``decision_latency_s``: from the close of the interval that was answered until the answer was in force.

    :meth:`close` ends the process in which a real path runs; so does the end of this one.

    Args:
        config: Where defaults come from: a YAML file with the sections ``agent`` and ``environment``, or the name of
            one that comes with ccgym (``"aurora"``). The registered ids set it.
        render_mode: ``"ansi"`` or ``"rgb_array"``.
        **arguments: The fields of :class:`~ccgym.envs.settings.Arguments`: ``path``, ``agent``, ``flows`` …

    Raises:
        ConfigError: An argument is wrong.

    Example::

        env = gymnasium.make("ccgym/Aurora-v0", path=ccgym.NetworkPath.named("77.72mbps"), duration="30s")
        observation, info = env.reset(seed=1)
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
    }

    _kept = ("spec", "action_space", "observation_space", "_np_random", "_np_random_seed")

    def __init__(
        self, config: PathOrName | Settings = "link", *, render_mode: str | None = None, **arguments: Unpack[Arguments]
    ) -> None:
        self._made_with = {"render_mode": render_mode}
        settings = Settings.read(config, **arguments)
        self.observation_space: spaces.Space[Any]
        self.observation_space, self.action_space = self._setup(settings, 1, render_mode=render_mode)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Restarts the environment's random stream: the same seed gives the same episodes. Without it the
                stream continues.
            options: ``{"path": …}`` uses that path instead of drawing one; there are no others.

        Returns:
            The observation of the first decision, and what is known by then.
        """
        super().reset(seed=seed)
        batch = self._batch
        batch.begin(0, self.np_random, options)
        return batch.obs[0].copy(), self._privileged(0)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a decision, and let time pass until the next one.

        Returns:
            Observation, reward of the interval, ``False``, whether a limit was reached, and what else is known.

        Raises:
            ConfigError: The action does not fit the action space; or there was no :meth:`reset`, at the start or after
                the episode's end or :meth:`close`.
        """
        batch = self._batch
        self._actions.read(action, 0)
        truncated = batch.step()
        info = batch.step_info(0)
        info |= self._privileged(0)
        if truncated:
            info.update(batch.end_info(0))
        return batch.obs[0].copy(), float(batch.reward[0]), False, truncated, info

    def render(self) -> Any:
        """The episode so far: text for ``ansi``, an array (height, width, 3) of bytes for ``rgb_array``."""
        pictures = self._pictures()
        return None if pictures is None else pictures[0]
