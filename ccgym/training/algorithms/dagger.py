"""DAgger: the learner acts, an expert labels each state with the right action, the learner imitates the expert
(:mod:`ccgym.training.algorithms.imitation`). After each round, the policy is fitted to all labels so far.

A recurrent policy reads an episode from the beginning with an empty memory, as it does when it acts, so that its memory
late in an episode is trained, too. Gradients go back through ``sequence_length`` decisions; memory continues across
such borders, gradients do not.

Instead of a network, CART can grow a tree. With an expert of kind ``policy``, such as an exported LSTM, this is a
distillation (Bastani, Pu and Solar-Lezama, *Verifiable reinforcement learning via policy extraction*, NeurIPS 2018,
without its weights). The tree is scikit-learn's, by Gini impurity, from all decisions in the buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from gymnasium import spaces
from torch import nn
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.training.algorithms.config import DaggerConfig, Prefix
from ccgym.training.algorithms.imitation import Episode, ImitationLearner
from ccgym.training.algorithms.supervised import Memory, action_scores
from ccgym.training.tree_policy import TreePolicy

if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.vec_env import VecEnv

    pass


class DaggerLearner(ImitationLearner):
    """DAgger on parallel episodes.

    Args:
        config: Its settings.
        env: What it learns in; ``env.labels()`` is what the expert would do.
        device: Where the networks are.
    """

    def __init__(self, config: DaggerConfig, env: VecEnv, device: str) -> None:
        super().__init__(config, env, device, eps=config.adam_epsilon, weight_decay=config.weight_decay)
        if config.soft is not None and not isinstance(self.action_space, spaces.Discrete):
            raise ConfigError(
                "agent-unsuitable",
                f"actions {self.action_space}",
                where="algorithm.soft",
                expected="an agent whose actions are a list of operations",
                hint="remove algorithm.soft",
            )

    @override
    def train(self) -> None:
        """Fit the policy to the whole buffer."""
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
        settings: Prefix | None = self.config.prefix
        if settings is None:
            return []
        return [episode.first(settings.decisions) for episode in self.buffer.episodes] * settings.passes


# --- Fitting ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """The outcome of :func:`fit_sequences`."""

    losses: tuple[float, ...]
    """Mean loss (per unit of weight) of each pass."""
    agreement: float
    """Weighted fraction of discrete actions in the last pass that were the most likely ones; NaN for other actions."""
    gradient_steps: int


def fit_sequences(
    policy: ActorCriticPolicy, episodes: Sequence[Episode], config: DaggerConfig, also: Sequence[Episode] = ()
) -> Fit:
    """Move a policy toward the episodes' actions with ``policy.optimizer``.

    The loss of a decision is the cross-entropy of a discrete action, which may be given by probabilities, or else the
    squared error of the mean, times the weight of the decision. The loss of a batch is the sum of these over the sum of
    the weights. The order is drawn from torch's global generator.

    Args:
        policy: SB3's policy, recurrent or not. Only the parts that lead to actions are trained.
        episodes: Episodes to imitate.
        config: ``n_epochs``, ``batch_size``, ``sequence_length``, ``max_grad_norm``, ``tolerance`` and ``patience``.
        also: More episodes, in separate batches between the other batches. They are fitted, but not part of the
            reported numbers.
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
    """Return all episodes in batches, in random order; True marks batches of ``episodes``."""
    made = []
    for counted, group in ((True, episodes), (False, also)):
        order = torch.randperm(len(group)).tolist() if group else []
        parts = [order[first : first + size] for first in range(0, len(order), size)]
        made += [(counted, [group[index] for index in part]) for part in parts]
    return [made[place] for place in torch.randperm(len(made)).tolist()] if also else made


def _fit_batch(policy: ActorCriticPolicy, batch: Sequence[Episode], config: DaggerConfig, sums: torch.Tensor) -> int:
    """Make one gradient step per piece of the batch; add loss, agreement and weight to ``sums``."""
    device = policy.device
    longest = max(map(len, batch))
    memory: Memory | None = None
    steps = 0
    for start in range(0, longest, config.sequence_length):
        stop = min(start + config.sequence_length, longest)
        open_ones = [row for row, episode in enumerate(batch) if len(episode) > start]
        if len(open_ones) < len(batch):
            # Episodes that have ended are removed; the memories of the other episodes move up.
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
    """Return decisions ``start`` to ``stop`` of episodes: (decisions, episodes, …); weight 0 after an end."""
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
    """Return the loss of each decision, and 1 if a discrete action is the most likely one."""
    if isinstance(policy.action_space, spaces.Discrete):
        each = nn.functional.cross_entropy(output.flatten(0, 1), actions.flatten(0, 1), reduction="none")
        labels = actions if actions.dim() == 2 else actions.argmax(-1)
        return each.reshape(labels.shape), (output.argmax(-1) == labels).to(output.dtype)
    each = ((output - actions) ** 2).sum(-1)
    return each, torch.full_like(each, math.nan)


class DistillLearner(ImitationLearner):
    """A learner that distills the agent's expert into a tree.

    Args:
        config: Its settings.
        env: What it learns in; ``env.labels()`` is what the expert would do.
        device: Without effect.

    Raises:
        ConfigError: The agent's actions are real numbers.
    """

    @override
    def train(self) -> None:
        """Grow a tree from the whole buffer."""
        from sklearn.tree import DecisionTreeClassifier

        log = self.logger.record
        log("distill/rounds", self.rounds)
        log("distill/buffered_decisions", self.buffer.decisions)
        if not self.buffer.episodes:
            return
        known = np.concatenate([episode.weights for episode in self.buffer.episodes]) > 0
        if not known.any():
            return
        seen = np.concatenate([episode.observations for episode in self.buffer.episodes])[known]
        labels = np.concatenate([episode.actions for episode in self.buffer.episodes])[known]
        config = self.config
        grown = DecisionTreeClassifier(
            criterion="gini",
            max_depth=config.max_depth,
            max_leaf_nodes=config.max_leaves,
            min_samples_leaf=config.min_leaf,
            min_samples_split=config.min_split,
            random_state=np.random.randint(2**31),  # noqa: NPY002 (checkpoints hold numpy's global generator)
        ).fit(seen, labels)
        policy = self.policy
        assert isinstance(policy, TreePolicy)
        policy.become(grown)
        self._n_updates += 1
        log("train/agreement", float((policy.choose(seen) == labels).mean()))
        log("distill/leaves", policy.leaves)
        log("distill/depth", policy.depth)
        for place, importance in enumerate(grown.feature_importances_):
            log(f"importance/{place}", float(importance), exclude="csv")
