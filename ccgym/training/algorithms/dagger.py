"""DAgger: the learner acts, an expert labels each state with what should have been done, the learner imitates it.

Ross, Gordon and Bagnell, AISTATS 2011. In the first round the expert acts. After each round all that was labeled so
far is fitted again, so that the learner knows what to do in the states that it comes into by its own mistakes.

A recurrent policy reads an episode from the beginning with an empty memory, as it does when it acts, so that what its
memory has become late in an episode is trained too. Gradients go back through ``sequence_length`` decisions at a time;
memory is carried over such borders, gradients are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from torch import nn
from typing_extensions import override

from ccgym.training.algorithms.config import DaggerConfig
from ccgym.training.algorithms.supervised import Floats, Memory, SupervisedLearner, action_scores

if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.vec_env import VecEnv


class DaggerLearner(SupervisedLearner):
    """DAgger on episodes side by side.

    Args:
        config: Its settings.
        env: What it learns in; ``env.labels()`` is what the expert would do.
        device: Where the networks are.
    """

    def __init__(self, config: DaggerConfig, env: VecEnv, device: str) -> None:
        super().__init__(config, env, device, eps=config.adam_epsilon, weight_decay=config.weight_decay)
        self.config = config
        self.buffer = EpisodeBuffer(config.buffer_size)
        self.open: list[Episode | None] = [None] * env.num_envs
        """Episodes under way, as far as they have come."""
        self.rounds = 0
        self.noise = Noise(config, env.num_envs)

    # --- A round ------------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(self, env: VecEnv, callback: Any, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Act, ask the expert, and put the episodes that ended into the buffer."""
        count = env.num_envs
        discrete = isinstance(self.action_space, spaces.Discrete)
        size = 1 if discrete else int(np.prod(self.action_space.shape or (1,)))
        observations: Any = np.empty((n_rollout_steps, count, *self.observation_space.shape), dtype=np.float32)  # type: ignore[misc]
        labels = np.empty((n_rollout_steps, count, size), dtype=np.float32)
        ended = np.empty((n_rollout_steps, count), dtype=np.bool_)
        beta = self._beta()
        seen: Any = self._last_obs
        starts: Any = self._last_episode_starts
        self.policy.set_training_mode(False)
        for step in range(n_rollout_steps):
            observations[step] = seen
            labels[step] = wanted = env.labels()  # type: ignore[attr-defined]
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
        self._keep(observations, labels, ended, discrete=discrete)
        return True

    def _beta(self) -> float:
        later = self.rounds - self.config.expert_rounds
        return 1.0 if later < 0 else float(self.config.beta ** (later + 1))

    def _keep(
        self,
        observations: npt.NDArray[np.float32],
        labels: npt.NDArray[np.float32],
        ended: npt.NDArray[np.bool_],
        *,
        discrete: bool,
    ) -> None:
        """Cut what was collected into episodes: those that ended go to the buffer, the rest waits for its end."""
        known = np.asarray(np.isfinite(labels).all(axis=-1))
        wanted = np.where(known[..., None], labels, 0.0)
        targets = wanted[..., 0].astype(np.int64) if discrete else wanted
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
                whole = _joined(self.open[index], piece)
                self.open[index] = None
                if stop > first and ended[stop - 1, index]:
                    finished.append(whole)
                elif len(whole):
                    self.open[index] = whole
                first = stop
        self.buffer.add(finished)

    @override
    def train(self) -> None:
        """Fit the policy to all that is held."""
        self._update_learning_rate(self.policy.optimizer)
        fit = fit_sequences(self.policy, self.buffer.episodes, self.config, self._prefixes())
        self._n_updates += fit.gradient_steps
        log = self.logger.record
        log("train/n_updates", self._n_updates, exclude="tensorboard")
        log("train/epochs", len(fit.losses))
        log("dagger/buffered_decisions", self.buffer.decisions)
        log("dagger/rounds", self.rounds)
        if fit.losses:
            log("train/loss", fit.losses[-1])
            if not np.isnan(fit.agreement):
                log("train/agreement", fit.agreement)

    def _prefixes(self) -> list[Episode]:
        settings = self.config.prefix
        if settings is None:
            return []
        return [episode.first(settings.decisions) for episode in self.buffer.episodes] * settings.passes

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    @override
    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "config", "buffer", "open", "noise"]

    @override
    def extra_state(self) -> dict[str, Any]:
        """The buffer, the episodes under way, and how far the rounds are."""
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


