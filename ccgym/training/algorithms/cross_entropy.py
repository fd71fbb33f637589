"""The cross-entropy method: the policy imitates the best episodes of a group and, for some time, an expert.

Reuven Rubinstein's method with a network for the distribution: act, keep the best episodes, move toward them. Returns
on different links are not comparable, so the episodes of a group have the same path *and* the same seed of the
simulator: only the actions make one episode better than another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import FloatSchedule
from torch import nn
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.training.algorithms.config import CrossEntropyConfig
from ccgym.training.algorithms.supervised import Floats, SupervisedLearner, action_scores, schedule

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Elites:
    """Episodes to imitate, side by side: the first axis is the decision, the second the episode."""

    observations: Floats
    """(decisions, episodes, features)."""
    actions: Indices
    """(decisions, episodes): the taken actions; -1 after an episode's end."""
    labels: Indices
    """(decisions, episodes): the expert's actions; -1 if the expert has none, or was not used."""

    @property
    def count(self) -> int:
        """Number of episodes."""
        return int(self.actions.shape[1])


def choose_elites(returns: npt.NDArray[np.float64], group_size: int, percentile: float) -> Indices:
    """Return the episodes to imitate: in each group, the episodes whose return reaches the group's percentile.

    A group whose episodes all have the same return has no elites: nothing can be learned from it.

    Args:
        returns: Returns, (episodes,), group after group.
        group_size: Number of episodes of a group.
        percentile: 0 … 100, by numpy's linear interpolation.

    Returns:
        Indices of the elites, ascending.
    """
    groups = returns.reshape(-1, group_size)
    threshold = np.percentile(groups, percentile, axis=1, keepdims=True)
    differ = groups.max(axis=1, keepdims=True) > groups.min(axis=1, keepdims=True)
    return np.flatnonzero((groups >= threshold) & differ)


