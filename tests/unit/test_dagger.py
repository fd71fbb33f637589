"""DAgger: episodes and their buffer, fitting through time, and rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from ccgym.errors import ConfigError
from ccgym.training.algorithms.config import DaggerConfig
from ccgym.training.algorithms.dagger import fit_sequences
from ccgym.training.algorithms.imitation import Episode, EpisodeBuffer, softened
from ccgym.training.algorithms.supervised import SequenceActor, action_scores
from tests.refusals import refused
from tests.toy_env import ToyVecEnv
from tests.trainings import learner

# --- Episodes and their store ----------------------------------------------------------------------------------------


def episode(length: int, number: int = 0) -> Episode:
    return Episode(
        np.full((length, 2), number, np.float32), np.full(length, number, np.int64), np.ones(length, np.float32)
    )


def test_the_oldest_episodes_give_way() -> None:
    store = EpisodeBuffer(25)
    store.add([episode(10, number) for number in range(4)])
    assert [int(one.actions[0]) for one in store.episodes] == [2, 3]
    assert store.decisions == 20
    store.add([episode(100, 9)])
    assert [len(one) for one in store.episodes] == [100]  # the newest is held whatever its length


@pytest.mark.parametrize("lengths", [[], [3], [3, 1, 5]])
def test_a_store_comes_back_from_its_state(lengths: list[int]) -> None:
    store, again = EpisodeBuffer(100), EpisodeBuffer(100)
    store.add([episode(length, number) for number, length in enumerate(lengths)])
    again.add([episode(7)])
    again.restore(store.state())
    assert len(again.episodes) == len(lengths)
    for one, other in zip(store.episodes, again.episodes, strict=True):
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


# --- Fitting ---------------------------------------------------------------------------------------------------------


def policy(recurrent: bool, actions: spaces.Space[Any], seed: int = 1, rate: float = 0.02) -> ActorCriticPolicy:
    torch.manual_seed(seed)
    seen = spaces.Box(-1.0, 1.0, (2,), np.float32)
    if recurrent:
        return RecurrentActorCriticPolicy(
            seen, actions, lambda _: rate, net_arch=[], lstm_hidden_size=8, enable_critic_lstm=False
        )
    return ActorCriticPolicy(seen, actions, lambda _: rate, net_arch=[8])


def fitting(**changes: Any) -> DaggerConfig:
    return DaggerConfig(**{"batch_size": 32, "tolerance": 0, "patience": 0, "max_grad_norm": 0.5, **changes})


def remembered(rng: np.random.Generator, length: int) -> Episode:
    """What was shown at the beginning has to be done all the time."""
    observations = np.zeros((length, 2), np.float32)
    observations[0, 0] = rng.choice([-1.0, 1.0])
    observations[:, 1] = rng.uniform(-1, 1, length)
    return Episode(observations, np.full(length, int(observations[0, 0] > 0), np.int64), np.ones(length, np.float32))


def test_a_recurrent_policy_learns_to_remember() -> None:
    rng = np.random.default_rng(1)
    episodes = [remembered(rng, int(length)) for length in rng.integers(20, 40, 40)]
    learner = policy(True, spaces.Discrete(2))
    fit = fit_sequences(learner, episodes, fitting(n_epochs=40, batch_size=10, sequence_length=15))
    assert fit.agreement > 0.97
    assert fit.losses[-1] < 0.2 * fit.losses[0]
    # Step by step, it does what it learned in whole sequences; a start empties its memory.
    actor = SequenceActor(learner)
    for show, done in ((1.0, 1), (-1.0, 0)):
        chosen = []
        for step in range(30):
            seen = np.array([[show if step == 0 else 0.0, 0.3]], np.float32)
            chosen.append(int(actor.act(seen, np.array([step == 0]))[0]))
        assert np.mean(np.array(chosen) == done) > 0.9


def test_continuous_actions_are_fitted_by_their_mean() -> None:
    rng = np.random.default_rng(1)
    seen = rng.uniform(-1, 1, (600, 2)).astype(np.float32)
    wanted = (0.5 * seen[:, :1] - 0.3 * seen[:, 1:]).astype(np.float32)
    parts = [slice(first, first + 60) for first in range(0, 600, 60)]
    episodes = [Episode(seen[part], wanted[part], np.ones(60, np.float32)) for part in parts]
    learner = policy(False, spaces.Box(-1.0, 1.0, (1,), np.float32))
    before = learner.log_std.detach().clone()
    fit = fit_sequences(learner, episodes, fitting(n_epochs=60, batch_size=5))
    assert fit.losses[-1] < 0.003
    assert np.isnan(fit.agreement)
    assert torch.equal(learner.log_std, before)


def test_what_has_no_weight_teaches_nothing() -> None:
    wrong = episode(30)
    silent = Episode(wrong.observations, wrong.actions, np.zeros(30, np.float32))
    learner = policy(True, spaces.Discrete(3))
    before = {name: weight.clone() for name, weight in learner.state_dict().items()}
    fit = fit_sequences(learner, [silent], fitting(n_epochs=3))
    assert fit.gradient_steps == 0
    assert all(torch.equal(weight, before[name]) for name, weight in learner.state_dict().items())


def test_memory_is_carried_over_the_borders_of_pieces() -> None:
    """With a step size of zero, the loss does not depend on where sequences are cut, nor on what shares a batch."""
    rng = np.random.default_rng(2)
    episodes = [remembered(rng, length) for length in (5, 17, 30, 30)]
    learner = policy(True, spaces.Discrete(2), rate=0.0)
    losses = [
        fit_sequences(learner, episodes, fitting(n_epochs=1, batch_size=size, sequence_length=length)).losses[0]
        for size, length in ((1, 100), (4, 100), (4, 7), (3, 10))
    ]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)
    whole, _ = action_scores(learner, torch.from_numpy(episodes[2].observations).unsqueeze(1))
    likelihood = torch.log_softmax(whole[:, 0], -1)[:, int(episodes[2].actions[0])]
    alone = fit_sequences(learner, episodes[2:3], fitting(n_epochs=1, sequence_length=4)).losses[0]
    assert alone == pytest.approx(-float(likelihood.mean().detach()), rel=1e-5)


def test_passes_end_once_nothing_improves() -> None:
    learner = policy(False, spaces.Discrete(2), rate=0.0)
    fit = fit_sequences(learner, [episode(9)], fitting(n_epochs=50, tolerance=1e-3, patience=4))
    assert len(fit.losses) == 5
    assert fit_sequences(learner, [], fitting(n_epochs=50)).losses == ()


# --- Soft labels -----------------------------------------------------------------------------------------------------


def test_soft_labels_are_one_part_distance() -> None:
    distances = np.array([[30.0, 2.0, 1.0, 4.0, 63.0], [5.0, 5.0, 5.0, 5.0, 5.0], [np.nan] * 5])
    made = softened(np.array([2, 0, 0]), distances, 0.1)
    near = -distances[0]
    scores = np.exp((near - near.mean()) / near.std())
    assert made[0] == pytest.approx(0.1 * scores / scores.sum() + [0, 0, 0.9, 0, 0], abs=1e-6)
    assert made[1] == pytest.approx([0.92, 0.02, 0.02, 0.02, 0.02], abs=1e-6)
    assert made.sum(axis=1) == pytest.approx(1.0)
    assert made.dtype == np.float32


@pytest.mark.parametrize("recurrent", [False, True])
def test_probabilities_are_fitted(recurrent: bool) -> None:
    """A decision of which half the labels say 0 and half say 1 ends up in the middle."""
    rng = np.random.default_rng(1)
    wanted = np.tile(np.array([0.5, 0.5, 0.0], np.float32), (30, 1))
    episodes = [
        Episode(rng.uniform(-1, 1, (30, 2)).astype(np.float32), wanted, np.ones(30, np.float32)) for _ in range(4)
    ]
    model = policy(recurrent, spaces.Discrete(3))
    fit = fit_sequences(model, episodes, fitting(n_epochs=150, patience=0))
    assert fit.losses[-1] == pytest.approx(np.log(2), abs=0.02)
    scores, _ = action_scores(model, torch.from_numpy(episodes[0].observations).unsqueeze(1))
    assert torch.softmax(scores, -1).mean((0, 1)).tolist() == pytest.approx([0.5, 0.5, 0.0], abs=0.03)


def test_soft_labels_come_from_the_environment() -> None:
    env = Labeled([10, 5], silent=lambda step: step == 3)
    model = learner_in(env, soft={"weight": 0.2})
    a_round(model, env)
    whole = next(one for one in model.buffer.episodes if len(one) == 10)
    assert whole.actions.shape == (10, 3)
    assert whole.weights.tolist() == [1, 1, 1, 0, 1, 1, 1, 1, 1, 1]
    wanted = np.where(whole.observations[:, 0] > 0, 2, 1)
    known = whole.weights > 0
    assert (whole.actions.argmax(axis=1) == wanted)[known].all()
    assert (whole.actions[known].max(axis=1) > 0.8).all()


def test_soft_labels_are_of_listed_actions() -> None:
    env = Labeled([3])
    env.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    with refused(ConfigError, "agent-unsuitable at algorithm.soft"):
        learner_in(env, soft={})


# --- Rounds ----------------------------------------------------------------------------------------------------------


class Labeled(ToyVecEnv):
    """Shows two numbers; the expert's action is 2 where the first is above zero, else 1. Now and then it is silent."""

    def __init__(self, lengths: list[int], silent: Callable[[int], bool] = lambda step: False) -> None:
        super().__init__(len(lengths), spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(3))
        self.lengths, self.at, self.step_count = lengths, np.zeros(len(lengths), np.int64), 0
        self.silent = silent
        self.done_actions: list[np.ndarray] = []
        self.rng = np.random.default_rng(3)

    def _show(self) -> np.ndarray:
        self.obs = self.rng.uniform(-1, 1, (self.num_envs, 2)).astype(np.float32)
        return self.obs.copy()

    def labels(self) -> np.ndarray:
        wanted = np.where(self.obs[:, :1] > 0, 2.0, 1.0).astype(np.float32)
        return np.full_like(wanted, np.nan) if self.silent(self.step_count) else wanted

    def label_distances(self) -> np.ndarray:
        return np.abs(np.arange(3) - self.labels().astype(np.float64))

    def reset(self) -> np.ndarray:
        return self._show()

    def step_async(self, actions: np.ndarray) -> None:
        self.done_actions.append(actions.copy())

    def step_wait(self) -> Any:
        self.step_count += 1
        self.at += 1
        dones = self.at == self.lengths
        self.at[dones] = 0
        infos: list[dict[str, Any]] = [{"episode": {"r": 1.0, "l": 1, "t": 0.0}} if done else {} for done in dones]
        return self._show(), np.zeros(self.num_envs, np.float32), dones, infos


