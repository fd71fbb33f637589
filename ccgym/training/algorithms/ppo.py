"""Stable-Baselines3's PPO, with rollouts in the native core and gradients on several threads.

**Rollouts.** Step by step, Python asks the policy 400 times for 32 actions, and every environment waits for the slowest
one. Here the native core evaluates the policy's mean itself, in float64, and takes all decisions of an environment in
one go. The noise is what SB3 would have drawn, from the same generator. Values and probabilities are SB3's own,
computed afterward for the whole rollout at once. Policies and environments that this does not fit (see
:class:`PlainPolicy` and :attr:`RolloutEnv.rolls`) are left to SB3.

**Several learners.** Flows that learn on one path have clocks of their own. Together they fill the room that SB3's
buffer has for them, whoever decides more often, and advantages never cross from one to another. What a learner has
decided, but has not seen the outcome of, when a rollout ends is a sample of the next one, with the probability that it
was taken with.

**Gradients.** Each of ``gradient_threads`` takes an equal part of every batch, and the gradients are added in the order
of the parts; networks of this size gain nothing from threads inside of one operation. The sums of floats depend on the
number of parts, not on when which thread runs. With one thread, or another kind of policy, the update is SB3's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.training import normalizer as normalizers
from ccgym.training.algorithms.advantages import advantages
from ccgym.training.algorithms.ppo_gradient import Gradient, Loss, Network, Samples
from ccgym.training.plain_policy import PlainPolicy
from ccgym.training.rollouts import RolloutEnv

if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy

    from ccgym.envs.rollout import Rollout

T = TypeVar("T")


class NativePPO(PPO):
    """PPO as ``ccgym train`` uses it; arguments, files and what is logged are those of Stable-Baselines3's."""

    policy: ActorCriticPolicy
    gradient_threads: int = 1
    """Parts of a batch."""
    _threads: ThreadPoolExecutor | None = None
    _open: npt.NDArray[np.bool_] | None = None
    """Which learners had an open decision at the end of the latest rollout, where several learn on a path."""
    _open_log_probs: npt.NDArray[np.float32] | None = None
    """Logarithms of the probabilities that the policy gave these decisions when it took them."""

    # --- Rollouts -----------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """As SB3's; of the callback, the steps in between are not called where the native core takes them."""
        rolling, plain = _rolling(env), PlainPolicy.of(self.policy)
        if rolling is None or plain is None:
            if env.get_attr("learners")[0] > 1:
                raise ConfigError(
                    "several-learners",
                    "several learners on a path, and a policy or device that the native core cannot take rollouts of",
                    where="environment.learners",
                    expected="plain layers with a Gaussian, on the CPU, without normalized observations",
                    hint="--device cpu; docs/training.md says what rollouts in the native core are for",
                )
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        self._roll(rolling, env if isinstance(env, VecNormalize) else None, plain, rollout_buffer)
        callback.on_rollout_end()
        return True

    def _roll(
        self, env: RolloutEnv, normalizer: VecNormalize | None, plain: PlainPolicy, buffer: RolloutBuffer
    ) -> None:
        loss, rows = self._loss(plain), buffer.n_envs
        learners = env.learners
        count, samples = rows // learners, buffer.buffer_size * learners
        # Step by step, as SB3 draws them.
        shape = torch.zeros(count, buffer.action_dim)
        noise = torch.stack([torch.normal(shape, 1.0) for _ in range(samples + learners - 1)], dim=1)
        rollout = env.rollout(plain.actor(), noise.numpy())
        dones, whose = rollout.dones(), rollout.learners.astype(np.int64)
        for end in rollout.ends:
            self._update_info_buffer([dict(end.info)])
        self.num_timesteps += samples * count
        rewards = normalizers.normalized_rewards(normalizer, rollout.rewards, dones, whose)
        values, log_probs = self._judged(loss, rollout.observations, rollout.actions)
        if learners > 1:
            self._carry(loss, rollout, whose, log_probs)
        rewards = rewards.copy()
        ends = [end for end in rollout.ends if end.step >= 0]
        if ends:
            # Time is up, the path goes on: what would have followed counts as well.
            terminal = self._values(np.stack([end.observation for end in ends]))
            for end, value in zip(ends, terminal, strict=True):
                rewards[end.index, end.step] += self.gamma * value
        last_values = self._values(rollout.last_observations).reshape(count, learners)
        estimated = advantages(rewards, values, dones, whose, last_values, gamma=self.gamma, gae_lambda=self.gae_lambda)

        def spread(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            """Environments × samples as SB3's buffer has them, steps × rows; the order only means something to one
            learner per path.
            """
            steps = array.reshape(count, -1, learners, *array.shape[2:]).swapaxes(0, 1)
            as_rows: np.ndarray[Any, Any] = steps.reshape(-1, rows, *array.shape[2:])
            return as_rows

        buffer.reset()
        buffer.observations[:], buffer.actions[:] = spread(rollout.observations), spread(rollout.actions)
        buffer.rewards[:], buffer.values[:], buffer.log_probs[:] = spread(rewards), spread(values), spread(log_probs)
        buffer.advantages[:] = spread(estimated)
        buffer.returns[:] = buffer.advantages + buffer.values
        last = spread(dones)
        buffer.episode_starts[0], buffer.episode_starts[1:] = self._last_episode_starts, last[:-1]
        buffer.pos, buffer.full = buffer.buffer_size, True
        self._last_obs, self._last_episode_starts = rollout.last_observations, last[-1].copy()

    def _carry(
        self, loss: Loss, rollout: Rollout, learners: np.ndarray[Any, Any], log_probs: np.ndarray[Any, Any]
    ) -> None:
        """Give decisions that an earlier policy took, and whose interval closed in this rollout, the probability that
        they had then; and keep those of the decisions that are open now.
        """
        before, known = self._open, self._open_log_probs
        if before is None or known is None:
            before, known = np.zeros_like(rollout.open), np.zeros(len(rollout.open), dtype=np.float32)
        now = np.zeros(len(rollout.open), dtype=np.float32)
        if rollout.open.any():
            _, judged = loss.judge(torch.from_numpy(rollout.last_observations), torch.from_numpy(rollout.last_actions))
            now[:] = judged.numpy().reshape(-1)
        for row in np.flatnonzero(before):
            index, learner = divmod(int(row), len(rollout.open) // len(learners))
            places = np.flatnonzero(learners[index] == learner)
            if len(places):
                log_probs[index, places[0]] = known[row]
            else:
                now[row] = known[row]  # it is the same decision still
        self._open, self._open_log_probs = rollout.open.copy(), now

    def extra_state(self) -> dict[str, Any]:
        """Which learners have an open decision, and how probable it was; nothing where each path has one learner."""
        return {} if self._open is None else {"open": self._open, "log_probs": self._open_log_probs}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Continue from there."""
        self._open, self._open_log_probs = state["open"], state["log_probs"]

    def _judged(
        self, loss: Loss, observations: np.ndarray[Any, Any], actions: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Values, and logarithms of probabilities: environments × samples each."""
        shape = observations.shape[:2]
        flat = (torch.from_numpy(array.reshape(shape[0] * shape[1], -1)) for array in (observations, actions))
        judged = zip(*self._side_by_side(loss.judge, *flat), strict=True)
        values, log_probs = (torch.cat(kind).numpy().reshape(shape) for kind in judged)
        return values, log_probs

    def _values(self, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        with torch.no_grad():
            values: np.ndarray[Any, Any] = self.policy.predict_values(torch.from_numpy(observations)).flatten().numpy()
        return values

    # --- The update ---------------------------------------------------------------------------------------------------

    @override
    def train(self) -> None:
        """Learn from the rollout: SB3's update, each batch in parts."""
        plain = PlainPolicy.of(self.policy)
        if self.gradient_threads == 1 or plain is None:
            super().train()
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        loss, samples = self._loss(plain), self._samples()
        gradients = [Gradient(loss.parameters) for _ in range(self.gradient_threads)]
        for parameter, part in zip(loss.parameters, gradients[0].parts, strict=True):
            parameter.grad = part
        logged: list[torch.Tensor] = []
        entropies: list[torch.Tensor] = []
        go_on = True
        for _ in range(self.n_epochs):
            divergences: list[float] = []
            order = torch.from_numpy(np.random.permutation(len(samples.table)))  # noqa: NPY002 (as SB3)
            for rows in torch.split(order, self.batch_size):
                advantages = samples.advantages.index_select(0, rows)
                if self.normalize_advantage:
                    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                numbers, *others = self._side_by_side(
                    partial(loss.gradient, samples, len(rows)), rows, advantages, given=gradients
                )
                for more, further in zip(gradients[1:], others, strict=False):
                    gradients[0].flat.add_(more.flat)
                    numbers.add_(further)
                logged.append(numbers)
                entropies.append(loss.entropy())
                divergences.append(float(numbers[3]))
                if self.target_kl is not None and divergences[-1] > 1.5 * self.target_kl:
                    go_on = False
                    break
                gradients[0].clip(self.max_grad_norm)
                self.policy.optimizer.step()
            self._n_updates += 1
            if not go_on:
                break
        self._log(loss, torch.stack(logged), torch.stack(entropies), divergences)

    def _loss(self, plain: PlainPolicy) -> Loss:
        remaining, clip, clip_value = self._current_progress_remaining, self.clip_range, self.clip_range_vf
        assert callable(clip)
        assert clip_value is None or callable(clip_value)
        return Loss(
            policy=Network(plain.policy, plain.activation),
            inputs=plain.policy[0].in_features,
            value=Network(plain.value, plain.activation),
            log_std=plain.log_std,
            clip=clip(remaining),
            clip_value=None if clip_value is None else clip_value(remaining),
            ent_coef=self.ent_coef,
            vf_coef=self.vf_coef,
        )

    def _samples(self) -> Samples:
        buffer = self.rollout_buffer
        names = "observations", "actions", "log_probs", "returns", "values", "advantages"
        flat = (torch.from_numpy(buffer.swap_and_flatten(getattr(buffer, name))) for name in names)
        return Samples.of(*(array.reshape(len(array), -1) for array in flat))

    def _log(self, loss: Loss, logged: torch.Tensor, entropies: torch.Tensor, divergences: list[float]) -> None:
        surrogate, squares, clipped, _ = logged.mean(dim=0).tolist()
        record, buffer = self.logger.record, self.rollout_buffer
        last = -float(logged[-1, 0]) - self.ent_coef * float(entropies[-1]) + self.vf_coef * float(logged[-1, 1])
        record("train/entropy_loss", -float(entropies.mean()))
        record("train/policy_gradient_loss", -surrogate)
        record("train/value_loss", squares)
        record("train/approx_kl", float(np.mean(divergences)))
        record("train/clip_fraction", clipped)
        record("train/loss", last)
        record("train/explained_variance", explained_variance(buffer.values.flatten(), buffer.returns.flatten()))
        record("train/std", float(loss.log_std.detach().exp().mean()))
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", loss.clip)
        if loss.clip_value is not None:
            record("train/clip_range_vf", loss.clip_value)

    # --- Threads ------------------------------------------------------------------------------------------------------

    def _side_by_side(self, work: Callable[..., T], *arrays: torch.Tensor, given: Sequence[Any] = ()) -> list[T]:
        """Do equal parts of arrays side by side; the results are in the order of the parts.

        Args:
            work: Gets a part of each array, and one of what is given.
            *arrays: Of the same length.
            given: One thing per part, or nothing.
        """
        parts = [*zip(*(array.chunk(self.gradient_threads) for array in arrays), strict=True)]
        first, *others = [(*part, *given[place : place + 1]) for place, part in enumerate(parts)]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max(1, self.gradient_threads - 1), "gradient")
        under_way = [self._threads.submit(work, *part) for part in others]
        return [work(*first), *(part.result() for part in under_way)]

    @override
    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_threads", "_open", "_open_log_probs"]


def _rolling(env: VecEnv) -> RolloutEnv | None:
    """What takes whole rollouts for the environments of a learner, if anything does."""
    if isinstance(env, VecNormalize):
        return None if env.norm_obs else _rolling(env.venv)
    return env if isinstance(env, RolloutEnv) and env.rolls else None
