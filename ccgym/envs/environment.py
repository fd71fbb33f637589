"""What all interfaces of the environments share: a batch of episodes, random streams, paths, pictures."""

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
    """``count`` episodes at a time, and what every interface to them offers."""

    settings: Settings
    """How episodes are made."""
    _made_with: Mapping[str, Any]
    """Arguments of the constructor besides ``config``."""
    _kept: ClassVar[tuple[str, ...]]
    """Attributes that a copy takes along."""

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
        """Make room for the episodes; returns the spaces of one observation and one action.

        Raises:
            ConfigError: ``count`` is not positive, the render mode is unknown, or there are several learners in an
                episode of an interface that has none but one.
        """
        if len(settings.learners) > 1 and not several:
            raise ConfigError(
                "several-learners",
                f"{len(settings.learners)} flows that learn",
                where="environment.learners",
                expected="one",
                hint="ccgym.envs.parallel_env has several; here set={'environment.learners': 1} leaves one",
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
        """Where paths come from. Assign anything that the argument ``paths`` takes; used from the next episode on."""
        return self.settings.source

    @paths.setter
    def paths(self, value: object) -> None:
        self.settings = self._batch.settings = self.settings.with_paths(value)

    def set_progress(self, progress: float) -> None:
        """Move a curriculum on; ``progress``: fraction of the training that is done, 0 to 1."""
        self.settings = self._batch.settings = self.settings.at(progress)

    # --- Episodes -----------------------------------------------------------------------------------------------------

    def _generator(self, index: int) -> np.random.Generator:
        """The random stream of an environment; it begins with a random seed unless :meth:`_seed` has set one."""
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
        """End the episodes, and what runs on real paths; ``reset`` starts new ones."""
        self._batch.close()

    def _privileged(self, row: int) -> dict[str, Any]:
        """The entry ``privileged`` of a row's info, if it was asked for."""
        if not self.settings.privileged:
            return {}
        self._batch.refresh_privileged()
        return {"privileged": self._batch.privileged_info(row)}

    @property
    def trajectory_hash(self) -> str:
        """Hash of all that happened in the (first) episode so far."""
        return self._batch.trajectory_hash(0)

    def _pictures(self) -> list[Any] | None:
        """A picture per row; None, with a warning, in an environment that was made without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() shows nothing in an environment that was made without render_mode")
            return None
        return [self._picture(row) for row in range(len(self._batch.histories))]

    def _picture(self, row: int) -> Any:
        if self.render_mode is None:
            raise ConfigError(
                "argument-missing",
                "render() without render_mode",
                expected="render_mode='rgb_array' or 'ansi' at the start",
            )
        return self._batch.histories[row].render(self.render_mode)

    # --- Copies -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Settings and random streams; a copy begins its own episodes with ``reset()``."""
        kept = {name: getattr(self, name) for name in self._kept}
        return {"settings": self.settings, "made_with": self._made_with, "kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(config=state["settings"], **state["made_with"])  # type: ignore[misc]
        self.__dict__.update(state["kept"])
