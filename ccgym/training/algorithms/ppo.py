"""Stable-Baselines3's PPO, with rollouts in the native core and gradients on several threads.

**Rollouts.** Step by step, Python asks the policy 400 times for 32 actions, and every environment waits for the slowest
one. Here the native core evaluates the policy's mean itself, in float64, and takes all decisions of an environment in
one go. The noise is what SB3 would have drawn, from the same generator. Values and probabilities are SB3's own,
computed afterward for the whole rollout at once. What cannot be done so (see :func:`native_actor`) is done as SB3 does.

**Gradients.** With several threads of torch, each takes an equal part of every batch, and the gradients are added in
the order of the parts; networks of this size gain nothing from threads inside of one operation. The sums of floats
depend on the number of parts, not on when which thread runs. With one thread the update is SB3's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from torch.nn import functional
from typing_extensions import override

from ccgym.training import normalizer as normalizers
from ccgym.training.native_actor import native_actor
from ccgym.training.rollouts import RolloutEnv

if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy

    from ccgym import _core

T = TypeVar("T")


class NativePPO(PPO):
    """PPO as ``ccgym train`` uses it; arguments, files and what is logged are those of Stable-Baselines3's."""

    policy: ActorCriticPolicy
    _threads: _Threads | None = None

    # --- Rollouts -----------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """As SB3's; of the callback, the steps in between are not called where the native core takes them."""
        rolling = _rolling(env)
        actor = None if rolling is None else native_actor(self.policy)
        if rolling is None or actor is None:
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        self._roll(rolling, env if isinstance(env, VecNormalize) else None, actor, rollout_buffer)
        callback.on_rollout_end()
        return True

    def _roll(
        self, env: RolloutEnv, normalizer: VecNormalize | None, actor: _core.Actor, buffer: RolloutBuffer
    ) -> None:
        steps, count = buffer.buffer_size, buffer.n_envs
        # Step by step, as SB3 draws them.
        shape = torch.zeros(count, buffer.action_dim)
        noise = torch.stack([torch.normal(shape, 1.0) for _ in range(steps)], dim=1)
        rollout = env.rollout(actor, noise.numpy())
        dones = rollout.dones()
        for end in rollout.ends:
            self._update_info_buffer([dict(end.info)])
        self.num_timesteps += steps * count
        rewards = normalizers.normalized_rewards(normalizer, rollout.rewards, dones)
        flat = torch.from_numpy(rollout.observations.reshape(steps * count, -1))
        flat_actions = torch.from_numpy(rollout.actions.reshape(steps * count, -1))
        parts = zip(flat.chunk(self._parts()), flat_actions.chunk(self._parts()), strict=True)
        judged = self._side_by_side(lambda part: self._judge(*part), parts)
        values, probabilities = (torch.cat(kind).numpy().reshape(count, steps) for kind in zip(*judged, strict=True))
        rewards = rewards.copy()
        if rollout.ends:
            # Time is up, the path goes on: what would have followed counts as well.
            terminal = self._values(np.stack([end.observation for end in rollout.ends]))
            for end, value in zip(rollout.ends, terminal, strict=True):
                rewards[end.index, end.step] += self.gamma * value
        buffer.reset()
        buffer.observations[:] = rollout.observations.swapaxes(0, 1)
        buffer.actions[:] = rollout.actions.swapaxes(0, 1)
        buffer.rewards[:], buffer.values[:], buffer.log_probs[:] = rewards.T, values.T, probabilities.T
        buffer.episode_starts[0], buffer.episode_starts[1:] = self._last_episode_starts, dones.T[:-1]
        buffer.pos, buffer.full = steps, True
        self._last_obs, self._last_episode_starts = rollout.last_observations, dones[:, -1].copy()
        last_values = torch.from_numpy(self._values(rollout.last_observations))
        buffer.compute_returns_and_advantage(last_values, self._last_episode_starts)

    def _judge(self, observations: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            values, probabilities, _ = self.policy.evaluate_actions(observations, actions)
        return values.flatten(), probabilities

    def _values(self, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        with torch.no_grad():
            values: np.ndarray[Any, Any] = self.policy.predict_values(torch.from_numpy(observations)).flatten().numpy()
        return values

    # --- The update ---------------------------------------------------------------------------------------------------

    @override
    def train(self) -> None:
        """Learn from the rollout: SB3's update, each batch in as many parts as torch has threads."""
        if self._parts() == 1:
            super().train()
            return
        policy, optimizer = self.policy, self.policy.optimizer
        policy.set_training_mode(True)
        self._update_learning_rate(optimizer)
        remaining = self._current_progress_remaining
        limits = self.clip_range(remaining), self.clip_range_vf(remaining) if self.clip_range_vf is not None else None  # type: ignore[operator]
        buffer = self.rollout_buffer
        fields = "observations", "actions", "log_probs", "advantages", "returns", "values"
        samples = {name: torch.from_numpy(buffer.swap_and_flatten(getattr(buffer, name))) for name in fields}
        for name in fields[2:]:
            samples[name] = samples[name].flatten()
        parameters = list(policy.parameters())
        logged: list[torch.Tensor] = []
        divergences: list[float] = []
        go_on = True
        for _ in range(self.n_epochs):
            divergences = []
            order = torch.from_numpy(np.random.permutation(len(samples["returns"])))  # noqa: NPY002 (as SB3)
            for chosen in order.split(self.batch_size):
                advantages = samples["advantages"].index_select(0, chosen)
                if self.normalize_advantage and len(advantages) > 1:
                    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                size = len(chosen)
                parts = zip(chosen.chunk(self._parts()), advantages.chunk(self._parts()), strict=True)

                def learn(part: tuple[torch.Tensor, torch.Tensor], size: int = size) -> Any:
                    return self._gradient(samples, *part, size, limits, parameters)

                (gradients, numbers), *others = self._side_by_side(learn, parts)
                for more, counted in others:
                    torch._foreach_add_(gradients, more)
                    numbers += counted
                logged.append(numbers)
                divergences.append(float(numbers[4]))
                if self.target_kl is not None and divergences[-1] > 1.5 * self.target_kl:
                    go_on = False
                    break
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.grad = gradient
                torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
                optimizer.step()
            self._n_updates += 1
            if not go_on:
                break
        self._log(torch.stack(logged), divergences, limits)

    def _gradient(
        self,
        samples: dict[str, torch.Tensor],
        chosen: torch.Tensor,
        advantages: torch.Tensor,
        size: int,
        limits: tuple[float, float | None],
        parameters: list[torch.nn.Parameter],
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """What a part of a batch of ``size`` samples adds to the gradient, and to the numbers that are logged."""
        observations, actions, old, returns = (
            samples[name].index_select(0, chosen) for name in ("observations", "actions", "log_probs", "returns")
        )
        if isinstance(self.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        values, probabilities, entropy = self.policy.evaluate_actions(observations, actions)
        values = values.flatten()
        clip, clip_values = limits
        log_ratio = probabilities - old
        ratio = torch.exp(log_ratio)
        policy_loss = -torch.min(advantages * ratio, advantages * torch.clamp(ratio, 1 - clip, 1 + clip)).sum() / size
        if clip_values is not None:
            before = samples["values"].index_select(0, chosen)
            values = before + torch.clamp(values - before, -clip_values, clip_values)
        value_loss = functional.mse_loss(returns, values, reduction="sum") / size
        entropy_loss = (probabilities if entropy is None else -entropy).sum() / size
        loss = policy_loss + self.ent_coef * entropy_loss + self.vf_coef * value_loss
        gradients = list(torch.autograd.grad(loss, parameters))
        with torch.no_grad():
            clipped = (torch.abs(ratio - 1) > clip).sum() / size
            divergence = (ratio - 1 - log_ratio).sum() / size
            numbers = torch.stack([policy_loss, value_loss, entropy_loss, clipped, divergence, loss]).detach()
        return gradients, numbers

    def _log(self, logged: torch.Tensor, divergences: list[float], limits: tuple[float, float | None]) -> None:
        means, record, buffer = logged.mean(dim=0).tolist(), self.logger.record, self.rollout_buffer
        record("train/entropy_loss", means[2])
        record("train/policy_gradient_loss", means[0])
        record("train/value_loss", means[1])
        record("train/approx_kl", float(np.mean(divergences)))
        record("train/clip_fraction", means[3])
        record("train/loss", float(logged[-1, 5]))
        record("train/explained_variance", explained_variance(buffer.values.flatten(), buffer.returns.flatten()))
        if hasattr(self.policy, "log_std"):
            record("train/std", torch.exp(self.policy.log_std).mean().item())  # type: ignore[arg-type]
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", limits[0])
        if limits[1] is not None:
            record("train/clip_range_vf", limits[1])

    # --- Threads ------------------------------------------------------------------------------------------------------

    def _parts(self) -> int:
        """Parts of a batch: torch's threads; on a GPU one."""
        return torch.get_num_threads() if self.device.type == "cpu" else 1

    def _side_by_side(self, work: Callable[[Any], T], parts: Iterable[Any]) -> list[T]:
        """Do the parts, each in a thread of its own; the results are in the order of the parts."""
        if self._threads is None:
            self._threads = _Threads(self._parts())
        return self._threads.each(work, parts)

    @override
    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_threads"]


class _Threads:
    """Threads of which each uses one thread of torch."""

    def __init__(self, count: int) -> None:
        self._pool = None
        if count > 1:
            self._pool = ThreadPoolExecutor(count, "gradient", initializer=torch.set_num_threads, initargs=(1,))

    def each(self, work: Callable[[Any], T], parts: Iterable[Any]) -> list[T]:
        """The results of ``work``, in the order of ``parts``."""
        return list(map(work, parts) if self._pool is None else self._pool.map(work, parts))


def _rolling(env: VecEnv) -> RolloutEnv | None:
    """What takes whole rollouts for the environments of a learner, if anything does."""
    if isinstance(env, VecNormalize):
        return None if env.norm_obs else _rolling(env.venv)
    return env if isinstance(env, RolloutEnv) and env.rolls else None
