"""Supervised learning of a policy from whole episodes: their buffer, and gradient steps through time.

An episode is a sequence of observations with the action that should have been taken at each. A recurrent policy reads
it from the beginning with an empty memory, as it does when it acts, so that what its memory has become late in an
episode is trained too. Gradients go back through :attr:`FitSettings.sequence_length` decisions at a time; memory is
carried over such borders, gradients are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from torch import nn

if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy

Floats: TypeAlias = npt.NDArray[np.float32]
Memory: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""h and c of an LSTM, (layers, rows, units) each."""


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
    """Episodes up to a number of decisions; the oldest give way, except those that are kept for good.

    Args:
        capacity: Decisions that are held.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._episodes: list[Episode] = []

    @property
    def episodes(self) -> Sequence[Episode]:
        """All that are held, the oldest first."""
        return self._episodes

    @property
    def decisions(self) -> int:
        """How many are held."""
        return sum(map(len, self._episodes))

    def add(self, episodes: Sequence[Episode]) -> None:
        """Add episodes; the oldest give way where there is no room for all, but the newest is always held."""
        self._episodes += episodes
        surplus = self.decisions - self.capacity
        gone = 0
        while surplus > 0 and gone < len(self._episodes) - 1:
            surplus -= len(self._episodes[gone])
            gone += 1
        del self._episodes[:gone]

    def state(self) -> dict[str, Any]:
        """For a checkpoint: few large arrays."""
        return {
            "lengths": [len(episode) for episode in self._episodes],
            **{
                name: np.concatenate([getattr(episode, name) for episode in self._episodes]) if self._episodes else None
                for name in ("observations", "actions", "weights")
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Hold what :meth:`state` gave."""
        ends = np.cumsum(state["lengths"])[:-1]
        self._episodes = []
        if state["lengths"]:
            columns = [np.split(state[name], ends) for name in ("observations", "actions", "weights")]
            self._episodes = [Episode(*parts) for parts in zip(*columns, strict=True)]


@dataclass(frozen=True)
class FitSettings:
    """How :func:`fit_sequences` goes about it."""

    epochs: int = 10
    """Maximum number of passes over the episodes."""
    batch_size: int = 32
    """Episodes side by side in a gradient step."""
    sequence_length: int = 1000
    """Decisions that gradients go back through; there is one gradient step for each such piece of a batch."""
    max_grad_norm: float = 0.5
    """Limit of the gradient's norm."""
    tolerance: float = 0.0
    """Passes end early once the loss has not fallen by this much …"""
    patience: int = 0
    """… for this many passes; 0: never."""


@dataclass(frozen=True)
class Fit:
    """The outcome of :func:`fit_sequences`."""

    losses: tuple[float, ...]
    """Mean loss per weight of each pass."""
    agreement: float
    """Of the last pass: fraction of the discrete actions that were the most likely ones, by weight; NaN for others."""
    gradient_steps: int
    """How many."""


def fit_sequences(
    policy: ActorCriticPolicy, episodes: Sequence[Episode], settings: FitSettings, also: Sequence[Episode] = ()
) -> Fit:
    """Move a policy toward the episodes' actions with ``policy.optimizer``.

    The loss of a decision is the cross-entropy of a discrete action, or the squared error of the mean of others, times
    its weight; that of a batch is their sum over the sum of the weights. The order is drawn from torch's global
    generator.

    Args:
        policy: SB3's policy, recurrent or not. Only what leads to actions is trained.
        episodes: What to imitate.
        settings: How.
        also: More of them, in batches of their own between the others. They count in what is fitted, not in what is
            reported.
    """
    losses: list[float] = []
    agreement, steps, best, waited = math.nan, 0, math.inf, 0
    policy.set_training_mode(True)
    for _ in range(settings.epochs if episodes else 0):
        sums, aside = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        for counted, batch in _batches(episodes, also, settings.batch_size):
            steps += _fit_batch(policy, batch, settings, sums if counted else aside)
        weight = max(float(sums[2]), 1e-9)
        losses.append(float(sums[0]) / weight)
        agreement = float(sums[1]) / weight
        waited = 0 if losses[-1] < best - settings.tolerance else waited + 1
        best = min(best, losses[-1])
        if settings.patience and waited >= settings.patience:
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


