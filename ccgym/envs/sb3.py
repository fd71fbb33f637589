"""Many senders as a stable-baselines3 ``VecEnv``: one native batch, no Python object per environment."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from typing_extensions import Unpack

from ccgym.envs.environment import EnvironmentBase
from ccgym.envs.rollout import EpisodeEnd, Floats, Rollout
from ccgym.envs.settings import Arguments, PathOrName, Settings
from ccgym.envs.simulated_batch import EpisodeState, SimulatedBatch
from ccgym.errors import ConfigError, PlatformError, shown

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise PlatformError(
        "package-missing",
        "stable-baselines3 is not installed",
        where="ccgym.envs.SB3LinkVecEnv",
        expected="the extra `train`",
        hint="pip install 'ccgym[train]'",
    ) from None

if TYPE_CHECKING:
    from ccgym import _core
    from ccgym.schemes.policies import LearnedPolicy

Indices = int | Iterable[int] | None


class SB3LinkVecEnv(EnvironmentBase, VecEnv):
    """``num_envs`` parallel episodes for stable-baselines3, stepped in one native call.

    Environment ``i`` after ``seed(s)`` has the same episodes as a :class:`~ccgym.envs.LinkEnv` with
    ``reset(seed=s + i)``, bit for bit. The info of a step is an empty dictionary, except at the end of an episode:

    - ``terminal_observation`` and ``TimeLimit.truncated`` (always true), from which SB3 bootstraps;
    - ``episode``: ``r``, ``l`` and ``t`` as in SB3's ``Monitor``, so the environment needs no ``Monitor``;
    - ``reward_term_sums``: the sum over the episode of each term of the reward;
    - ``summary``, ``path``, ``simulator_seed``, ``trajectory_hash`` as in :class:`~ccgym.envs.LinkEnv`.

    With ``privileged``, every info contains the ground truth about the path at its observation as ``privileged``, and
    the ground truth at the terminal observation as ``terminal_privileged``.

    If several flows learn on one path, each flow is a separate environment for stable-baselines3: episode ``i`` has the
    rows ``i · learners`` to ``(i + 1) · learners − 1``. Their clocks differ, so a step lasts until one flow of each
    path is due. The other flows get their latest observation again, with reward 0, and their actions are ignored. Do
    not train on such rows as if they were steps; :meth:`rollout` returns correct samples.

    ``set_attr("paths", …)`` and ``env_method("set_progress", …)`` change the source of paths for all environments, from
    the next episodes on.

    Args:
        num_envs: Number of episodes.
        threads: Threads of the native core; 0: one per processor. The results do not depend on it.
        journal: Whether :meth:`capture` works. The actions of the current episodes then stay in memory.
        autoreset: Whether the next episode begins when one ends, as SB3 expects. If not, call :meth:`reset` before the
            next step.
        render_mode: As in :class:`~ccgym.envs.LinkEnv`.
        **arguments: The fields of :class:`~ccgym.envs.settings.Arguments`.

    Raises:
        ConfigError: An argument is wrong.
        PlatformError: stable-baselines3 is not installed.

    Example::

        PPO("MlpPolicy", SB3LinkVecEnv(64, "aurora")).learn(1_000_000)
    """

    _kept = ("_generators", "_seeds", "_options")

    def __init__(
        self,
        num_envs: int = 1,
        config: PathOrName | Settings = "link",
        *,
        threads: int = 1,
        journal: bool = False,
        autoreset: bool = True,
        render_mode: str | None = None,
        **arguments: Unpack[Arguments],
    ) -> None:
        settings = Settings.read(config, **arguments)
        if not autoreset and num_envs > 1:
            raise ConfigError(
                "wrong-count", "autoreset=False", where=f"{num_envs} environments", expected="a single one"
            )
        spaces = self._setup(
            settings, num_envs, threads=threads, render_mode=render_mode, journal=journal, several=True
        )
        self._made_with = {
            "num_envs": num_envs,
            "threads": threads,
            "journal": journal,
            "autoreset": autoreset,
            "render_mode": render_mode,
        }
        self._autoreset = autoreset
        self.spec = None
        self._pending: Any = None
        self._since = time.time()
        self.keep_terminal_privileged = False
        """Whether the last info of an episode has ``terminal_privileged`` also without the argument ``privileged``."""
        super().__init__(num_envs * self.learners, *spaces)

    @property
    def learners(self) -> int:
        """Number of learning flows on each path, which is the number of rows of one episode."""
        return self._batch.learners

    # --- Running ------------------------------------------------------------------------------------------------------

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin an episode in every environment, with the seeds of ``seed()`` and the options of ``set_options()`` if
        these methods were called since the last reset.
        """
        for index in range(self._batch.count):
            self._begin(index, self._seeds[index], self._options[index])
        if isinstance(self._batch, SimulatedBatch) and self.learners > 1:
            self._batch.note_truth()
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [self._privileged(index) for index in range(self.num_envs)]
        return np.array(self._batch.obs)

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Store the actions; :meth:`step_wait` applies them."""
        self._pending = actions

    def step_wait(
        self,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Apply the actions.

        Returns:
            Observations, rewards, whether an episode ended (then its observation is the next episode's first), infos.
        """
        batch = self._batch
        self._actions.read(self._pending)
        some_ended = batch.step()
        rewards = batch.reward.astype(np.float32)
        ended = np.flatnonzero(batch.ended).tolist()
        dones = np.repeat(batch.ended, self.learners).astype(np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if some_ended:
            if self._keeps_terminal:
                batch.refresh_privileged()
            for row in np.flatnonzero(dones).tolist():
                infos[row].update(self._end_info(row))
            for index in ended if self._autoreset else ():
                self._begin(index)
        if self.settings.privileged:
            batch.refresh_privileged()
            for index, info in enumerate(infos):
                info["privileged"] = batch.privileged_info(index)
        return batch.obs.copy(), rewards, dones, infos

    @property
    def rolls(self) -> bool:
        """Whether :meth:`rollout` works: it needs the simulator, box actions, automatic resets and no render mode."""
        batch = self._batch
        return isinstance(batch, SimulatedBatch) and not batch.discrete and not batch.histories and self._autoreset

    def rollout(self, actor: _core.Actor, noise: Floats) -> Rollout:
        """Make many decisions in one call. The result equals single steps, but environments do not wait for each other.

        Args:
            actor: The policy in training.
            noise: Standard normal numbers, episodes × (samples of each + learners − 1) × action size.

        Raises:
            ConfigError: :meth:`reset` was not called; or :attr:`rolls` is false; or an action is not finite.
        """
        batch = self._batch
        if not isinstance(batch, SimulatedBatch) or not self.rolls:
            raise ConfigError(
                "backend-unsuitable",
                "rollout()",
                expected="the simulator, box actions, automatic resets, no render_mode",
            )
        space = self.action_space
        assert isinstance(space, Box)
        names = len(batch.privileged_names)
        rollout = Rollout.of(np.ascontiguousarray(noise), self.learners, batch.obs.shape[1], names)
        begun = np.zeros(batch.count, dtype=np.int64)
        while batch.roll(actor, rollout, (space.low, space.high)):
            for index in np.flatnonzero(batch.ended).tolist():
                taken = int(rollout.taken[index])
                rollout.ends += self._ends(index, rollout.learners[index, begun[index] : taken], int(begun[index]))
                begun[index] = taken
                self._begin(index)
        self._actions.check_finite(rollout.actions)
        rollout.ends.sort(key=lambda end: (end.step, end.index))
        batch.write_bootstrap_state(rollout)
        return rollout

    def _ends(self, index: int, whose: npt.NDArray[np.uint32], first: int) -> list[EpisodeEnd]:
        """Return the end of an episode within a rollout, for each learner that made a decision in the episode.

        Args:
            index: Index of the episode.
            whose: Learner of each sample of the episode in the rollout.
            first: Index of the first of these samples.
        """
        batch = self._batch
        assert isinstance(batch, SimulatedBatch)
        ends = []
        for learner in range(self.learners):
            row = index * self.learners + learner
            if batch.lengths[row] > 0:
                places = np.flatnonzero(whose == learner)
                step = first + int(places[-1]) if len(places) else -1
                last = batch.obs[row].copy(), batch.deciding_truth[row].copy()
                ends.append(EpisodeEnd(index, step, *last, self._end_info(row)))
        return ends

    def privileged(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the current ground truth about the path and the flow of every environment.

        Returns:
            Copies of the columns, by name with unit; shape ``(num_envs,)`` each.
        """
        return self.named_truth(self._batch.refresh_privileged())

    def deciding_truth(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the ground truth at the decision in force or due, after :meth:`rollout` or :meth:`restore`."""
        assert isinstance(self._batch, SimulatedBatch)
        return self.named_truth(self._batch.deciding_truth)

    def named_truth(self, rows: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
        """Return copies of the columns of ground truth, by name with unit."""
        return dict(zip(self._batch.privileged_names, rows.T.copy(), strict=True))

    def labels(self) -> npt.NDArray[np.float32]:
        """Return the actions of the agent's expert for the observations last returned. After the end of an episode,
        this is the first observation of the next episode.

        Returns:
            A copy, ``(num_envs, action size)``; a discrete action is its index. NaN if the expert has no label yet.

        Raises:
            ConfigError: The agent has no expert, or the path is real.
        """
        actions, _ = self._batch.refresh_labels()
        return np.array(actions)

    def label_distances(self) -> npt.NDArray[np.float64]:
        """Return the distance between the expert's target and the result of each discrete action; see :meth:`labels`.

        Returns:
            A copy, ``(num_envs, actions)``. The expert's measure decides the unit: packets, bit/s, or logarithms of
            ratios. NaN if the expert has no label yet.
        """
        return np.array(self._batch.refresh_label_distances())

    @property
    def _keeps_terminal(self) -> bool:
        return self.settings.privileged or self.keep_terminal_privileged

    def _end_info(self, row: int) -> dict[str, Any]:
        batch = self._batch
        privileged = {"terminal_privileged": batch.privileged_info(row)} if self._keeps_terminal else {}
        return {
            **privileged,
            **batch.end_info(*divmod(row, self.learners)),
            "terminal_observation": batch.obs[row].copy(),
            "TimeLimit.truncated": True,
            "episode": {
                "r": float(batch.returns[row]),
                "l": int(batch.lengths[row]),
                "t": round(time.time() - self._since, 6),
            },
            "reward_term_sums": dict(zip(batch.terms, batch.term_sums[row].tolist(), strict=True)),
        }

    @property
    def missed_deadlines(self) -> int | None:
        """Deadlines missed in all episodes; ``None`` in the simulator, which waits for decisions."""
        return self._batch.missed_deadlines

    # --- One environment's attributes and methods ---------------------------------------------------------------------

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute per environment. ``np_random`` and ``trajectory_hash`` differ between environments."""
        chosen = list(self._get_indices(indices))
        if attr_name == "np_random":
            return [self._generator(row // self.learners) for row in chosen]
        if attr_name == "trajectory_hash":
            return [self._batch.trajectory_hash(row // self.learners) for row in chosen]
        value = getattr(self, attr_name)
        return [value] * len(chosen)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of all environments.

        Raises:
            ConfigError: ``indices`` are only some environments.
        """
        chosen = list(self._get_indices(indices))
        if len(set(chosen)) != self.num_envs:
            raise ConfigError(
                "unsupported",
                f"{attr_name} for environments {shown(chosen)} only",
                expected="all environments",
                hint="create two SB3LinkVecEnv if environments must differ",
            )
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call ``set_progress`` (for all environments) or ``render`` (for each).

        Raises:
            AttributeError: The method is another one.
        """
        chosen = list(self._get_indices(indices))
        if method_name == "set_progress":
            self.set_progress(*method_args, **method_kwargs)
            return [None] * len(chosen)
        if method_name == "render":
            return [self._picture(index) for index in chosen]
        raise AttributeError(f"environments have no method {method_name!r}; they have set_progress and render")

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Return whether a wrapper is not needed: true for ``Monitor``, because ``episode`` is in the infos."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """Return a picture of the episode so far for each environment."""
        return [self._picture(index) for index in range(self.num_envs)]

    # --- Earlier selves -----------------------------------------------------------------------------------------------

    def set_earlier(self, policies: Mapping[str, LearnedPolicy], drawn: Sequence[str]) -> None:
        """Set the policies that flows of earlier selves draw in later episodes.

        Args:
            policies: All policies that current and later episodes need, by key.
            drawn: Keys of the policies to draw from.
        """
        assert isinstance(self._batch, SimulatedBatch)
        self._batch.set_earlier(policies, drawn)

    def uses(self, key: str) -> bool:
        """Return whether a flow of a current episode has the policy with this key."""
        return any(episode is not None and json.dumps(key) in episode.spec for episode in self._batch.episodes)

    # --- Copies -------------------------------------------------------------------------------------------------------

    def capture(self) -> dict[str, Any]:
        """Return the whole state for the next step, as plain data and arrays; requires ``journal=True``.

        Returns:
            ``generators``: states of the random streams; ``episodes``: fields of :class:`EpisodeState`, or ``None`` for
            real paths, which cannot be restored; ``open``: the state that the decisions alone do not restore.
        """
        batch = self._batch
        generators = [self._generator(index).bit_generator.state for index in range(batch.count)]
        if not isinstance(batch, SimulatedBatch):
            return {"generators": generators, "episodes": None}
        episodes = [vars(state) for state in batch.capture()]
        return {"generators": generators, "episodes": episodes, "open": batch.capture_open()}

    def restore(self, state: Mapping[str, Any]) -> npt.NDArray[np.float32]:
        """Continue from a state of :meth:`capture`; return the observations that were due then.

        The state does not contain the source of paths: set ``paths`` or ``set_progress`` as before. If the state has no
        episodes, only the random streams are restored, and :meth:`reset` must follow.
        """
        if state["episodes"] is not None and isinstance(self._batch, SimulatedBatch):
            self._batch.restore([EpisodeState(**episode) for episode in state["episodes"]], state.get("open"))
        for index, known in zip(range(self._batch.count), state["generators"], strict=True):
            self._generator(index).bit_generator.state = known
        return np.array(self._batch.obs)
