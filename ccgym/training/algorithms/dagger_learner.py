"""The learner of :mod:`ccgym.training.algorithms.dagger`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from typing_extensions import override

from ccgym.training.algorithms.supervised import SupervisedLearner
from ccgym.training.sequences import Episode, EpisodeBuffer, FitSettings, fit_sequences

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.algorithms.dagger import DaggerConfig

_NOT_SAVED = ("config", "buffer", "open", "noise")


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
        self.fit_settings = FitSettings(
            epochs=config.n_epochs,
            batch_size=config.batch_size,
            sequence_length=config.sequence_length,
            max_grad_norm=config.max_grad_norm,
            tolerance=config.tolerance,
            patience=config.patience,
        )

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
        fit = fit_sequences(self.policy, self.buffer.episodes, self.fit_settings, self._prefixes())
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
        return [*super()._excluded_save_params(), *_NOT_SAVED]

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
