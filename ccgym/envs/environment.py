"""Common parts of all interfaces of environments: a batch of episodes, random streams, paths, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding

from ccgym.envs.batch import EpisodeBatch
from ccgym.envs.render import check_render_mode
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.envs.spaces import ActionReader, action_space, observation_space
from ccgym.errors import ConfigError, shown

Observation = npt.NDArray[np.float32]
Spaces = tuple[spaces.Box, "spaces.Box | spaces.Discrete[np.int64]"]


class EnvironmentBase:
    """Base of all interfaces: ``count`` parallel episodes."""

    settings: Settings
    """Settings of the episodes."""
    _made_with: Mapping[str, Any]
    """Arguments of the constructor, without ``config``."""
    _kept: ClassVar[tuple[str, ...]]
    """Attributes that a copy keeps."""

    def _setup(
        self,
        settings: Settings,
        count: int,
        *,
        threads: int = 1,
        render_mode: str | None = None,
        journal: bool = False,
        several: bool = False,
    ) -> Spaces:
        """Create the batch of episodes; return the spaces of one observation and one action.

        Raises:
            ConfigError: ``count`` is not positive, the render mode is unknown, or the settings have several learners
                but the interface supports only one.
        """
        if len(settings.learners) > 1 and not several:
            raise ConfigError(
                "several-learners",
                f"{len(settings.learners)} learning flows",
                where="environment.learners",
                expected="one",
                hint="use ccgym.envs.parallel_env for several, or set={'environment.learners': 1}",
            )
        if count < 1:
            raise ConfigError("out-of-range", shown(count), where="num_envs", expected="1 or more")
        check_render_mode(render_mode)
        self.settings = settings
        self.render_mode = render_mode
        history = render_mode is not None
        batch: EpisodeBatch
        if settings.is_real:
            from ccgym.envs.real_batch import RealBatch

            batch = RealBatch(settings, count, history=history)
        else:
            batch = SimulatedBatch(settings, count, threads, history=history, journal=journal)
        self._batch = batch
        self._generators: list[np.random.Generator | None] = [None] * count
        self._known_seeds = [-1] * count
        actions = action_space(batch.agent, discrete=batch.discrete)
        self._actions = ActionReader(actions, batch.actions, strict=settings.strict)
        return observation_space(batch.agent), actions

    # --- Paths --------------------------------------------------------------------------------------------------------

    @property
    def paths(self) -> object:
        """The source of paths. Assign any value of the argument ``paths``; it applies from the next episode on."""
        return self.settings.source

    @paths.setter
    def paths(self, value: object) -> None:
        self.settings = self._batch.settings = self.settings.with_paths(value)

    def set_progress(self, progress: float) -> None:
        """Set the stage of a curriculum; ``progress``: completed fraction of the training, 0 to 1."""
        self.settings = self._batch.settings = self.settings.at(progress)

    # --- Episodes -----------------------------------------------------------------------------------------------------

    def _generator(self, index: int) -> np.random.Generator:
        """Return the random stream of an environment; its seed is random unless :meth:`_seed` has set one."""
        generator = self._generators[index]
        if generator is None:
            generator = self._seed(index, None)
        return generator

    def _seed(self, index: int, seed: int | None) -> np.random.Generator:
        generator, self._known_seeds[index] = seeding.np_random(seed)
        self._generators[index] = generator
        return generator

    def _begin(self, index: int, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode; ``seed`` restarts the environment's random stream."""
        if seed is not None:
            self._seed(index, seed)
        self._batch.begin(index, self._generator(index), options)

    def close(self, **_: Any) -> None:
        """End the episodes and the processes of real paths; ``reset`` starts new episodes."""
        self._batch.close()

    def _privileged(self, row: int) -> dict[str, Any]:
        """Return the entry ``privileged`` for the info of a row, if the settings enable it."""
        if not self.settings.privileged:
            return {}
        self._batch.refresh_privileged()
        return {"privileged": self._batch.privileged_info(row)}

    @property
    def trajectory_hash(self) -> str:
        """Hash of the trajectory of the (first) episode so far."""
        return self._batch.trajectory_hash(0)

    def _pictures(self) -> list[Any] | None:
        """Return a picture per row; ``None``, with a warning, if the environment has no render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() shows nothing: the environment was created without render_mode")
            return None
        return [self._picture(row) for row in range(len(self._batch.histories))]

    def _picture(self, row: int) -> Any:
        if self.render_mode is None:
            raise ConfigError(
                "argument-missing",
                "render() without render_mode",
                expected="an environment created with render_mode='rgb_array' or 'ansi'",
            )
        return self._batch.histories[row].render(self.render_mode)

    # --- Copies -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return settings and random streams; a copy begins its own episodes with ``reset()``."""
        kept = {name: getattr(self, name) for name in self._kept}
        return {"settings": self.settings, "made_with": self._made_with, "kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(config=state["settings"], **state["made_with"])  # type: ignore[misc]
        self.__dict__.update(state["kept"])