def _joined(before: Episode | None, after: Episode) -> Episode:
    if before is None:
        return after
    return Episode(*(np.concatenate([getattr(one, name) for one in (before, after)]) for name in vars(after)))


class Noise:
    """Random actions in some environments, for a few decisions each.

    Args:
        config: How often and how long.
        count: Environments.
    """

    def __init__(self, config: DaggerConfig, count: int) -> None:
        self._settings = config.perturbation
        self._left = np.zeros(count, dtype=np.int64)
        self._held: npt.NDArray[Any] | None = None

    def disturb(self, actions: npt.NDArray[Any], space: spaces.Space[Any]) -> None:
        """Replace some of the actions, in place; draws from numpy's global generator, which checkpoints hold."""
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
        """For a checkpoint."""
        return {"left": self._left, "held": self._held}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` gave."""
        self._left, self._held = state["left"], state["held"]


# --- Episodes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Episode:
    """An episode, or the first decisions of one, with what should have been done in it."""

    observations: Floats
    """(decisions, features), as the policy saw them."""
    actions: npt.NDArray[Any]
    """What to imitate: (decisions,) int64 of discrete actions, (decisions, numbers) float32 of others."""
    weights: Floats
    """(decisions,): how much each decision counts; 0 where nothing is known."""

    def __len__(self) -> int:
        return len(self.observations)

    def first(self, decisions: int) -> Episode:
        """Its first decisions, without a copy."""
        return Episode(self.observations[:decisions], self.actions[:decisions], self.weights[:decisions])


class EpisodeBuffer:
    """Episodes up to a number of decisions; the oldest give way.

    Args:
        capacity: Decisions that are held.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.episodes: list[Episode] = []
        """All that are held, the oldest first."""

    @property
    def decisions(self) -> int:
        """How many are held."""
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
        """For a checkpoint: few large arrays."""
        return {
            "lengths": [len(episode) for episode in self.episodes],
            **{
                name: np.concatenate([getattr(episode, name) for episode in self.episodes]) if self.episodes else None
                for name in ("observations", "actions", "weights")
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Hold what :meth:`state` gave."""
        ends = np.cumsum(state["lengths"])[:-1]
        self.episodes = []
        if state["lengths"]:
            columns = [np.split(state[name], ends) for name in ("observations", "actions", "weights")]
            self.episodes = [Episode(*parts) for parts in zip(*columns, strict=True)]


# --- Fitting ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """The outcome of :func:`fit_sequences`."""

    losses: tuple[float, ...]
    """Mean loss per weight of each pass."""
    agreement: float
    """Of the last pass: fraction of the discrete actions that were the most likely ones, by weight; NaN for others."""
    gradient_steps: int


def fit_sequences(
    policy: ActorCriticPolicy, episodes: Sequence[Episode], config: DaggerConfig, also: Sequence[Episode] = ()
) -> Fit:
    """Move a policy toward the episodes' actions with ``policy.optimizer``.

    The loss of a decision is the cross-entropy of a discrete action, or the squared error of the mean of others, times
    its weight; that of a batch is their sum over the sum of the weights. The order is drawn from torch's global
    generator.

    Args:
        policy: SB3's policy, recurrent or not. Only what leads to actions is trained.
        episodes: What to imitate.
        config: ``n_epochs``, ``batch_size``, ``sequence_length``, ``max_grad_norm``, ``tolerance`` and ``patience``.
        also: More of them, in batches of their own between the others. They count in what is fitted, not in what is
            reported.
    """
    losses: list[float] = []
    agreement, steps, best, waited = math.nan, 0, math.inf, 0
    policy.set_training_mode(True)
    for _ in range(config.n_epochs if episodes else 0):
        sums, aside = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        for counted, batch in _batches(episodes, also, config.batch_size):
            steps += _fit_batch(policy, batch, config, sums if counted else aside)
        weight = max(float(sums[2]), 1e-9)
        losses.append(float(sums[0]) / weight)
        agreement = float(sums[1]) / weight
        waited = 0 if losses[-1] < best - config.tolerance else waited + 1
        best = min(best, losses[-1])
        if config.patience and waited >= config.patience:
            break
    policy.set_training_mode(False)
    return Fit(tuple(losses), agreement, steps)


def _batches(episodes: Sequence[Episode], also: Sequence[Episode], size: int) -> list[tuple[bool, list[Episode]]]:
    """All of both in batches, in random order; true marks those of ``episodes``."""
    made = []
    for counted, group in ((True, episodes), (False, also)):
        order = torch.randperm(len(group)).tolist() if group else []
        parts = [order[first : first + size] for first in range(0, len(order), size)]
        made += [(counted, [group[index] for index in part]) for part in parts]
    return [made[place] for place in torch.randperm(len(made)).tolist()] if also else made


def _fit_batch(policy: ActorCriticPolicy, batch: Sequence[Episode], config: DaggerConfig, sums: torch.Tensor) -> int:
    """One gradient step per piece of the batch; adds loss, agreement and weight to ``sums``."""
    device = policy.device
    longest = max(map(len, batch))
    memory: Memory | None = None
    steps = 0
    for start in range(0, longest, config.sequence_length):
        stop = min(start + config.sequence_length, longest)
        open_ones = [row for row, episode in enumerate(batch) if len(episode) > start]
        if len(open_ones) < len(batch):
            # Episodes that have ended leave; the memories of the others move up.
            batch = [batch[row] for row in open_ones]
            if memory is not None:
                memory = (memory[0][:, open_ones].contiguous(), memory[1][:, open_ones].contiguous())
        observations, actions, weights = (part.to(device) for part in _piece(batch, start, stop))
        total = weights.sum()
        output, memory = action_scores(policy, observations, memory)
        memory = None if memory is None else (memory[0].detach(), memory[1].detach())
        if not bool(total > 0):
            continue
        each, agreed = _losses(policy, output, actions)
        loss = (each * weights).sum() / total
        policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
        policy.optimizer.step()
        steps += 1
        with torch.no_grad():
            sums += torch.stack([loss * total, (agreed * weights).sum(), total]).double().cpu()
    return steps


def _piece(batch: Sequence[Episode], start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Decisions ``start`` to ``stop`` of episodes side by side: (decisions, episodes, …); weight 0 after an end."""
    length = min(stop, max(map(len, batch))) - start
    made: list[torch.Tensor] = []
    for name in ("observations", "actions", "weights"):
        parts = [getattr(episode, name)[start:stop] for episode in batch]
        whole = np.zeros((length, len(batch), *parts[0].shape[1:]), dtype=parts[0].dtype)
        for row, part in enumerate(parts):
            whole[: len(part), row] = part
        made.append(torch.from_numpy(whole))
    return made[0], made[1], made[2]


def _losses(
    policy: ActorCriticPolicy, output: torch.Tensor, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each decision, and 1 where a discrete action is the most likely one."""
    if isinstance(policy.action_space, spaces.Discrete):
        each = nn.functional.cross_entropy(output.flatten(0, 1), actions.flatten(), reduction="none")
        return each.reshape(actions.shape), (output.argmax(-1) == actions).to(output.dtype)
    each = ((output - actions) ** 2).sum(-1)
    return each, torch.full_like(each, math.nan)
