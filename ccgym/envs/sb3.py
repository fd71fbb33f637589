"""Many senders as a stable-baselines3 ``VecEnv``: the native batch without a Python object per environment."""

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
    """``num_envs`` episodes side by side for stable-baselines3, stepped in one native call.

    Environment ``i`` after ``seed(s)`` has the same episodes as a :class:`~ccgym.envs.LinkEnv` with
    ``reset(seed=s + i)``, bit for bit. The info of a step is an empty dictionary, except at the end of an episode:

    - ``terminal_observation`` and ``TimeLimit.truncated`` (always true), from which SB3 bootstraps;
    - ``episode``: ``r``, ``l`` and ``t`` as SB3's ``Monitor`` has them, so that no monitor is needed around it;
    - ``reward_term_sums``: the sum of each of the reward's terms over the episode;
    - ``summary``, ``path``, ``simulator_seed``, ``trajectory_hash`` as in :class:`~ccgym.envs.LinkEnv`.

    With ``privileged`` every info has the ground truth about the path of its observation as ``privileged``, and that of
    the terminal observation as ``terminal_privileged``.

    Where several flows learn on one path, each of them is an environment of its own to stable-baselines3: episode ``i``
    has the rows ``i · learners`` to ``(i + 1) · learners − 1``. Their clocks differ, so a step lasts until one flow of
    each path is due; the others get their latest observation again, with reward 0, and their actions are ignored. To
    learn from such rows as if they were steps is wrong; :meth:`rollout` gives samples.

    ``set_attr("paths", …)`` and ``env_method("set_progress", …)`` change where paths come from, from the next episodes
    on, for all environments alike.

    Args:
        num_envs: How many episodes.
        threads: Threads of the native core; 0: one per processor. The results do not depend on it.
        journal: Whether :meth:`capture` works; costs the memory of the actions of the episodes under way.
        autoreset: Whether the next episode begins when one ends, as SB3 expects. If not, :meth:`reset` has to follow,
            and nothing runs until then.
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
        """Whether the info of an episode's end has ``terminal_privileged`` without the argument ``privileged``, too."""
        super().__init__(num_envs * self.learners, *spaces)

    @property
    def learners(self) -> int:
        """Flows that learn on each path; the rows of one episode."""
        return self._batch.learners

    # --- Running ------------------------------------------------------------------------------------------------------

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin an episode in every environment; with seeds from ``seed()`` and options from ``set_options()`` if
        they were called since the last time.
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
        """Take the actions; they are carried out by :meth:`step_wait`."""
        self._pending = actions

    def step_wait(
        self,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Carry the actions out.

        Returns:
            Observations, rewards, which episodes ended (their observation is the next one's first), and infos.
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
        """Whether :meth:`rollout` works: in the simulator, for actions of a box, with automatic resets, unseen."""
        batch = self._batch
        return isinstance(batch, SimulatedBatch) and not batch.discrete and not batch.histories and self._autoreset

    def rollout(self, actor: _core.Actor, noise: Floats) -> Rollout:
        """Take many decisions in one go; the same as so many steps, but that no environment waits for another.

        Args:
            actor: Who decides.
            noise: Numbers of a standard normal distribution, episodes × (samples of each + learners − 1) × action size.

        Raises:
            ConfigError: :meth:`reset` must come first; or :attr:`rolls` is false; or an action is not finite.
        """
        batch = self._batch
        if not isinstance(batch, SimulatedBatch) or not self.rolls:
            raise ConfigError(
                "backend-unsuitable",
                "rollout()",
                expected="the simulator, actions of a box, automatic resets, no render_mode",
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
        """What the end of an episode within a rollout is to each of its learners that has decided in it.

        Args:
            index: Which episode.
            whose: The learners of its samples in the rollout.
            first: Place of the first of these samples.
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
        """The ground truth about every environment's path and what its flow is doing now.

        Returns:
            A copy, by name with unit; ``(num_envs,)`` each.
        """
        return self.named_truth(self._batch.refresh_privileged())

    def deciding_truth(self) -> dict[str, npt.NDArray[np.float64]]:
        """The same when the decision in force, or due, was taken, after :meth:`rollout` or :meth:`restore`."""
        assert isinstance(self._batch, SimulatedBatch)
        return self.named_truth(self._batch.deciding_truth)

    def named_truth(self, rows: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
        """Copies of the columns of ground truth, by name with unit."""
        return dict(zip(self._batch.privileged_names, rows.T.copy(), strict=True))

    def labels(self) -> npt.NDArray[np.float32]:
        """What the agent's expert would do on the observations last returned: after an episode's end, on the first
        of the next one.

        Returns:
            A copy, ``(num_envs, action size)``; a discrete action is its index. NaN where the expert has no answer yet.

        Raises:
            ConfigError: The agent has no expert, or its packets travel for real.
        """
        actions, _ = self._batch.refresh_labels()
        return np.array(actions)

    def label_distances(self) -> npt.NDArray[np.float64]:
        """How far from the expert's target the result of each discrete action would be, as :meth:`labels`.

        Returns:
            A copy, ``(num_envs, actions)``: packets or bit/s, or logarithms of ratios, as the expert measures. NaN
            where the expert has no answer yet.
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
        """Deadlines missed in all episodes; ``None`` in the simulator, which waits."""
        return self._batch.missed_deadlines

    # --- One environment's attributes and methods ---------------------------------------------------------------------

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute, once per environment; ``np_random`` and ``trajectory_hash`` are each environment's own."""
        chosen = list(self._get_indices(indices))
        if attr_name == "np_random":
            return [self._generator(row // self.learners) for row in chosen]
        if attr_name == "trajectory_hash":
            return [self._batch.trajectory_hash(row // self.learners) for row in chosen]
        value = getattr(self, attr_name)
        return [value] * len(chosen)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute, of all environments alike.

        Raises:
            ConfigError: For some environments only.
        """
        chosen = list(self._get_indices(indices))
        if len(set(chosen)) != self.num_envs:
            raise ConfigError(
                "unsupported",
                f"{attr_name} for environments {shown(chosen)} only",
                expected="all of them",
                hint="make two SB3LinkVecEnv where environments should differ",
            )
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call ``set_progress`` (for all environments) or ``render`` (for each).

        Raises:
            AttributeError: Another method.
        """
        chosen = list(self._get_indices(indices))
        if method_name == "set_progress":
            self.set_progress(*method_args, **method_kwargs)
            return [None] * len(chosen)
        if method_name == "render":
            return [self._picture(index) for index in chosen]
        raise AttributeError(f"environments have no method {method_name!r}; they have set_progress and render")

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Whether it does what the wrapper would do: true of ``Monitor``, whose ``episode`` is in the infos."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """A picture of each environment's episode so far."""
        return [self._picture(index) for index in range(self.num_envs)]

    # --- Earlier selves -----------------------------------------------------------------------------------------------

    def set_earlier(self, policies: Mapping[str, LearnedPolicy], drawn: Sequence[str]) -> None:
        """Let flows of earlier selves in the episodes to come draw their policy.

        Args:
            policies: By key, all that episodes under way or to come need.
            drawn: Keys of those to draw from.
        """
        assert isinstance(self._batch, SimulatedBatch)
        self._batch.set_earlier(policies, drawn)

    def uses(self, key: str) -> bool:
        """Whether a flow of an episode under way has the policy with this key."""
        return any(episode is not None and json.dumps(key) in episode.spec for episode in self._batch.episodes)

    # --- Copies -------------------------------------------------------------------------------------------------------

    def capture(self) -> dict[str, Any]:
        """All that the next step depends on, as plain data and arrays; needs ``journal=True``.

        Returns:
            ``generators``: states of the random streams; ``episodes``: fields of :class:`EpisodeState`, or ``None`` for
            real paths, which do not come back; ``open``: what the decisions alone do not bring back.
        """
        batch = self._batch
        generators = [self._generator(index).bit_generator.state for index in range(batch.count)]
        if not isinstance(batch, SimulatedBatch):
            return {"generators": generators, "episodes": None}
        episodes = [vars(state) for state in batch.capture()]
        return {"generators": generators, "episodes": episodes, "open": batch.capture_open()}

    def restore(self, state: Mapping[str, Any]) -> npt.NDArray[np.float32]:
        """Continue from what :meth:`capture` gave; returns the observations that were due then.

        Paths of episodes to come are not part of it: set ``paths`` or ``set_progress`` as they were. Where episodes
        were not captured only the random streams are brought back, and :meth:`reset` must follow.
        """
        if state["episodes"] is not None and isinstance(self._batch, SimulatedBatch):
            self._batch.restore([EpisodeState(**episode) for episode in state["episodes"]], state.get("open"))
        for index, known in zip(range(self._batch.count), state["generators"], strict=True):
            self._generator(index).bit_generator.state = known
        return np.array(self._batch.obs)
