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
    """A flow on a simulated or real path. Each step is one decision of the sender.

    A step lasts from one decision to the next. The agent's clock sets the length of a step, in virtual time or, on a
    real path, in real time. An episode never *terminates*: its limit of steps or time *truncates* it, so a learner
    bootstraps the value of the last state.

    ``info`` of a step contains

    - ``interval``: raw statistics of the interval, by name with unit,
    - ``reward_terms``: the weighted terms of the reward; their sum is the reward,
    - ``time_s``: time in seconds since the start,
    - ``privileged``: the ground truth about the path, for experts and critics, if enabled; also after a reset.

    The last step of an episode adds ``summary`` (throughput, delay, loss … of the flow), ``path`` (the drawn numbers),
    ``simulator_seed`` and ``trajectory_hash``.

    A real path does not wait: until a new action arrives, the last action stays in force. ``info`` then also contains

    - ``missed_deadlines``: intervals that closed before the action arrived; the step skips them;
      ``missed_deadlines_total``: all missed deadlines of the episode so far,
    - ``skipped_reward``: the sum of the rewards of the skipped intervals, which the step's reward does not include,
    - ``decision_latency_s``: time from the close of the observed interval until the action was in force.

    :meth:`close` ends the process of a real path. The process also ends with this Python process.

    Args:
        config: Source of the defaults: a YAML file with the sections ``agent`` and ``environment``, or the name of a
            configuration that is included in ccgym (``"aurora"``). The registered ids set this argument.
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
            seed: Restarts the environment's random stream: the same seed gives the same episodes. If ``None``, the
                stream continues.
            options: ``{"path": …}`` uses this path instead of a drawn path. There are no other options.

        Returns:
            The observation for the first decision, and ``info``.
        """
        super().reset(seed=seed)
        batch = self._batch
        batch.begin(0, self.np_random, options)
        return batch.obs[0].copy(), self._privileged(0)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Apply an action, and run until the next decision.

        Returns:
            Observation, reward of the interval, ``False``, whether a limit was reached, and ``info``.

        Raises:
            ConfigError: The action does not match the action space; or :meth:`reset` was not called, at the start or
                after the end of an episode or :meth:`close`.
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
        """Return a picture of the episode so far: text for ``ansi``, bytes (height, width, 3) for ``rgb_array``."""
        pictures = self._pictures()
        return None if pictures is None else pictures[0]
