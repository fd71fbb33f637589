"""PPO: Stable-Baselines3's, with rollouts in the native core and gradients on several threads.

**Rollouts.** Step by step, Python asks the policy 400 times for 32 actions, and every environment waits for the slowest
one. Here the native core evaluates the policy's mean itself, in float64, and takes all decisions of an environment in
one go. The noise is what SB3 would have drawn, from the same generator. Values and probabilities are SB3's own,
computed afterward for the whole rollout at once. Policies and environments that this does not fit (see
:class:`GaussianPolicy` and :attr:`SB3LinkVecEnv.rolls`) are left to SB3.

**Several learners.** Flows that learn on one path have clocks of their own. Together they fill the room that SB3's
buffer has for them, no matter which decides more often, and advantages never cross from one to another. What a
learner has decided, but has not seen the outcome of, when a rollout ends is a sample of the next one, with the
probability that it was taken with.

**Gradients.** Each of ``gradient_threads`` takes an equal part of every batch, and the gradients are added in the order
of the parts; networks of this size gain nothing from threads inside of one operation. The sums of floats depend on the
number of parts, not on when which thread runs. With one thread, or another kind of policy, the update is SB3's.
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
    """PPO as ``ccgym train`` uses it; arguments, files and what is logged are those of Stable-Baselines3's."""

    policy: ActorCriticPolicy
    gradient_threads: int = 1
    """Parts of a batch."""
    _threads: ThreadPoolExecutor | None = None
    _open: npt.NDArray[np.bool_] | None = None
    """Which learners had an open decision at the end of the latest rollout, where several learn on a path."""
    _open_log_probs: Floats | None = None
    """Logarithms of the probabilities that the policy gave these decisions when it took them."""

    # --- Rollouts -----------------------------------------------------------------------------------------------------

    @override
    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """As SB3's; of the callback, the steps in between are not called where the native core takes them."""
        rolling, policy = rolling_env(env), GaussianPolicy.of(self.policy)
        if rolling is None or policy is None:
            if env.get_attr("learners")[0] > 1:
                raise ConfigError(
                    "several-learners",
                    "several learners on a path, and a policy or device that the native core cannot take rollouts of",
                    where="environment.learners",
                    expected="plain layers with a Gaussian, on the CPU, without normalized observations",
                    hint="--device cpu; docs/guides/train.md says what rollouts in the native core are for",
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
            # Time is up, the path goes on: what would have followed counts as well.
            terminal = self._values(np.stack([end.observation for end in ends]))
            for end, value in zip(ends, terminal, strict=True):
                rewards[end.index, end.step] += self.gamma * value
        last_values = self._values(rollout.last_observations).reshape(count, learners)
        estimated = advantages(rewards, values, dones, whose, last_values, gamma=self.gamma, gae_lambda=self.gae_lambda)

        def spread(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            """Environments × samples as SB3's buffer has them, steps × rows; the order only means something to one
            learner per path.
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
        """Give decisions that an earlier policy took, and whose interval closed in this rollout, the probability that
        they had then; and keep those of the decisions that are open now.
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
                now[row] = known[row]  # it is the same decision still
        self._open, self._open_log_probs = rollout.open.copy(), now

    def extra_state(self) -> dict[str, Any]:
        """Which learners have an open decision, and how probable it was; nothing where each path has one learner."""
        return {} if self._open is None else {"open": self._open, "log_probs": self._open_log_probs}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Continue from there."""
        self._open, self._open_log_probs = state["open"], state["log_probs"]

    def _judged(self, policy: GaussianPolicy, observations: Floats, actions: Floats) -> tuple[Floats, Floats]:
        """Values, and logarithms of probabilities: environments × samples each."""
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
        """Do equal parts of arrays side by side, in threads; the results are in the order of the parts.

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


def rolling_env(env: VecEnv) -> SB3LinkVecEnv | None:
    """What takes whole rollouts for the environments of a learner, if anything does."""
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
    """The advantage of every sample (Schulman et al., 2016), over later samples of the same learner and episode only.

    Where each environment has one learner this is Stable-Baselines3's ``compute_returns_and_advantage``, to the bit.

    Args:
        rewards: Environments × samples; that of an episode's last includes what would have followed.
        values: Of what each decision was taken on, of the same shape.
        dones: Which samples were the last of their learner's episode, of the same shape.
        learners: Whose each sample is, from 0, of the same shape.
        last_values: Of what every learner decides on next, environments × learners.
        gamma: Discount.
        gae_lambda: Weight of longer estimates.

    Returns:
        Environments × samples.
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
    """Observation, action, logarithm of its probability, return, value: next to each other, gathered in one go."""
    advantages: torch.Tensor
    """One column."""
    features: int
    """Of an observation."""

    @classmethod
    def of(cls, buffer: RolloutBuffer) -> Samples:
        """All of SB3's buffer."""
        names = "observations", "actions", "log_probs", "returns", "values", "advantages"
        flat = (torch.from_numpy(buffer.swap_and_flatten(getattr(buffer, name))) for name in names)
        *columns, gained = (array.reshape(len(array), -1) for array in flat)
        return cls(torch.cat(columns, dim=1), gained, columns[0].shape[1])


class Loss(NamedTuple):
    """PPO's loss of a policy and a value function."""

    policy: GaussianPolicy
    clip: float
    """Limit of the probability ratio's distance from 1."""
    clip_value: float | None
    """Limit of the value's change."""
    ent_coef: float
    vf_coef: float

    @torch.no_grad()
    def gradient(
        self, samples: Samples, size: int, rows: torch.Tensor, gained: torch.Tensor, out: Gradient
    ) -> torch.Tensor:
        """What a part of a batch adds to the gradient of the batch's mean loss.

        Args:
            samples: Of the rollout.
            size: Of the batch.
            rows: The part.
            gained: Advantages of the part, standardized if they are to be; one column.
            out: Is written.

        Returns:
            What the part adds to the means of the surrogate, the squared error of the value, the fraction that is
            clipped, and the divergence from the old policy.
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
        # Of the smaller of the two. Where that is the clipped one and differs, it does not move.
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
