"""Base of algorithms that learn from labels in rounds: the learner acts, an expert labels each state.

Ross, Gordon and Bagnell, AISTATS 2011: in the first round the expert acts, afterward the learner, so that states after
the learner's own mistakes get labels, too. All labels are kept, up to a number of decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from typing_extensions import override

from ccgym.training.algorithms.config import ImitationConfig
from ccgym.training.algorithms.supervised import Floats, SupervisedLearner

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv


class ImitationLearner(SupervisedLearner):
    """Rounds of acting and labeling. Subclasses fit something to :attr:`buffer` in ``train``.

    Args:
        config: Its settings.
        env: The training environments; ``env.labels()`` returns the expert's actions.
        device: Device of the networks.
        **optimizer: Arguments of Adam.
    """

    own = (*SupervisedLearner.own, "buffer", "open", "noise")

    def __init__(self, config: ImitationConfig, env: VecEnv, device: str, **optimizer: Any) -> None:
        super().__init__(config, env, device, **optimizer)
        self.buffer = EpisodeBuffer(config.buffer_size)
        self.open: list[Episode | None] = [None] * env.num_envs
        """The unfinished episodes so far."""
        self.rounds = 0
        self.noise = Noise(config, env.num_envs)

    # --- A round ------------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(self, env: VecEnv, callback: Any, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Act, get the expert's labels, and put the episodes that ended into the buffer."""
        count = env.num_envs
        discrete = isinstance(self.action_space, spaces.Discrete)
        size = 1 if discrete else int(np.prod(self.action_space.shape or (1,)))
        observations: Any = np.empty((n_rollout_steps, count, *self.observation_space.shape), dtype=np.float32)  # type: ignore[misc]
        labels = np.empty((n_rollout_steps, count, size), dtype=np.float32)
        ended = np.empty((n_rollout_steps, count), dtype=np.bool_)
        soft, distances = getattr(self.config, "soft", None), list[npt.NDArray[np.float64]]()
        beta = self._beta()
        seen: Any = self._last_obs
        starts: Any = self._last_episode_starts
        self.policy.set_training_mode(False)
        for step in range(n_rollout_steps):
            observations[step] = seen
            labels[step] = wanted = env.labels()  # type: ignore[attr-defined]
            if soft is not None:
                distances.append(env.label_distances())  # type: ignore[attr-defined]
            actions = self.actor.act(seen, starts)
            if beta > 0:
                take = ~np.isnan(wanted[:, 0])
                if beta < 1:
                    take &= np.random.random(count) < beta  # noqa: NPY002
                actions[take] = wanted[take, 0] if discrete else wanted[take]
            self.noise.disturb(actions, self.action_space)
            seen, _, starts, infos = env.step(actions)
            ended[step] = starts
            if starts.any():
                self._update_info_buffer(infos, starts)
        self._last_obs, self._last_episode_starts = seen, starts
        self.num_timesteps += n_rollout_steps * count
        self.rounds += 1
        known = np.asarray(np.isfinite(labels).all(axis=-1))
        wanted = np.where(known[..., None], labels, 0.0)
        targets = wanted[..., 0].astype(np.int64) if discrete else wanted
        if soft is not None:
            targets = softened(targets, np.stack(distances), soft.weight)
        self._keep(observations, targets, known, ended)
        return True

    def _beta(self) -> float:
        later = self.rounds - self.config.expert_rounds
        return 1.0 if later < 0 else float(self.config.beta ** (later + 1))

    def _keep(
        self,
        observations: npt.NDArray[np.float32],
        targets: npt.NDArray[Any],
        known: npt.NDArray[np.bool_],
        ended: npt.NDArray[np.bool_],
    ) -> None:
        """Split the collected steps into episodes: finished episodes go to the buffer, unfinished ones wait."""
        finished: list[Episode] = []
        for index in range(observations.shape[1]):
            first = 0
            for stop in [*(np.flatnonzero(ended[:, index]) + 1).tolist(), len(ended)]:
                part = slice(first, stop)
                piece = Episode(
                    observations[part, index].copy(),
                    targets[part, index].copy(),
                    known[part, index].astype(np.float32),
                )
                whole, self.open[index] = piece.after(self.open[index]), None
                if stop > first and ended[stop - 1, index]:
                    finished.append(whole)
                elif len(whole):
                    self.open[index] = whole
                first = stop
        self.buffer.add(finished)

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    @override
    def extra_state(self) -> dict[str, Any]:
        """Return the buffer, the unfinished episodes, and the progress of the rounds."""
        return {
            **super().extra_state(),
            "buffer": self.buffer.state(),
            "open": [None if one is None else vars(one) for one in self.open],
            "rounds": self.rounds,
            "noise": self.noise.state(),
        }

    @override
    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        super().set_extra_state(state)
        self.buffer.restore(state["buffer"])
        self.open = [None if one is None else Episode(**one) for one in state["open"]]
        self.rounds = int(state["rounds"])
        self.noise.restore(state["noise"])


