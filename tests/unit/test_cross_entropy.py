"""The cross-entropy method: groups, elites, imitation that fades, and its state in checkpoints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import ValidationError

from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.errors import ConfigError
from ccgym.training.algorithms.config import Imitation
from ccgym.training.algorithms.cross_entropy import CrossEntropyLearner, _cross_entropy, choose_elites
from tests.refusals import refused
from tests.toy_env import ToyVecEnv
from tests.trainings import learner
from tests.unit.test_training_config import read_algorithm

torch.set_num_threads(1)

# --- Elites ----------------------------------------------------------------------------------------------------------


def test_elites_are_the_best_of_their_group() -> None:
    # Percentile 70 of 1, 2, 3, 4 is 3.1; all are alike in the second group; of 0, 1, 5, 5 it is 5.
    returns = np.array([1.0, 4.0, 3.0, 2.0, 90.0, 90.0, 90.0, 90.0, 5.0, 1.0, 5.0, 0.0])
    assert choose_elites(returns, 4, 70).tolist() == [1, 8, 10]
    # All twelve in one group: the rich link's episodes only, whatever was done there.
    assert choose_elites(returns, 12, 70).tolist() == [4, 5, 6, 7]
    assert choose_elites(returns, 4, 0).tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert choose_elites(np.full(8, 3.0), 4, 70).tolist() == []


def test_imitation_fades() -> None:
    imitation = Imitation(weight=2.0, decay=0.5, every=10, min_weight=0.1)
    wanted = {0: 2.0, 9: 2.0, 10: 1.0, 19: 1.0, 20: 0.5, 40: 0.125, 49: 0.125, 50: 0.0, 1000: 0.0}
    assert {update: imitation.at(update) for update in wanted} == wanted


def test_what_is_not_known_costs_nothing() -> None:
    logarithms = torch.log_softmax(torch.tensor([[[2.0, 0.0]], [[0.0, 1.0]], [[5.0, 5.0]]]), -1)
    loss = _cross_entropy(logarithms, torch.tensor([[0], [0], [-1]]))
    assert float(loss) == pytest.approx((np.log(1 + np.exp(-2)) + np.log(1 + np.exp(1))) / 2, rel=1e-6)
    assert float(_cross_entropy(logarithms, torch.full((3, 1), -1))) == 0.0


def test_settings_are_checked() -> None:
    with refused(ValidationError, "not-divisible"):
        read_algorithm({"name": "cross_entropy", "n_envs": 20, "group_size": 8})
    env = SB3LinkVecEnv(4, "link", episode_steps=5)
    with refused(ConfigError, "agent-unsuitable at agent.action.map"):
        CrossEntropyLearner(read_algorithm({"name": "cross_entropy", "n_envs": 4, "group_size": 2}), env, "cpu")


# --- Groups ----------------------------------------------------------------------------------------------------------


def test_a_group_shares_path_and_seed() -> None:
    inner = SB3LinkVecEnv(12, "eagle", episode_steps=6)
    model = learner("cross_entropy", inner, n_steps=6, group_size=4)
    seen = []
    for _ in range(2):
        model._begin(model.env)
        episodes = inner._batch.episodes
        seen.append([(one.seed, json.dumps(dict(one.path))) for one in episodes if one is not None])
        groups = [seen[-1][first : first + 4] for first in (0, 4, 8)]
        assert all(len(set(group)) == 1 for group in groups)
        assert len({group[0][0] for group in groups}) == 3
    assert not set(seen[0]) & set(seen[1])
    # The same decisions come to the same: what differs within a group was done by the policy.
    inner.step_async(np.full(12, 2))
    observations, rewards, _, _ = inner.step_wait()
    assert all(len(set(rewards[first : first + 4].tolist())) == 1 for first in (0, 4, 8))
    assert all(np.array_equal(observations[first], observations[first + 3]) for first in (0, 4, 8))


# --- Learning --------------------------------------------------------------------------------------------------------


class Corridor(ToyVecEnv):
    """The reward is 1 where the action is what was shown first in the episode, and ``offset`` of a group beside. The
    expert always says 2, which is wrong unless 2 was shown, and is silent in every other decision."""

    def __init__(self, count: int, length: int = 8, offset: float = 0.0) -> None:
        super().__init__(count, spaces.Box(-1.0, 1.0, (4,), np.float32), spaces.Discrete(3))
        self.length, self.offset, self.step_count = length, offset, 0
        self.asked = 0
        self.shown = np.zeros(count, np.int64)

    def _show(self) -> np.ndarray:
        seen = np.zeros((self.num_envs, 4), np.float32)
        if self.step_count == 0:
            seen[np.arange(self.num_envs), self.shown] = 1.0
        return seen

    def labels(self) -> np.ndarray:
        self.asked += 1
        return np.full((self.num_envs, 1), np.nan if self.step_count % 2 else 2.0, np.float32)

    def reset(self) -> np.ndarray:
        self.shown = np.array([int(seed or 0) % 3 for seed in self._seeds])
        self.step_count = 0
        return self._show()

    def step_wait(self) -> Any:
        rewards = (self.actions == self.shown) + self.offset * self.shown
        self.step_count += 1
        dones = np.full(self.num_envs, self.step_count == self.length)
        if dones[0]:
            self.step_count = 0
        infos: list[dict[str, Any]] = [{"episode": {"r": 1.0, "l": 1, "t": 0.0}} if done else {} for done in dones]
        return self._show(), rewards.astype(np.float32), dones, infos


QUICK: dict[str, Any] = {
    "n_steps": 8,
    "group_size": 8,
    "learning_rate": 0.02,
    "lstm": {"hidden_size": 8, "critic": "none"},
}


def updates(model: Any, count: int) -> None:
    for _ in range(count):
        model.collect_rollouts(model.env, None, None, model.n_steps)
        model.train()


def mean_return(model: Any) -> float:
    """Of stochastic episodes, without the links' offset."""
    env, total = model.env, np.zeros(model.env.num_envs)
    seen, starts = model._begin(env), np.ones(env.num_envs, dtype=bool)
    for _ in range(env.length):
        actions = model._draw(seen, starts)
        total += actions == env.shown
        seen, _, starts, _ = env.step(actions)
    return float(total.mean())


