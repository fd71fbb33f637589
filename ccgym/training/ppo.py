"""Stable-Baselines3's PPO with rollouts in the native core and gradients on several threads.

**Rollouts.** Step by step, Python would call the policy 400 times for 32 actions, and every environment would wait for
the slowest one. Here, the native core evaluates the policy's mean, in float64, and makes all decisions of an
environment in one call. The noise is the same as in SB3, from the same generator. Values and probabilities are SB3's,
computed afterward for the whole rollout at once. For policies and environments without native rollouts (see
:class:`GaussianPolicy` and :attr:`SB3LinkVecEnv.rolls`), SB3's rollouts are used.

**Several learners.** Flows that learn on one path have separate clocks. Together they fill their part of SB3's buffer,
no matter which flow decides more often, and advantages never cross from one learner to another. If the outcome of a
learner's decision is not known when a rollout ends, the decision is a sample of the next rollout, with its original
probability.

**Gradients.** Each of ``gradient_threads`` computes an equal part of every batch, and the gradients are added in the
order of the parts; threads inside of one operation do not help for networks of this size. The sums of floats depend on
the number of parts, not on the timing of threads. With one thread, or another kind of policy, the update is SB3's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from typing_extensions import override

from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.errors import ConfigError
from ccgym.training.gaussian_policy import GaussianPolicy, Gradient
from ccgym.training.normalizer import normalized_rewards

if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy

    from ccgym.envs.rollout import Rollout

Floats = npt.NDArray[np.float32]
T = TypeVar("T")


class NativePPO(PPO):
    """PPO in ``ccgym train``; arguments, files and logs are as in Stable-Baselines3."""

    policy: ActorCriticPolicy
    gradient_threads: int = 1
    """Number of parts of a batch."""
    _threads: ThreadPoolExecutor | None = None
    _open: npt.NDArray[np.bool_] | None = None
    """With several learners on a path: which of them had an open decision at the end of the latest rollout."""
    _open_log_probs: Floats | None = None
    """Logarithms of the probabilities of these decisions when they were taken."""

    # --- Rollouts -----------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Collect rollouts as in SB3; with native rollouts, the callback is not called at each step."""
        rolling, policy = rolling_env(env), GaussianPolicy.of(self.policy)
        if rolling is None or policy is None:
            if env.get_attr("learners")[0] > 1:
                raise ConfigError(
                    "several-learners",
                    "several learners on a path, with a policy or device without rollouts in the native core",
                    where="environment.learners",
                    expected="plain layers with a Gaussian, on the CPU, without normalized observations",
                    hint="use --device cpu; docs/guides/train.md explains rollouts in the native core",
                )
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        self._roll(rolling, env if isinstance(env, VecNormalize) else None, policy, rollout_buffer)
        callback.on_rollout_end()
        return True

    def _roll(
        self, env: SB3LinkVecEnv, normalizer: VecNormalize | None, policy: GaussianPolicy, buffer: RolloutBuffer
    ) -> None:
        rows, learners = buffer.n_envs, env.learners
        count, samples = rows // learners, buffer.buffer_size * learners
        # Step by step, as SB3 draws them.
        shape = torch.zeros(count, buffer.action_dim)
        noise = torch.stack([torch.normal(shape, 1.0) for _ in range(samples + learners - 1)], dim=1)
        rollout = env.rollout(policy.actor(), noise.numpy())
        dones, whose = rollout.dones(), rollout.learners.astype(np.int64)
        for end in rollout.ends:
            self._update_info_buffer([dict(end.info)])
        self.num_timesteps += samples * count
        rewards = normalized_rewards(normalizer, rollout.rewards, dones, whose).copy()
        values, log_probs = self._judged(policy, rollout.observations, rollout.actions)
        if learners > 1:
            self._carry(policy, rollout, whose, log_probs)
        ends = [end for end in rollout.ends if end.step >= 0]
        if ends:
            # The time limit ended the episode, not the path: estimated later rewards count, too.
            terminal = self._values(np.stack([end.observation for end in ends]))
            for end, value in zip(ends, terminal, strict=True):
                rewards[end.index, end.step] += self.gamma * value
        last_values = self._values(rollout.last_observations).reshape(count, learners)
        estimated = advantages(rewards, values, dones, whose, last_values, gamma=self.gamma, gae_lambda=self.gae_lambda)

        def spread(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            """Return environments × samples in the layout of SB3's buffer, steps × rows; the order has a meaning only
            with one learner per path.
            """
            steps = array.reshape(count, -1, learners, *array.shape[2:]).swapaxes(0, 1)
            as_rows: npt.NDArray[Any] = steps.reshape(-1, rows, *array.shape[2:])
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
        self, policy: GaussianPolicy, rollout: Rollout, learners: npt.NDArray[np.int64], log_probs: Floats
    ) -> None:
        """Set the original probabilities of decisions that an earlier policy made and whose interval ended in this
        rollout; and keep the probabilities of the decisions that are open now.
        """
        before, known = self._open, self._open_log_probs
        if before is None or known is None:
            before, known = np.zeros_like(rollout.open), np.zeros(len(rollout.open), dtype=np.float32)
        now = np.zeros(len(rollout.open), dtype=np.float32)
        if rollout.open.any():
            seen, done = torch.from_numpy(rollout.last_observations), torch.from_numpy(rollout.last_actions)
            now[:] = policy.judge(seen, done)[1].numpy().reshape(-1)
        for row in np.flatnonzero(before):
            index, learner = divmod(int(row), len(rollout.open) // len(learners))
            places = np.flatnonzero(learners[index] == learner)
            if len(places):
                log_probs[index, places[0]] = known[row]
            else:
                now[row] = known[row]  # still the same decision
        self._open, self._open_log_probs = rollout.open.copy(), now

    def extra_state(self) -> dict[str, Any]:
        """Return the learners' open decisions with their probabilities; empty with one learner per path."""
        return {} if self._open is None else {"open": self._open, "log_probs": self._open_log_probs}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Continue from the result of :meth:`extra_state`."""
        self._open, self._open_log_probs = state["open"], state["log_probs"]

    def _judged(self, policy: GaussianPolicy, observations: Floats, actions: Floats) -> tuple[Floats, Floats]:
        """Return values, and logarithms of probabilities: environments × samples each."""
        shape = observations.shape[:2]
        flat = (torch.from_numpy(array.reshape(shape[0] * shape[1], -1)) for array in (observations, actions))
        judged = zip(*self._side_by_side(policy.judge, *flat), strict=True)
        values, log_probs = (torch.cat(kind).numpy().reshape(shape) for kind in judged)
        return values, log_probs

    def _values(self, observations: Floats) -> Floats:
        with torch.no_grad():
            values: Floats = self.policy.predict_values(torch.from_numpy(observations)).flatten().numpy()
        return values

    # --- The update ---------------------------------------------------------------------------------------------------

    @override
    def train(self) -> None:
        """Learn from the rollout: SB3's update, each batch in parts."""
        policy = GaussianPolicy.of(self.policy)
        if self.gradient_threads == 1 or policy is None:
            super().train()
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        remaining, clip, clip_value = self._current_progress_remaining, self.clip_range, self.clip_range_vf
        assert callable(clip)
        assert clip_value is None or callable(clip_value)
        limits = clip(remaining), None if clip_value is None else clip_value(remaining)
        loss = Loss(policy, *limits, self.ent_coef, self.vf_coef)
        samples = Samples.of(self.rollout_buffer)
        gradients = [Gradient(policy.parameters) for _ in range(self.gradient_threads)]
        for parameter, part in zip(policy.parameters, gradients[0].parts, strict=True):
            parameter.grad = part
        logged: list[torch.Tensor] = []
        entropies: list[torch.Tensor] = []
        go_on = True
        for _ in range(self.n_epochs):
            divergences: list[float] = []
            order = torch.from_numpy(np.random.permutation(len(samples.table)))  # noqa: NPY002 (as SB3)
            for rows in torch.split(order, self.batch_size):
                gained = samples.advantages.index_select(0, rows)
                if self.normalize_advantage:
                    gained = (gained - gained.mean()) / (gained.std() + 1e-8)
                numbers, *others = self._side_by_side(
                    partial(loss.gradient, samples, len(rows)), rows, gained, given=gradients
                )
                for more, further in zip(gradients[1:], others, strict=False):
                    gradients[0].flat.add_(more.flat)
                    numbers.add_(further)
                logged.append(numbers)
                entropies.append(policy.entropy())
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
        record("train/std", float(loss.policy.log_std.detach().exp().mean()))
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", loss.clip)
        if loss.clip_value is not None:
            record("train/clip_range_vf", loss.clip_value)

    def _side_by_side(self, work: Callable[..., T], *arrays: torch.Tensor, given: Sequence[Any] = ()) -> list[T]:
        """Process equal parts of arrays in parallel threads; the results are in the order of the parts.

        Args:
            work: Function of a part of each array, and of an element of ``given``.
            *arrays: Arrays of the same length.
            given: One element per part, or empty.
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


def rolling_env(env: VecEnv) -> SB3LinkVecEnv | None:
    """Return the part of a learner's environments that makes whole rollouts; None if there is none."""
    if isinstance(env, VecNormalize):
        return None if env.norm_obs else rolling_env(env.venv)
    return env if isinstance(env, SB3LinkVecEnv) and env.rolls else None


def advantages(
    rewards: Floats,
    values: Floats,
    dones: npt.NDArray[np.bool_],
    learners: npt.NDArray[np.integer[Any]],
    last_values: Floats,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Return the advantage of every sample (Schulman et al., 2016), from later samples of its learner and episode.

    With one learner per environment, this equals Stable-Baselines3's ``compute_returns_and_advantage`` bit by bit.

    Args:
        rewards: Environments × samples; the last reward of an episode includes the value of later rewards.
        values: Value of the observation of each decision, of the same shape.
        dones: Whether each sample was the last of its learner's episode, of the same shape.
        learners: Learner of each sample, from 0, of the same shape.
        last_values: Value of the observation of every learner's next decision, environments × learners.
        gamma: Discount.
        gae_lambda: Weight of longer estimates.

    Returns:
        Advantages, environments × samples.
    """
    found = np.zeros_like(rewards)
    following = last_values.copy()
    running = np.zeros_like(following)
    count = np.arange(len(rewards))
    goes_on = 1.0 - dones.astype(np.float32)
    kept = gamma * gae_lambda * goes_on
    for place in range(rewards.shape[1] - 1, -1, -1):
        own = count, learners[:, place]
        delta = rewards[:, place] + gamma * following[own] * goes_on[:, place] - values[:, place]
        found[:, place] = running[own] = delta + kept[:, place] * running[own]
        following[own] = values[:, place]
    return found


class Samples(NamedTuple):
    """Decisions of a rollout; one row each."""

    table: torch.Tensor
    """Columns: observation, action, logarithm of its probability, return, value; in one table for fast access."""
    advantages: torch.Tensor
    """Advantages, one column."""
    features: int
    """Number of features of an observation."""

    @classmethod
    def of(cls, buffer: RolloutBuffer) -> Samples:
        """Return all samples of SB3's buffer."""
        names = "observations", "actions", "log_probs", "returns", "values", "advantages"
        flat = (torch.from_numpy(buffer.swap_and_flatten(getattr(buffer, name))) for name in names)
        *columns, gained = (array.reshape(len(array), -1) for array in flat)
        return cls(torch.cat(columns, dim=1), gained, columns[0].shape[1])


class Loss(NamedTuple):
    """PPO's loss for a policy and a value function."""

    policy: GaussianPolicy
    clip: float
    """Max distance of the probability ratio from 1."""
    clip_value: float | None
    """Max change of the value."""
    ent_coef: float
    vf_coef: float

    @torch.no_grad()
    def gradient(
        self, samples: Samples, size: int, rows: torch.Tensor, gained: torch.Tensor, out: Gradient
    ) -> torch.Tensor:
        """Compute the contribution of a part of a batch to the gradient of the batch's mean loss.

        Args:
            samples: Samples of the rollout.
            size: Size of the batch.
            rows: Rows of the part.
            gained: Advantages of the part, standardized if configured; one column.
            out: Target of the gradient.

        Returns:
            Contributions of the part to the means of the surrogate, the squared error of the value, the clipped
            fraction, and the divergence from the old policy.
        """
        policy, features = self.policy, samples.features
        table = samples.table.index_select(0, rows)
        observations, actions = table[:, :features], table[:, features:-3]
        old, returns, before = table[:, -3:-2], table[:, -2:-1], table[:, -1:]
        by_log_std, *by_weights = out.parts
        count = len(policy.mean.parameters)
        means, mean_passed = policy.mean.forward(observations[:, : policy.inputs])
        values, value_passed = policy.value.forward(observations)
        inverse = torch.exp(-policy.log_std.detach())
        distance = (actions - means) * inverse
        squares = distance * distance
        log_ratio = policy.log_probs(squares) - old
        ratio = log_ratio.exp()
        plain = gained * ratio
        clipped = gained * ratio.clamp(1 - self.clip, 1 + self.clip)
        # Gradient of the smaller of the two. It is zero where the clipped one is smaller.
        by_log_prob = torch.where(plain <= clipped, plain, 0.0).mul_(-1 / size)
        torch.sum(by_log_prob * (squares - 1), 0, out=by_log_std)
        by_log_std.sub_(self.ent_coef * len(rows) / size)
        policy.mean.backward(by_log_prob * distance * inverse, mean_passed, by_weights[:count])
        error = by_value = values - returns
        if self.clip_value is not None:
            change = values - before
            error = before + change.clamp(-self.clip_value, self.clip_value) - returns
            by_value = torch.where(change.abs() <= self.clip_value, error, 0.0)
        policy.value.backward(by_value * (2 * self.vf_coef / size), value_passed, by_weights[count:])
        away = ratio - 1
        numbers = [torch.minimum(plain, clipped), error * error, away.abs() > self.clip, away - log_ratio]
        return torch.cat(numbers, dim=1).sum(0).div_(size)