def softened(
    labels: npt.NDArray[np.int64], distances: npt.NDArray[np.float64], weight: float
) -> npt.NDArray[np.float32]:
    """Return target probabilities: the label with ``1 − weight``, and the softmax of the negative distances,
    standardized over the actions of a decision, with ``weight`` (Muses, ``dagger/dagger_leader.py``).

    Args:
        labels: (…) indices of actions.
        distances: (…, actions), distance of each action's result from the expert's target; NaN if unknown.
        weight: Weight of the softmax.

    Returns:
        (…, actions); each row sums to 1.
    """
    near = -np.nan_to_num(distances)
    deviation = near.std(axis=-1, keepdims=True)
    scores = (near - near.mean(axis=-1, keepdims=True)) / np.where(deviation > 0, deviation, 1.0)
    likely = np.exp(scores)
    likely /= likely.sum(axis=-1, keepdims=True)
    whole = weight * likely + (1 - weight) * np.eye(distances.shape[-1])[labels]
    made: npt.NDArray[np.float32] = whole.astype(np.float32)
    return made


class Noise:
    """Random actions in some environments, for a few decisions each.

    Args:
        config: Frequency and length of perturbations.
        count: Number of environments.
    """

    def __init__(self, config: ImitationConfig, count: int) -> None:
        self._settings = config.perturbation
        self._left = np.zeros(count, dtype=np.int64)
        self._held: npt.NDArray[Any] | None = None

    def disturb(self, actions: npt.NDArray[Any], space: spaces.Space[Any]) -> None:
        """Replace some of the actions in place; draws from numpy's global generator, which is part of checkpoints."""
        settings = self._settings
        if settings is None:
            return
        if self._held is None:
            self._held = np.zeros_like(actions)
        new = (np.random.random(len(actions)) < 1 / settings.every) & (self._left == 0)  # noqa: NPY002
        chosen = np.flatnonzero(new)
        if len(chosen):
            self._left[chosen] = np.random.randint(1, settings.decisions + 1, len(chosen))  # noqa: NPY002
            if isinstance(space, spaces.Discrete):
                self._held[chosen] = np.random.randint(0, int(space.n), len(chosen))  # noqa: NPY002
            else:
                low, high = (np.clip(edge, -1.0, 1.0) for edge in (space.low, space.high))  # type: ignore[attr-defined]
                self._held[chosen] = np.random.uniform(low, high, (len(chosen), *low.shape))  # noqa: NPY002
        busy = self._left > 0
        actions[busy] = self._held[busy]
        self._left[busy] -= 1

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"left": self._left, "held": self._held}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the result of :meth:`state`."""
        self._left, self._held = state["left"], state["held"]


# --- Episodes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Episode:
    """An episode, or its first decisions, with the right actions."""

    observations: Floats
    """(decisions, features), as the policy got them."""
    actions: npt.NDArray[Any]
    """Actions to imitate: (decisions,) int64 for discrete actions, or their probabilities, (decisions, actions)
    float32; for other actions (decisions, numbers) float32."""
    weights: Floats
    """(decisions,): weight of each decision; 0 if the right action is unknown."""

    def __len__(self) -> int:
        return len(self.observations)

    def after(self, before: Episode | None) -> Episode:
        """Return the episode with the earlier decisions ``before`` in front."""
        if before is None:
            return self
        return Episode(*(np.concatenate([getattr(one, name) for one in (before, self)]) for name in vars(self)))

    def first(self, decisions: int) -> Episode:
        """Return the first decisions, without a copy."""
        return Episode(self.observations[:decisions], self.actions[:decisions], self.weights[:decisions])


_COLUMNS: Final = ("observations", "actions", "weights")


class EpisodeBuffer:
    """Episodes up to a number of decisions; the oldest are dropped.

    Args:
        capacity: Max number of decisions.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.episodes: list[Episode] = []
        """All episodes in the buffer, the oldest first."""

    @property
    def decisions(self) -> int:
        """Number of decisions in the buffer."""
        return sum(map(len, self.episodes))

    def add(self, episodes: Sequence[Episode]) -> None:
        """Add episodes, and drop the oldest while there are too many decisions; the newest episode is always kept."""
        self.episodes += episodes
        surplus = self.decisions - self.capacity
        gone = 0
        while surplus > 0 and gone < len(self.episodes) - 1:
            surplus -= len(self.episodes[gone])
            gone += 1
        del self.episodes[:gone]

    def state(self) -> dict[str, Any]:
        """Return the buffer as a few large arrays, for a checkpoint."""
        held = self.episodes
        columns = {name: np.concatenate([getattr(one, name) for one in held]) if held else None for name in _COLUMNS}
        return {"lengths": [len(one) for one in held], **columns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the result of :meth:`state`."""
        ends = np.cumsum(state["lengths"])[:-1]
        self.episodes = []
        if state["lengths"]:
            columns = [np.split(state[name], ends) for name in _COLUMNS]
            self.episodes = [Episode(*parts) for parts in zip(*columns, strict=True)]