def test_a_low_temperature_takes_the_most_likely_action() -> None:
    env = Corridor(64)
    cold, warm = (
        learner("cross_entropy", env, **QUICK, temperature=temperature) for temperature in (1e-8, {"linear": [1e4, 1]})
    )
    seen, starts = cold._begin(env), np.ones(64, dtype=bool)
    assert np.array_equal(cold._draw(seen, starts), cold.actor.act(seen, starts))
    shares = np.bincount(np.concatenate([warm._draw(seen, starts) for _ in range(50)]), minlength=3) / 3200
    assert shares == pytest.approx(np.full(3, 1 / 3), abs=0.04)


def test_it_learns_though_links_differ_more_than_actions() -> None:
    env = Corridor(64, offset=100.0)
    model = learner("cross_entropy", env, **QUICK)
    before = mean_return(model)
    updates(model, 40)
    assert before < 4.5
    assert mean_return(model) > 7
    assert env.asked == 0
    assert model.num_timesteps == 40 * 8 * 64
    assert model.collected["elite_reward"] > 7


def test_the_expert_is_imitated_at_first_and_left_behind() -> None:
    env = Corridor(64)
    model = learner("cross_entropy", env, **QUICK, imitation={"weight": 2, "decay": 0.1, "every": 5, "min_weight": 0.2})
    updates(model, 5)
    seen = model._begin(env)
    actions = model.actor.act(seen, np.ones(64, dtype=bool))
    assert np.mean(actions == 2) > 0.9
    updates(model, 60)
    assert env.asked == 10 * 8  # from the tenth update on it is not asked
    assert mean_return(model) > 6