def _fit_batch(policy: ActorCriticPolicy, batch: Sequence[Episode], settings: FitSettings, sums: torch.Tensor) -> int:
    """One gradient step per piece of the batch; adds loss, agreement and weight to ``sums``."""
    device = policy.device
    longest = max(map(len, batch))
    memory: Memory | None = None
    steps = 0
    for start in range(0, longest, settings.sequence_length):
        stop = min(start + settings.sequence_length, longest)
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
        nn.utils.clip_grad_norm_(policy.parameters(), settings.max_grad_norm)
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


def action_scores(
    policy: ActorCriticPolicy, observations: torch.Tensor, memory: Memory | None = None
) -> tuple[torch.Tensor, Memory | None]:
    """What a policy makes of sequences: scores of discrete actions, or the mean of others.

    Args:
        policy: SB3's policy, recurrent or not.
        observations: (decisions, rows, features).
        memory: Of the LSTM before the first decision; None: empty.

    Returns:
        (decisions, rows, actions), and the memory after the last decision, None without an LSTM.
    """
    latent = observations
    lstm: nn.LSTM | None = getattr(policy, "lstm_actor", None)
    if lstm is not None:
        latent, memory = lstm(latent, memory)
    output: torch.Tensor = policy.action_net(policy.mlp_extractor.forward_actor(latent))
    return output, memory


class SequenceActor:
    """Acts with a policy in several environments, step by step; a recurrent policy's memory is kept.

    Args:
        policy: SB3's policy, recurrent or not.
    """

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self._policy = policy
        self.memory: Memory | None = None

    def scores(self, observations: Floats, starts: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Scores of discrete actions, or the mean of others: (rows, actions).

        Args:
            observations: (rows, features).
            starts: Rows whose episode has just begun; their memory is emptied.
        """
        with torch.no_grad():
            if self.memory is not None and starts.any():
                going_on = torch.from_numpy(~starts).to(self.memory[0]).reshape(1, -1, 1)
                self.memory = (self.memory[0] * going_on, self.memory[1] * going_on)
            rows = torch.from_numpy(observations).to(self._policy.device).unsqueeze(0)
            output, self.memory = action_scores(self._policy, rows, self.memory)
        return output[0]

    def act(
        self, observations: Floats, starts: npt.NDArray[np.bool_], *, deterministic: bool = True
    ) -> npt.NDArray[Any]:
        """Actions: (rows,) int64 of discrete ones, (rows, numbers) float32 of others.

        Args:
            observations: (rows, features).
            starts: Rows whose episode has just begun.
            deterministic: The most likely action, or one drawn from torch's global generator.
        """
        output = self.scores(observations, starts)
        discrete = isinstance(self._policy.action_space, spaces.Discrete)
        if deterministic:
            chosen = output.argmax(-1) if discrete else output
        elif discrete:
            chosen = torch.multinomial(torch.softmax(output, -1), 1).squeeze(-1)
        else:
            chosen = torch.normal(output, torch.exp(self._policy.log_std))
        actions: npt.NDArray[Any] = chosen.cpu().numpy()
        return actions

    def state(self) -> Any:
        """The memory, for a checkpoint."""
        return None if self.memory is None else [part.cpu().numpy() for part in self.memory]

    def restore(self, state: Any) -> None:
        """Continue with the memory that :meth:`state` gave."""
        if state is None:
            self.memory = None
        else:
            hidden, cell = (torch.from_numpy(np.array(part)).to(self._policy.device) for part in state)
            self.memory = (hidden, cell)
