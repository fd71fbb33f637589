"""Many senders, each on its own path, as one Gymnasium vector environment. The native core steps all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from typing_extensions import Unpack

from ccgym.envs.batch import OPTIONS, check_options
from ccgym.envs.environment import EnvironmentBase
from ccgym.envs.render import RENDER_FPS, RENDER_MODES
from ccgym.envs.settings import Arguments, PathOrName, Settings
from ccgym.errors import ConfigError, shown

Observations = npt.NDArray[np.float32]
Seeds = int | Sequence[int | None] | None


class VectorLinkEnv(EnvironmentBase, VectorEnv[Observations, Any, npt.NDArray[Any]]):
    """``num_envs`` environments like :class:`~ccgym.envs.LinkEnv`, in one call per step, without Python's lock.

    Environment ``i`` of ``reset(seed=s)`` has the same episodes as a ``LinkEnv`` with ``reset(seed=s + i)``, bit for
    bit. ``infos`` contains arrays. Each array has a mask with the same name and an underscore in front, as in
    Gymnasium's own vector environments.

    ``autoreset_mode`` is also as in Gymnasium. ``SAME_STEP``: when an episode ends, the step resets the environment and
    returns the first observation of the next episode. ``infos["final_obs"][i]`` is the last observation, and
    ``infos["final_info"]`` contains the last info. ``NEXT_STEP``: the next step resets the environment, with reward 0,
    and ignores its action. ``DISABLED``: :meth:`reset` with ``reset_mask`` must follow.

    Args:
        num_envs: Number of environments.
        threads: Threads of the native core; 0: one per processor. The results do not depend on it.
        copy: Whether :meth:`reset` and :meth:`step` return new arrays. If not, they return the environment's arrays,
            which the next call overwrites.
        autoreset_mode: One of Gymnasium's modes to begin the next episode, or its name. Gymnasium's wrapper
            ``NormalizeObservation`` requires ``NEXT_STEP``.
        max_episode_steps: Same as ``episode_steps``; :func:`gymnasium.make_vec` uses this name.
        render_mode: As in :class:`~ccgym.envs.LinkEnv`.
        **arguments: The fields of :class:`~ccgym.envs.settings.Arguments`.

    Example::

        envs = gymnasium.make_vec("ccgym/Aurora-v0", num_envs=64)
        observations, infos = envs.reset(seed=1)
        observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    _kept = ("spec", "_generators", "_known_seeds")

    def __init__(
        self,
        num_envs: int = 1,
        config: PathOrName | Settings = "link",
        *,
        threads: int = 1,
        copy: bool = True,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **arguments: Unpack[Arguments],
    ) -> None:
        if max_episode_steps is not None:
            arguments.setdefault("episode_steps", max_episode_steps)
        modes = {mode.value: mode for mode in AutoresetMode}
        if autoreset_mode not in (*modes, *modes.values()):
            raise ConfigError(
                "unknown-choice", shown(autoreset_mode), where="autoreset_mode", expected=f"one of {', '.join(modes)}"
            )
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}  # type: ignore[misc]
        self._made_with = {
            "num_envs": num_envs,
            "threads": threads,
            "copy": copy,
            "autoreset_mode": self.autoreset_mode,
            "render_mode": render_mode,
        }
        spaces = self._setup(Settings.read(config, **arguments), num_envs, threads=threads, render_mode=render_mode)
        self.single_observation_space, self.single_action_space = spaces
        self.num_envs = num_envs
        self.copy = copy
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._terminations = np.zeros(num_envs, dtype=np.bool_)
        self._all = np.ones(num_envs, dtype=np.bool_)
        self._all.flags.writeable = False

    # --- Random streams -----------------------------------------------------------------------------------------------

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """One generator per environment."""
        return tuple(self._generator(index) for index in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Initial seeds of the generators; -1 if a seed is unknown."""
        return tuple(self._known_seeds)

    # --- Running ------------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: Environment ``i`` gets ``seed + i``, or ``seed[i]`` of a list. ``None``: its stream continues.
            options: ``{"path": …}`` uses this path in all environments instead of drawn paths. ``{"reset_mask": …}``,
                an array of booleans, resets only the environments where it is true.
        """
        seeds: Sequence[int | None]
        if seed is None or isinstance(seed, (int, np.integer)):
            seeds = [None if seed is None else int(seed) + index for index in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ConfigError(
                "wrong-count", f"{len(seeds)} seeds", where="seed", expected=f"{self.num_envs}: one per environment"
            )
        check_options(options, (*OPTIONS, "reset_mask"))
        mask = self._mask(options)
        options = {name: value for name, value in (options or {}).items() if name in OPTIONS}
        for index in np.flatnonzero(mask).tolist():
            self._begin(index, seeds[index], options)
        infos: dict[str, Any] = {}
        if self.settings.privileged:
            for index in np.flatnonzero(mask).tolist():
                infos = self._add_info(infos, self._privileged(index), index)
        return self._observations(), infos

    def _mask(self, options: Mapping[str, Any] | None) -> npt.NDArray[np.bool_]:
        if options is None or options.get("reset_mask") is None:
            return self._all
        mask = np.asarray(options["reset_mask"])
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ConfigError(
                "wrong-type",
                shown(mask),
                where="options['reset_mask']",
                expected=f"{self.num_envs} booleans, at least one of them true",
            )
        return mask

    def step(
        self, actions: Any
    ) -> tuple[Observations, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Apply an action in each environment, and run each environment until its next decision.

        Returns:
            Observations, rewards, terminations (always false), truncations, and infos.

        Raises:
            ConfigError: The actions do not match the action space, or :meth:`reset` must be called first.
        """
        batch = self._batch
        self._actions.read(actions)
        over = np.flatnonzero(batch.over()).tolist() if self.autoreset_mode is AutoresetMode.NEXT_STEP else []
        some_ended = len(over) < self.num_envs and batch.step(leave_ended=bool(over))
        for index in over:
            self._begin(index)
            batch.reward[index] = 0.0
        if self.settings.privileged:
            batch.refresh_privileged()
        rewards = batch.reward.copy() if self.copy else batch.reward
        truncations = batch.ended.astype(np.bool_)
        ended = np.flatnonzero(truncations).tolist() if some_ended else []
        told = self._all.copy()
        others = ended if self.autoreset_mode is AutoresetMode.SAME_STEP else over
        if others:
            told[others] = False
        infos = self._infos(told) if len(others) < self.num_envs else {}
        if ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos["final_info"] = self._infos(truncations.copy())
        for index in ended:
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                self._end(index, infos)
            else:
                self._add_info(infos, batch.end_info(index), index)
        for index in over if self.settings.privileged else ():
            self._add_info(infos, self._privileged(index), index)
        return self._observations(), rewards, self._terminations.copy(), truncations, infos

    def _observations(self) -> Observations:
        return self._batch.obs.copy() if self.copy else self._batch.obs

    def _infos(self, mask: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return the infos of the steps as arrays; ignore rows outside the mask."""
        batch = self._batch
        stats, terms = batch.stats, batch.reward_terms
        if self.copy:
            stats, terms = stats.copy(), terms.copy()
        interval, reward_terms = _named(batch.columns, stats, mask), _named(batch.terms, terms, mask)
        infos = {
            "interval": interval,
            "_interval": mask,
            "reward_terms": reward_terms,
            "_reward_terms": mask,
            "time_s": stats[:, batch.time_column],
            "_time_s": mask,
        }
        for name, column in batch.extra_infos().items():
            infos[name] = column
            infos[f"_{name}"] = mask
        if self.settings.privileged:
            known = mask.copy()  # environments that are reset are added later
            infos["privileged"] = _named(batch.privileged_names, batch.privileged.copy(), known)
            infos["_privileged"] = known
        return infos

    def _end(self, index: int, infos: dict[str, Any]) -> None:
        """Write the final observation and info of an episode, and begin the next episode."""
        batch = self._batch
        # Gymnasium's own method to merge the info of one environment into the infos of all.
        self._add_info(infos, {"final_obs": batch.obs[index].copy(), "final_info": batch.end_info(index)}, index)
        self._begin(index)
        if self.settings.privileged:
            self._add_info(infos, self._privileged(index), index)

    # Gymnasium's own method records that the environment was closed.
    close, close_extras = VectorEnv.close, EnvironmentBase.close

    def render(self) -> tuple[Any, ...] | None:
        """Return one picture per environment; see :meth:`LinkEnv.render`."""
        pictures = self._pictures()
        return None if pictures is None else tuple(pictures)


def _named(names: Sequence[str], columns: npt.NDArray[np.float64], mask: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return columns by name, each with the mask of its valid rows."""
    return dict(zip(names, columns.T, strict=True)) | dict.fromkeys(map("_".__add__, names), mask)