def learner_in(env: VecEnv, **settings: Any) -> Any:
    return learner("dagger", env, **{"n_steps": 10, "n_epochs": 5, "learning_rate": 0.05, **settings})


def a_round(model: Any, env: VecEnv) -> list[np.ndarray]:
    taken: Any = env
    taken.done_actions.clear()
    model.collect_rollouts(env, None, None, model.n_steps)
    model.train()
    return list(taken.done_actions)


def test_the_expert_acts_first_and_the_learner_afterward() -> None:
    env = Labeled([10, 5, 10, 2])
    model = learner_in(env, lstm={"hidden_size": 4, "critic": "none"})
    first = a_round(model, env)
    labeled = np.stack([one.actions for one in model.buffer.episodes if len(one) == 10])
    assert np.array_equal(np.stack(first)[:, [0, 2]].T, labeled)
    assert {int(action) for row in first for action in row} == {1, 2}
    for _ in range(8):
        last = a_round(model, env)
    episodes = model.buffer.episodes[-9:]
    agreement = np.mean(np.stack(last)[:, 0] == [2 if seen > 0 else 1 for seen in episodes[0].observations[:, 0]])
    assert agreement > 0.8
    assert model.num_timesteps == 9 * 40
    assert sum(map(len, model.buffer.episodes)) == model.buffer.decisions == 9 * 40


