"""One sender on one path, as a Gymnasium environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ccgym.config.path import PathLike
from ccgym.envs.batches import make_batch
from ccgym.envs.flows import LearnerFlow
from ccgym.envs.paths import PathsOfEpisodes
from ccgym.envs.render import RENDER_FPS, RENDER_MODES, check_render_mode
from ccgym.envs.settings import Settings
from ccgym.envs.spaces import ActionReader, action_space, observation_space

Observation = npt.NDArray[np.float32]


class LinkEnv(PathsOfEpisodes, gymnasium.Env[Observation, Any]):
    """A flow on a path, simulated or real; each step is one decision of its sender.

    A step lasts as the agent's clock has it, from one decision to the next, in virtual time or, on a real path, in real
    time. An episode never
    *terminates*; its limit of steps or time *truncates* it, so a learner bootstraps the value of the last state.

    ``info`` of a step has

    - ``interval``: raw statistics of the interval by name with unit,
    - ``reward_terms``: the reward's terms, weighted; their sum is the reward,
    - ``time_s``: time in seconds since the start,
    - ``privileged``: the truth about the path, for experts and critics, if asked for; at resets too.

    The last step of an episode adds ``summary`` (throughput, delay, loss … of the flow), ``path`` (the drawn numbers),
    ``simulator_seed`` and ``trajectory_hash``.

    A real path does not wait: until an action is there, the last one holds. ``info`` then also has

    - ``missed_deadlines``: intervals that closed before the action was there, which the step skips;
      ``missed_deadlines_total``: those of the episode so far,
    - ``skipped_reward``: the sum of their rewards, which are no part of the step's,
    - ``decision_latency_s``: from the close of the interval that was answered until the answer was in force.

    :meth:`close` ends the process in which a real path runs; so does the end of this one.

    Args:
        config: Where defaults come from: a YAML file with the sections ``agent`` and ``environment``, or the name of
            one that comes along (``"aurora"``). The registered ids set it.
        set: Single keys of the configuration's sections ``agent`` and ``environment``, as ``--set`` of ``train.py``
            takes them: ``{"agent.action.map.delta": 0.05, "environment.episode.steps": 100}``.
        path: One path: anything that :meth:`NetworkPath.from_any` understands.
        paths: Or a distribution of paths, by name or in full: see :mod:`ccgym.config.distributions`.
        agent: Clock, observation, actions and reward: a YAML file, a mapping or an ``AgentConfig``.
        backend: Where it runs: ``"sim"``; or for real, ``"emulated"`` by this machine or ``"mahimahi"``.
        episode_steps: Most decisions per episode.
        duration: Most time per episode, seconds or ``"30s"``. Either limit replaces those of ``config``.
        flows: Other flows on the path: ``["cubic", {"scheme": "bbr", "start": "5s"}]``.
        learner: Fields of :class:`LearnerFlow` for the flow that learns, such as ``{"start": "1s"}``.
        privileged: Whether ``info["privileged"]`` is there.
        strict: Whether an action that is not finite is an error. If not, the flow holds its last decision, as a
            deployed policy's does.
        render_mode: ``"ansi"`` or ``"rgb_array"``.

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

    def __init__(
        self,
        config: str | os.PathLike[str] = "link",
        *,
        set: Mapping[str, Any] | None = None,
        path: PathLike | None = None,
        paths: object = None,
        agent: object = None,
        backend: str | None = None,
        episode_steps: int | None = None,
        duration: str | float | None = None,
        flows: Sequence[object] | None = None,
        learner: Mapping[str, Any] | LearnerFlow | None = None,
        privileged: bool | None = None,
        strict: bool = True,
        render_mode: str | None = None,
        **unknown: Any,
    ) -> None:
        self._build(
            Settings.read(
                config=config,
                set=set,
                path=path,
                paths=paths,
                agent=agent,
                backend=backend,
                episode_steps=episode_steps,
                duration=duration,
                flows=flows,
                learner=learner,
                privileged=privileged,
                strict=strict,
                unknown=unknown,
            ),
            render_mode,
        )

    @classmethod
    def of(cls, settings: Settings, render_mode: str | None = None) -> LinkEnv:
        """The environment of settings that are there already."""
        env = cls.__new__(cls)
        env._build(settings, render_mode)
        return env

    def _build(self, settings: Settings, render_mode: str | None) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.settings = settings
        batch = self._batch = make_batch(settings, 1, history=render_mode is not None)
        self.observation_space: spaces.Space[Any] = observation_space(batch.face)
        actions = action_space(batch.face, discrete=batch.discrete)
        self.action_space = actions
        self._actions = ActionReader(actions, batch.actions, strict=settings.strict)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Restarts the environment's random stream: the same seed gives the same episodes. Without it the
                stream goes on.
            options: ``{"path": …}`` uses that path instead of drawing one; there are no others.

        Returns:
            The observation of the first decision, and what is known by then.
        """
        super().reset(seed=seed)
        batch = self._batch
        batch.begin(0, self.np_random, options)
        return batch.obs[0].copy(), self._privileged()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a decision, and let time pass until the next one.

        Returns:
            Observation, reward of the interval, ``False``, whether a limit was reached, and what else is known.

        Raises:
            ConfigError: The action does not fit the action space; or there was no :meth:`reset`, at the start or after
                the episode's end or :meth:`close`.
        """
        batch = self._batch
        self._actions.read_row(0, action)
        truncated = batch.step()
        info = {**batch.step_info(0), **self._privileged()}
        if truncated:
            info.update(batch.end_info(0))
        return batch.obs[0].copy(), float(batch.reward[0]), False, truncated, info

    def render(self) -> Any:
        """The episode so far: text for ``ansi``, an array (height, width, 3) of bytes for ``rgb_array``."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() shows nothing in an environment that was made without render_mode")
            return None
        return self._batch.histories[0].render(self.render_mode)

    def close(self) -> None:
        """End the episode, and what runs on a real path; :meth:`reset` begins anew."""
        self._batch.close()

    def _privileged(self) -> dict[str, Any]:
        if not self.settings.privileged:
            return {}
        self._batch.refresh_truth()
        return {"privileged": self._batch.truth_info(0)}

    @property
    def trajectory_hash(self) -> str:
        """Hash of all that happened in the episode so far."""
        return self._batch.trajectory_hash(0)

    # --- Copies -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Settings and random stream; a copy begins its own episode with :meth:`reset`."""
        return {
            "settings": self.settings,
            "render_mode": self.render_mode,
            "spec": self.spec,
            "spaces": (self.action_space, self.observation_space),
            "_np_random": self._np_random,
            "_np_random_seed": self._np_random_seed,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._build(state["settings"], state["render_mode"])
        self.spec = state["spec"]
        self.action_space, self.observation_space = state["spaces"]
        self._np_random, self._np_random_seed = state["_np_random"], state["_np_random_seed"]
