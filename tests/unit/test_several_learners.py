"""Several learners on one path in training: their samples, advantages, probabilities, evaluations and copies."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import VecNormalize

from ccgym import _core
from ccgym.envs import LinkEnv, parallel_env
from ccgym.envs.episode import EarlierSelves, draw_episode
from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import jain
from ccgym.errors import ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import evaluate
from ccgym.training.gaussian_policy import GaussianPolicy
from ccgym.training.model import weights_hash
from ccgym.training.normalizer import normalized_rewards
from ccgym.training.ppo import advantages
from ccgym.training.training_env import PastPolicies
from tests.refusals import refused
from tests.unit.test_native_ppo import begun, collect

LEARNERS = "environment.learners=[{}, {extra_rtt: 150ms, start: {uniform: [0s, 4s]}}, {start: 1s, probability: 0.5}]"


def config(*changes: str) -> TrainConfig:
    return TrainConfig.load(
        "aurora",
        ["algorithm.n_envs=4", "algorithm.n_steps=40", "algorithm.batch_size=80", "algorithm.n_epochs=1",
         "environment.episode.steps=25", "evaluation.episodes=5", LEARNERS, *changes],
    )  # fmt: skip


def train_settings(*changes: str) -> Settings:
    made = config(*changes)
    return Settings.of(made.environment, made.agent)


def learner(*changes: str) -> tuple[Any, Any]:
    """A learner of small rollouts, 4 paths × 3 learners × 40 samples, its episodes begun."""
    return begun(config(*changes))


# --- Samples ----------------------------------------------------------------------------------------------------------


MEAN, DEVIATION = 0.5, 3.0


def constant_actor(inputs: int) -> _core.Actor:
    """A policy whose mean is the same everywhere, so that what it does with noise is known to the bit."""
    layer = np.zeros((1, inputs), np.float32), np.array([MEAN], np.float32)
    return _core.Actor(
        [layer], "tanh", np.array([DEVIATION], np.float32), *(np.array([b], np.float32) for b in (-4, 4))
    )


def stepwise(env: SB3LinkVecEnv, noises: list[Any], samples: int) -> list[list[tuple[int, Any, float, float]]]:
    """The samples of a path, step by step: learner, what was seen, action, reward; one list per rollout."""
    batch, rollouts = env._batch, []
    seen: dict[int, tuple[Any, float]] = {}
    for noise in noises:
        taken: list[tuple[int, Any, float, float]] = []
        rest = iter(noise)
        while len(taken) < samples:
            (row,) = np.flatnonzero(batch.due).tolist()
            drawn = np.float32(MEAN) + np.float32(DEVIATION) * next(rest)
            batch.actions[row] = np.clip(drawn, -4, 4)
            seen[row] = batch.obs[row].copy(), float(drawn)
            over = batch.step()
            closed = np.flatnonzero(batch.closed).tolist()
            for row in sorted(closed, key=lambda row: (not batch.due[row], row)):
                if len(taken) < samples:
                    taken.append((row, *seen[row], float(np.float32(batch.reward[row]))))
            if over:
                env._begin(0)
        rollouts.append(taken)
    return rollouts


@settings(max_examples=12, deadline=None)
@given(samples=st.integers(3, 60), steps=st.integers(2, 30), seed=st.integers(0, 2**31), threads=st.integers(1, 2))
def test_every_interval_that_closes_is_one_sample(samples: int, steps: int, seed: int, threads: int) -> None:
    """In the order in which they close, however decisions are divided into rollouts.

    Of the intervals that the end of an episode cuts, those are for which there is room.
    """
    made = train_settings(f"environment.episode.steps={steps}")
    env = SB3LinkVecEnv(4, made, threads=threads)
    env.seed(seed % 1000)
    env.reset()
    noises = np.random.default_rng(seed).standard_normal((3, 4, samples + 2, 1), dtype=np.float32)
    rollouts = [env.rollout(constant_actor(30), noise) for noise in noises]
    for index in range(4):
        alone = SB3LinkVecEnv(1, made)
        alone.seed(seed % 1000 + index)
        alone.reset()
        for rollout, expected in zip(rollouts, stepwise(alone, [*noises[:, index, :, 0]], samples), strict=True):
            assert rollout.learners[index].tolist() == [one[0] for one in expected]
            np.testing.assert_array_equal(rollout.observations[index], [one[1] for one in expected])
            assert rollout.actions[index, :, 0].tolist() == [one[2] for one in expected]
            assert rollout.rewards[index].tolist() == [one[3] for one in expected]
        # Each end is that of another learner or of another sample.
        ends = [(end.index, end.step) for rollout in rollouts[:1] for end in rollout.ends if end.step >= 0]
        assert len(set(ends)) == len(ends)


def test_a_path_with_fewer_learners_is_full_of_their_samples() -> None:
    env = SB3LinkVecEnv(8, train_settings("environment.episode.steps=1000"))
    env.seed(1)
    env.reset()
    model, _ = learner()
    plain = GaussianPolicy.of(model.policy)
    noise = np.random.default_rng(1).standard_normal((8, 92, 1), dtype=np.float32)
    rollout = env.rollout(plain.actor(), noise)
    present = [episode.learners for episode in env._batch.episodes if episode is not None]
    assert set(present) == {2, 3}
    for index, learners in enumerate(present):
        assert set(rollout.learners[index]) == set(range(learners))
    assert (rollout.taken == 90).all()
    open_ones = rollout.open.reshape(8, 3).sum(axis=1)
    assert (open_ones == np.array(present) - 1).all()
    assert (rollout.decided == rollout.taken + open_ones.astype(np.uint64)).all()


# --- Advantages -------------------------------------------------------------------------------------------------------


def test_advantages_of_one_learner_are_those_of_sb3_to_the_bit() -> None:
    rng = np.random.default_rng(1)
    rewards, values = (rng.normal(size=(5, 40)).astype(np.float32) for _ in range(2))
    dones, last = rng.random((5, 40)) < 0.1, rng.normal(size=(5, 1)).astype(np.float32)
    env = SB3LinkVecEnv(5, "aurora")
    buffer = RolloutBuffer(40, env.observation_space, env.action_space, "cpu", 0.93, 0.97, n_envs=5)
    buffer.rewards[:], buffer.values[:] = rewards.T, values.T
    buffer.episode_starts[1:] = dones.T[:-1]
    buffer.compute_returns_and_advantage(torch.from_numpy(last), dones[:, -1])
    nobody_else = np.zeros((5, 40), dtype=np.int64)
    found = advantages(rewards, values, dones, nobody_else, last, gamma=0.97, gae_lambda=0.93)
    np.testing.assert_array_equal(found, buffer.advantages.T)
    np.testing.assert_array_equal(found.T + values.T, buffer.returns)


@given(seed=st.integers(0, 2**31), learners=st.integers(1, 4))
def test_advantages_never_cross_learners_or_episodes(seed: int, learners: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (3, 30)
    rewards, values = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    whose, dones = rng.integers(learners, size=shape), rng.random(shape) < 0.15
    last = rng.normal(size=(3, learners)).astype(np.float32)
    found = advantages(rewards, values, dones, whose, last, gamma=0.9, gae_lambda=0.8)
    for path in range(3):
        for who in range(learners):
            # By the definition, forward, in Python's own numbers, each segment for itself.
            places = np.flatnonzero(whose[path] == who)
            following = [*values[path, places[1:]], last[path, who]]
            for at, place in enumerate(places):
                expected, weight = 0.0, 1.0
                for further, now in enumerate(places[at:], at):
                    over = bool(dones[path, now])
                    after = 0.0 if over else float(following[further])
                    expected += weight * (float(rewards[path, now]) + 0.9 * after - float(values[path, now]))
                    weight *= 0.9 * 0.8
                    if over:
                        break
                assert found[path, place] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_rewards_are_normalized_by_each_learners_own_sum() -> None:
    rng = np.random.default_rng(1)
    rewards, whose = rng.normal(size=(2, 50)).astype(np.float32), rng.integers(3, size=(2, 50))
    dones = rng.random((2, 50)) < 0.1
    normalizer = VecNormalize(SB3LinkVecEnv(2, train_settings()), norm_obs=False, gamma=0.9)
    normalized_rewards(normalizer, rewards, dones, whose)
    for path in range(2):
        for who in range(3):
            total = 0.0
            for place in np.flatnonzero(whose[path] == who):
                total = total * 0.9 + float(rewards[path, place])
                total *= not dones[path, place]
            assert normalizer.returns[path * 3 + who] == pytest.approx(total)
    assert normalizer.ret_rms.count == pytest.approx(100, abs=0.01)


# --- PPO --------------------------------------------------------------------------------------------------------------


def test_a_decision_keeps_the_probability_that_it_was_taken_with() -> None:
    model, env = learner("environment.episode.steps=1000", "algorithm.log_std_init=1")
    collect(model, env)
    rows = np.flatnonzero(model._open)
    assert len(rows) >= 4
    before = model._open_log_probs.copy()
    observations, actions = torch.from_numpy(model._last_obs), torch.from_numpy(env.unwrapped._batch._drawn)
    _, expected, _ = model.policy.evaluate_actions(observations, actions)
    np.testing.assert_allclose(before[rows], expected.detach().numpy()[rows], rtol=1e-4, atol=1e-4)
    for group in model.policy.optimizer.param_groups:
        group["lr"] = 0.3
    model.lr_schedule = lambda _: 0.3
    model.train()
    _, later, _ = model.policy.evaluate_actions(observations, actions)
    assert (later.detach().numpy()[rows] != before[rows]).all(), "the policy is another one now"
    buffer = collect(model, env)
    # The first sample of each of these learners is that decision.
    kept = buffer.log_probs.reshape(40, 4, 3).swapaxes(0, 1).reshape(4, 120)
    seen = buffer.observations.reshape(40, 4, 3, -1).swapaxes(0, 1).reshape(4, 120, -1)
    for row in rows:
        place = np.flatnonzero((seen[row // 3] == observations[row].numpy()).all(axis=1))[0]
        assert kept[row // 3, place] == before[row]


def test_the_gradient_is_that_of_the_definition() -> None:
    """One batch of all samples: PPO's loss as the paper writes it, by torch's own differentiation."""
    changes = "algorithm.batch_size=160", "algorithm.normalize.reward=false", "algorithm.gradient_threads=1"
    model, env = learner(*changes, "algorithm.max_grad_norm=1000000")
    buffer = collect(model, env)
    flat = {
        name: torch.from_numpy(buffer.swap_and_flatten(getattr(buffer, name).copy()))
        for name in ("observations", "actions", "log_probs", "returns", "advantages")
    }
    policy = model.policy
    values, log_probs, _ = policy.evaluate_actions(flat["observations"], flat["actions"])
    ratio = torch.exp(log_probs - flat["log_probs"].flatten())
    gained = flat["advantages"].flatten()
    gained = (gained - gained.mean()) / (gained.std() + 1e-8)
    surrogate = torch.minimum(gained * ratio, gained * ratio.clamp(0.8, 1.2)).mean()
    loss = -surrogate + model.vf_coef * ((values.flatten() - flat["returns"].flatten()) ** 2).mean()
    policy.optimizer.zero_grad()
    loss.backward()
    expected = {name: one.grad.clone() for name, one in policy.named_parameters() if one.grad is not None}
    model.batch_size = len(gained)
    model.gradient_threads = 2
    steps: list[dict[str, torch.Tensor]] = []
    policy.optimizer.step = lambda: steps.append({n: p.grad.clone() for n, p in policy.named_parameters()})
    model.train()
    assert len(steps) == 1
    for name, gradient in expected.items():
        torch.testing.assert_close(steps[0][name], gradient, rtol=1e-3, atol=1e-5, msg=name)


def test_threads_change_nothing_and_a_copy_goes_on_as_the_original() -> None:
    hashes = set()
    for threads in (1, 2):
        model, env = learner(f"training.simulator_threads={threads}")
        for _ in range(2):
            collect(model, env)
            model.train()
        hashes.add(weights_hash(model))
    assert len(hashes) == 1
    state = env.venv.capture()
    decisions = [one["decisions"] for one in state["environments"]["episodes"]]
    assert {len(one) for one in decisions} == {2, 3}
    _, other = learner()
    np.testing.assert_array_equal(other.venv.restore(state), model._last_obs)
    plain = GaussianPolicy.of(model.policy)
    noise = np.random.default_rng(5).standard_normal((4, 122, 1), dtype=np.float32)
    ours, theirs = (one.rollout(plain.actor(), noise) for one in (env.venv, other.venv))
    for name in ("learners", "observations", "actions", "rewards", "last_observations", "last_actions", "open"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    assert [(end.index, end.step, end.info["episode"]["r"]) for end in ours.ends] == [
        (end.index, end.step, end.info["episode"]["r"]) for end in theirs.ends
    ]


@pytest.mark.parametrize("critic", ["same", "privileged"])
def test_what_has_only_begun_is_restored_as_well(critic: str) -> None:
    changes = f"algorithm.critic={critic}", "algorithm.normalize.observation=false"
    model, env = learner(*changes)
    state = env.venv.capture()
    _, other = learner(*changes)
    other.venv.reset()
    np.testing.assert_array_equal(other.venv.restore(state), model._last_obs)


# --- Evaluation -------------------------------------------------------------------------------------------------------


def test_an_evaluation_is_the_mean_over_learners_and_has_jains_index() -> None:
    env = Environments(config()).evaluation()
    found = evaluate(env, lambda observations, starts: np.zeros((15, 1), np.float32), 7)
    assert found.rewards.shape == found.lengths.shape == (5,)
    assert (found.lengths > 25).all(), "decisions of all learners, of whom one takes 25"
    assert 1 / 3 <= found.metrics["jain"] <= 1
    assert sum(found.terms.values()) == pytest.approx(found.mean_reward, rel=1e-6)
    alone = Environments(config("environment.learners=1")).evaluation()
    assert "jain" not in evaluate(alone, lambda observations, starts: np.zeros((5, 1), np.float32), 7).metrics


@pytest.mark.parametrize(
    ("shares", "index"),
    [([1.0] * 3, 1), ([3.0, 1.0], 0.8), ([1.0, 0.0], 0.5), ([1.0], None), ([1.0, None], None), ([0.0, 0.0], None)],
)
def test_jains_index_by_hand(shares: list[float | None], index: float | None) -> None:
    assert jain(shares) == (None if index is None else pytest.approx(index))


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("environment.learners=0", "wrong-type at learners"),
        ("environment.learners=[]", "wrong-type at learners"),
        ("environment.learners=[{probability: 0.5}]", "out-of-range at learners[0]"),
        ("environment.learners=[{}, {extra_rrt: 1ms}]", "unknown-key at learners[1]: extra_rrt"),
        ("environment.learners=many", "wrong-type at learners"),
        ("environment.learners=[{}, {stop: 5s}]", "several-learners at environment.learners[1].stop"),
        ("algorithm={name: a2c}", "several-learners at environment.learners"),
        ("algorithm.normalize.observation=true", "several-learners at environment.learners"),
        ("environment.earlier_selves={every: 0}", "out-of-range at environment.earlier_selves.every"),
        ("environment.earlier_selves={flows: []}", "wrong-count at environment.earlier_selves.flows"),
        (
            "environment={backend: emulated, paths: aurora, earlier_selves: {every: 1000}}",
            "backend-unsuitable at environment.earlier_selves",
        ),
    ],
)
def test_mistakes_are_explained(change: str, what: str) -> None:
    given = [] if "environment.learners=" in change else [LEARNERS]
    with refused(ConfigError, what):
        TrainConfig.load("aurora", [*given, "algorithm={n_envs: 1, batch_size: 100, n_steps: 3200}", change])


def test_other_environments_have_one_learner_or_say_how() -> None:
    with refused(ConfigError, "several-learners at environment.learners"):
        LinkEnv(train_settings())
    env = parallel_env(config=train_settings(), agents=[{}, {"start": "1s"}])
    assert env.possible_agents == ["flow_0", "flow_1"]
    with refused(ConfigError, "out-of-range at agents[2]"):
        parallel_env(config=train_settings())
    assert len(parallel_env(config="link", set={"environment.learners": 3}).possible_agents) == 3
    with refused(ConfigError, "options-conflict at set['environment.learners']: environment: learners"):
        parallel_env(config="link", set={"environment.learners": [{}, {}], "environment.learner": {"start": "1s"}})


def test_what_came_before_the_first_decision_is_no_reward() -> None:
    env = parallel_env([{}, {"start": "1s"}], path={"rate": "12mbps", "rtt": "40ms", "queue": "40p"}, duration="2s")
    _, infos = env.reset(seed=1)
    begun = False
    while env.agents:
        due = [agent for agent in env.agents if infos[agent]["due"]]
        _, rewards, _, _, infos = env.step({agent: np.zeros(1, np.float32) for agent in due})
        if "flow_1" in due:
            begun = True
        if not begun:
            assert rewards["flow_1"] == 0
    assert begun
    steps = infos["flow_1"]["summary"]["steps"]
    assert 10 < steps < infos["flow_0"]["summary"]["steps"]
    assert math.isfinite(infos["flow_1"]["summary"]["throughput_mbps"])


# --- Earlier selves ---------------------------------------------------------------------------------------------------


def test_earlier_policies_stay_as_long_as_they_are_drawn_or_in_use() -> None:
    def kept(step: int) -> Any:
        return SimpleNamespace(step=step, policy=SimpleNamespace(key=f"p-{step}"))

    earlier = PastPolicies(10, 2)
    assert (earlier.drawn, earlier.is_due(9), earlier.is_due(12)) == ([], False, True)
    for step in (10, 20, 30, 40):
        earlier.add(kept(step), lambda key: key == "p-10")
    assert [step for step in (40, 49, 50, 73) if earlier.is_due(step)] == [50, 73]
    assert earlier.drawn == ["p-30", "p-40"]
    assert [*earlier.policies] == ["p-10", "p-30", "p-40"]
    earlier.add(kept(50), lambda key: False)
    assert [*earlier.policies] == earlier.drawn == ["p-40", "p-50"]


def test_flows_of_earlier_selves_draw_their_policy_in_each_episode() -> None:
    made = train_settings("environment.earlier_selves={flows: [{}, {start: 2s, probability: 0.5}]}")
    rng = np.random.default_rng(1)

    def drawn(*policies: str) -> list[tuple[str, int]]:
        episode = draw_episode(made.source, rng, made.learners, earlier=EarlierSelves(made.earlier_selves, policies))
        flows = json.loads(episode.spec)["flows"]
        assert all(("policy" in flow["params"]) == (place >= episode.learners) for place, flow in enumerate(flows))
        return [(flow["params"]["policy"], flow["start"]) for flow in flows[episode.learners :]]

    assert drawn() == []
    found = [drawn("a", "b") for _ in range(40)]
    assert {name for one in found for name, _ in one} == {"a", "b"}
    assert {tuple(start for _, start in one) for one in found} == {(0,), (0, 2_000_000_000)}