class CrossEntropyLearner(SupervisedLearner):
    """The cross-entropy method on groups of episodes.

    Args:
        config: Settings of the algorithm.
        env: The training environments; ``env.labels()`` returns the expert's actions, if an expert is imitated.
        device: Device of the networks.

    Raises:
        ConfigError: Actions are not discrete.
    """

    own = (*SupervisedLearner.own, "temperature", "updates", "elites", "collected")

    def __init__(self, config: CrossEntropyConfig, env: VecEnv, device: str) -> None:
        if not isinstance(env.action_space, spaces.Discrete):
            raise ConfigError(
                "agent-unsuitable",
                "actions that are real numbers",
                where="agent.action.map",
                expected="discrete or gain_on_estimate: the cross-entropy method chooses from a list of actions",
                hint="use algorithm.name: ppo for such actions",
            )
        super().__init__(config, env, device, eps=config.adam_epsilon)
        self.temperature = FloatSchedule(schedule(config.temperature))
        """Temperature by the remaining fraction of the run."""
        self.updates = 0
        """Number of finished updates."""
        self.elites: list[Elites] = []
        """Elites of the latest updates, the oldest first."""
        self.collected: dict[str, float] = {}
        """Statistics of the latest rollout, for the log."""

    # --- Acting -------------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(self, env: VecEnv, callback: Any, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Run one episode in every environment, and keep the elites of each group."""
        config, count = self.config, env.num_envs
        asks = config.imitation is not None and config.imitation.at(self.updates) > 0
        observations: Any = np.empty((n_rollout_steps, count, *self.observation_space.shape), dtype=np.float32)  # type: ignore[misc]
        actions = np.full((n_rollout_steps, count), -1, dtype=np.int64)
        labels = np.full_like(actions, -1)
        returns = np.zeros(count)
        going_on = np.ones(count, dtype=np.bool_)
        seen: Any = self._begin(env)
        starts = going_on.copy()
        self.policy.set_training_mode(False)
        for step in range(n_rollout_steps):
            observations[step] = seen
            if asks:
                labels[step, going_on] = _indices(env.labels()[going_on, 0])  # type: ignore[attr-defined]
            chosen = self._draw(seen, starts)
            actions[step, going_on] = chosen[going_on]
            seen, rewards, starts, infos = env.step(chosen)
            returns[going_on] += rewards[going_on]
            going_on &= ~starts
            if starts.any():
                self._update_info_buffer(infos, starts)
            self.num_timesteps += count
        self._last_obs, self._last_episode_starts = seen, starts
        kept = choose_elites(returns, config.group_size, config.elite_percentile)
        self.elites.append(Elites(observations[:, kept], actions[:, kept], labels[:, kept]))
        del self.elites[: -config.elite_updates]
        self.collected = {
            "elites": len(kept),
            "elite_reward": float(returns[kept].mean()) if len(kept) else float("nan"),
            "spread_in_group": float(returns.reshape(-1, config.group_size).std(axis=1).mean()),
        }
        return True

    def _draw(self, seen: Floats, starts: npt.NDArray[np.bool_]) -> Indices:
        """Return actions, drawn from torch's global generator."""
        scores = self.actor.scores(seen, starts) / self.temperature(self._current_progress_remaining)
        drawn: Indices = torch.multinomial(torch.softmax(scores, -1), 1).squeeze(-1).cpu().numpy()
        return drawn

    def _begin(self, env: VecEnv) -> Any:
        """Begin an episode in every environment, the same episode for all environments of a group. Seeds come from
        numpy's global generator, which is part of checkpoints."""
        size = self.config.group_size
        seeds = np.random.randint(0, 2**32, env.num_envs // size, dtype=np.uint64)  # noqa: NPY002
        # SB3's seed() accepts one number and counts up from it; here, seeds must repeat.
        env.unwrapped._seeds = [int(seed) for seed in np.repeat(seeds, size)]
        return env.reset()

    # --- Learning -----------------------------------------------------------------------------------------------------

    @override
    def train(self) -> None:
        """Fit the policy to the elites' actions, and to the expert's actions in the same states."""
        self._update_learning_rate(self.policy.optimizer)
        imitation = self.config.imitation
        weight = 0.0 if imitation is None else imitation.at(self.updates)
        losses = self._fit(weight)
        self.updates += 1
        log = self.logger.record
        log("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, value in losses.items():
            log(f"train/{name}", value)
        log("cross_entropy/imitation_weight", weight)
        for name, value in self.collected.items():
            log(f"cross_entropy/{name}", value)

    def _fit(self, expert_weight: float) -> dict[str, float]:
        """Make passes over the elites; return means over the last pass."""
        config, policy = self.config, self.policy
        kept = [elites for elites in self.elites if elites.count]
        if not kept:
            return {}
        observations, actions, labels = (
            torch.from_numpy(np.concatenate([getattr(elites, name) for elites in kept], axis=1)).to(self.device)
            for name in ("observations", "actions", "labels")
        )
        policy.set_training_mode(True)
        sums: dict[str, list[float]] = {}
        for _ in range(config.n_epochs):
            sums = {"loss": [], "expert_loss": [], "entropy": [], "expert_agreement": []}
            for rows in torch.split(torch.randperm(actions.shape[1]), config.batch_size):
                scores, _ = action_scores(policy, observations[:, rows])
                logarithms = torch.log_softmax(scores, dim=-1)
                done, wanted = actions[:, rows], labels[:, rows]
                entropy = _mean(-(logarithms.exp() * logarithms).sum(-1), done >= 0)
                loss = _cross_entropy(logarithms, done)
                sums["loss"].append(loss.item())
                sums["entropy"].append(entropy.item())
                if expert_weight > 0:
                    expert_loss = _cross_entropy(logarithms, wanted)
                    sums["expert_loss"].append(expert_loss.item())
                    sums["expert_agreement"].append(
                        float(_mean((logarithms.argmax(-1) == wanted).to(logarithms.dtype), wanted >= 0))
                    )
                    loss = loss + expert_weight * expert_loss
                loss = loss - config.ent_coef * entropy
                policy.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
                policy.optimizer.step()
                self._n_updates += 1
        policy.set_training_mode(False)
        return {name: float(np.mean(values)) for name, values in sums.items() if values}

    # --- Checkpoints --------------------------------------------------------------------------------------------------

    @override
    def extra_state(self) -> dict[str, Any]:
        """Return the number of finished updates, and the elites of earlier updates."""
        earlier = self.config.elite_updates - 1
        kept = self.elites[-earlier:] if earlier else []
        return {**super().extra_state(), "updates": self.updates, "elites": [vars(elites) for elites in kept]}

    @override
    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        super().set_extra_state(state)
        self.updates = int(state["updates"])
        self.elites = [Elites(**elites) for elites in state["elites"]]


def _indices(labels: Floats) -> Indices:
    """Return labels as indices; -1 for missing labels."""
    return np.where(np.isnan(labels), -1, labels).astype(np.int64)


def _mean(values: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    return (values * where).sum() / where.sum().clamp(min=1)


def _cross_entropy(logarithms: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Return the mean over the decisions with a known action (not -1); 0 if there are none."""
    total = nn.functional.nll_loss(logarithms.flatten(0, 1), actions.flatten(), ignore_index=-1, reduction="sum")
    return total / (actions >= 0).sum().clamp(min=1)