def test_episodes_may_be_longer_than_a_round() -> None:
    env = Labeled([25, 7])
    model = learner_in(env)
    a_round(model, env)
    assert [len(one) for one in model.buffer.episodes] == [7]
    assert [len(one) for one in model.open] == [10, 3]
    a_round(model, env)
    a_round(model, env)
    assert sorted(len(one) for one in model.buffer.episodes) == [7, 7, 7, 7, 25]
    whole = next(one for one in model.buffer.episodes if len(one) == 25)
    assert np.array_equal(whole.actions, np.where(whole.observations[:, 0] > 0, 2, 1))


def test_where_the_expert_is_silent_the_learner_acts_and_nothing_is_learned() -> None:
    env = Labeled([10, 10], silent=lambda step: step % 2 == 1)
    model = learner_in(env)
    a_round(model, env)
    for one in model.buffer.episodes:
        assert one.weights.tolist() == [1.0, 0.0] * 5


def test_beginnings_are_practiced_apart() -> None:
    env = Labeled([10, 10])
    plain, model = (learner_in(env, n_epochs=3, **more) for more in ({}, {"prefix": {"decisions": 4, "passes": 5}}))
    a_round(model, env)
    beginnings = model._prefixes()
    assert [len(one) for one in beginnings] == [4] * 10
    assert np.array_equal(beginnings[0].observations, model.buffer.episodes[0].observations[:4])
    assert plain._prefixes() == []
    # Two episodes are one batch, and so are all ten beginnings: two gradient steps in each of three passes.
    assert model._n_updates == 6


def test_only_whole_episodes_are_reported() -> None:
    rng = np.random.default_rng(2)
    episodes = [remembered(rng, 20) for _ in range(7)]
    learner = policy(True, spaces.Discrete(2), rate=0.0)
    twice = fitting(n_epochs=2, batch_size=3)
    alone = fit_sequences(learner, episodes, twice)
    both = fit_sequences(learner, episodes, twice, [one.first(5) for one in episodes])
    assert both.losses == pytest.approx(alone.losses)
    assert (alone.gradient_steps, both.gradient_steps) == (6, 12)


def test_experts_take_a_falling_share() -> None:
    env = Labeled([10] * 4)
    model = learner_in(env, beta=0.5, n_epochs=1)
    shares = []
    for _ in range(4):
        shares.append(model._beta())
        a_round(model, env)
    assert shares == [1.0, 0.5, 0.25, 0.125]


def test_perturbations_are_seen_and_labeled() -> None:
    env = Labeled([50] * 20)
    model = learner_in(env, perturbation={"every": 5, "decisions": 3}, n_steps=50, n_epochs=1)
    taken = np.stack(a_round(model, env)).T
    wanted = np.stack([one.actions for one in model.buffer.episodes])
    other = np.mean(taken != wanted)
    assert 0.1 < other < 0.4  # a third of the time at most is disturbed, and a random action is right now and then
    assert (taken == 0).any()
    assert not (wanted == 0).any()
