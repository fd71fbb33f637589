"""Experts: how users write them, and what the environments hand out of what they say."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from ccgym.config.agent import read_agent
from ccgym.envs import SB3LinkVecEnv
from ccgym.envs.real_batch import RealBatch
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.errors import ConfigError
from ccgym.schemes.policies import find
from ccgym.training.config import TrainConfig
from tests.refusals import refused

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "100p"}
INDIGO: dict[str, Any] = {
    "name": "indigo-like",
    "clock": {"kind": "fixed", "interval": "10ms", "on_ack": True},
    "observation": {"features": [{"signal": "cwnd", "clip": [0, 1000]}]},
    "action": {"map": {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]}, "target": "cwnd"},
    "startup": "10p",
}
FACTORS = [2.89, 1.25, 1.05, 1.0, 0.95, 0.75, 1 / 2.89]
EAGLE: dict[str, Any] = {
    "name": "eagle-like",
    "clock": {"kind": "rtt", "multiple": 1, "floor": "10ms", "no_ack": "100ms"},
    "observation": {"features": [{"signal": "pacing_rate", "clip": [0, 1e9]}]},
    "action": {
        "map": {"kind": "discrete", "operations": ["*2.89", "*1.25", "*1.05", "*1", "*0.95", "*0.75", "/2.89"]},
        "target": "rate",
        "limits": {"packets_per_min_rtt": 2},
        "cwnd_cap": {"bdp": 2, "packets": 4, "estimate": "max(delivery_rate, 10)"},
    },
    "startup": {"kind": "packets_per_rtt", "packets": 10},
    "min_rtt_window": 100,
}


def environment(expert: Any, agent: dict[str, Any] = INDIGO, count: int = 2, **arguments: Any) -> SB3LinkVecEnv:
    made = SB3LinkVecEnv(count, path=PATH, agent={**agent, "expert": expert}, **{"duration": "5s", **arguments})
    made.seed(1)
    return made


def test_a_name_is_enough_and_units_are_understood() -> None:
    assert "expert" not in read_agent(INDIGO).native()
    native = read_agent({**INDIGO, "expert": "best_window"}).native()["expert"]
    assert native == {"kind": "best_window", "queueing": 5_000_000}
    written = {"kind": "fluid_bdp", "queue_fraction": "50%", "samples": 3, "nearest": "log"}
    assert read_agent({**INDIGO, "expert": written}).native()["expert"] == {**written, "queue_fraction": 0.5}
    schedule = read_agent({**INDIGO, "expert": "gain_schedule"})
    assert schedule.native()["expert"]["cycle"] == [1.25, 0.75, *[1.0] * 6]
    again = read_agent(schedule.model_dump())
    assert again == schedule
    assert read_agent(INDIGO).describe()["expert"] is None
    assert read_agent(EAGLE).native()["min_rtt_window"] == 100


@pytest.mark.parametrize(
    ("expert", "what"),
    [
        ("best_windw", "unknown-kind at expert: kind"),
        ({"queueing": "5ms"}, "key-missing at expert"),
        ({"kind": "best_window", "queue": "5ms"}, "unknown-key at expert.queue"),
        ({"kind": "gain_schedule", "cycle": []}, "wrong-count at expert.cycle"),
        ({"kind": "policy", "policy": "indgo"}, "unknown-policy at agent.expert.policy"),
        (
            {"kind": "policy", "policy": "not/there.onnx"},
            "policy-unreadable at expert.policy: not/there.onnx",
        ),
    ],
)
def test_mistakes_say_where(expert: Any, what: str) -> None:
    with refused(ConfigError, what):
        environment(expert, count=1)


def test_labels_are_of_the_observations_last_returned() -> None:
    env = environment("best_window", episode_steps=200)
    observations = env.reset()
    ended = 0
    for _ in range(700):
        labels = env.labels()
        assert labels.shape == (2, 1)
        assert labels.dtype == np.float32
        window = observations[:, 0]
        results = np.stack([window // 2, window - 10, window, window + 10, window * 2], axis=1)
        # 12 Mbit/s · (40 + 5 ms) are 45 packets. Where two are as near, either is right.
        distances = np.abs(results - 45)
        chosen = distances[[0, 1], labels[:, 0].astype(int)]
        assert (chosen <= distances.min(axis=1) + 0.5).all(), (window, labels)
        observations, _, dones, _ = env.step(labels[:, 0].astype(int))
        ended += int(dones.sum())
    assert ended == 6  # After an episode's end, labels are of the next one's beginning.


def test_labels_are_copies_and_of_no_effect() -> None:
    hashes = []
    for expert, ask in ((None, False), ("best_window", True), ("gain_schedule", True)):
        env = environment(expert, count=1)
        env.reset()
        rng = np.random.default_rng(0)
        for _ in range(200):
            if ask:
                first = env.labels()
                before = first.copy()
                assert (env.labels() == first).all()
            env.step(rng.integers(0, 5, 1))
            if ask:
                assert (first == before).all()
        hashes.append(env.get_attr("trajectory_hash"))
    assert hashes[0] == hashes[1] == hashes[2]


def test_targets_are_in_the_unit_of_what_is_steered() -> None:
    for agent, target in ((INDIGO, 45.0), (EAGLE, 12e6 * 45 / 40)):
        batch = SimulatedBatch(Settings.read(path=PATH, agent={**agent, "expert": "best_window"}, duration="5s"), 1)
        batch.begin(0, np.random.default_rng(1))
        batch.actions[:] = 2 if agent is INDIGO else 3
        for _ in range(5):
            batch.step()
        actions, targets = batch.refresh_labels()
        assert actions.shape == (1, 1)
        assert targets.shape == (1,)
        assert targets[0] == pytest.approx(target, rel=0.03)


def test_a_path_has_its_best_window() -> None:
    spec = Settings.read(path=PATH, agent={**INDIGO, "expert": "best_window"}, duration="5s")
    batch = SimulatedBatch(spec, 1)
    rng = np.random.default_rng(1)
    batch.begin(0, rng)
    episode = batch.episodes[0]
    told = copy.copy(episode)
    object.__setattr__(told, "spec", episode.spec.replace('"params": {}', '"params": {"expert_window": 33}'))
    batch._begin(0, told)
    assert batch.refresh_labels()[1][0] == 33.0


def test_eagles_teacher_is_truth_free_and_fills_the_path() -> None:
    env = environment("gain_schedule", EAGLE, count=1, duration="20s")
    rate = env.reset()[0, 0]
    summary = None
    seen = 0
    while summary is None:
        label = env.labels()[0, 0]
        if np.isnan(label):
            label = 3.0
        else:
            seen += 1
        observations, _, dones, infos = env.step(np.array([int(label)]))
        if not dones[0] and rate > 0 and observations[0, 0] > 0:
            # Each label is one of the factors on the rate in force, or the floor.
            assert min(abs(observations[0, 0] / rate - factor) for factor in FACTORS) < 0.01 or seen < 3
        rate = observations[0, 0]
        summary = infos[0].get("summary")
    assert seen > 300
    assert summary["throughput_mbps"] > 11
    assert summary["loss"] < 0.02


def test_where_there_are_no_labels_and_no_distances() -> None:
    env = environment(None, count=3, threads=2)
    env.reset()
    with refused(ConfigError, "no-expert at agent.expert"):
        env.labels()
    assert env.step(np.full(3, 2))[1].tolist() == [0.0, 0.0, 0.0], "rewards may have no terms"
    for expert in ("fluid_bdp", "gain_schedule"):
        agent = {**INDIGO, "expert": expert}
        batch = RealBatch(Settings.read(path=PATH, agent=agent, duration="5s", backend="emulated"), 1)
        with refused(ConfigError, "backend-unsuitable at agent.expert"):
            batch.refresh_labels()
        assert batch._deployed.agent.expert is None
        batch.close()
    env = environment(
        "best_window", {**INDIGO, "action": {"map": {"kind": "exponential", "base": 2.0}, "target": "cwnd"}}
    )
    env.reset()
    assert env.label_distances().shape == (2, 0)


# --- Distances, and policies that teach -------------------------------------------------------------------------------


def test_distances_are_least_where_the_label_is() -> None:
    env = environment({"kind": "fluid_bdp", "queue_fraction": 0.5})
    env.reset()
    seen = 0
    for _ in range(100):
        labels, distances = env.labels()[:, 0], env.label_distances()
        assert distances.shape == (2, 5)
        known = ~np.isnan(labels)
        assert (np.isnan(distances).all(axis=1) == ~known).all()
        for label, row in zip(labels[known].astype(int), distances[known], strict=True):
            assert row[label] == pytest.approx(row.min())
            # Halved, ten less, the same, ten more, doubled: in packets from the target.
            assert abs(row[3] - row[2]) <= 10 + 1e-9
            seen += 1
        env.step(np.where(known, np.nan_to_num(labels), 2).astype(int))
    assert seen > 100


def taught_by(policy: str, of: str = "indigo", **changes: Any) -> dict[str, Any]:
    agent = TrainConfig.load(of).agent.model_dump(mode="json", exclude_unset=True)
    return {**agent, "expert": {"kind": "policy", "policy": policy}, **changes}


@pytest.mark.parametrize("name", ["indigo", "muses_c3"])
def test_a_policy_teaches_what_it_would_do(name: str) -> None:
    """A learner with the policy's own agent sees what the policy would see, whether it follows the labels or not; each
    label is the policy's decision. One of the two begins with slow start, without decisions."""
    env = SB3LinkVecEnv(2, path=PATH, agent=taught_by(name, name), duration="5s")
    policy = find(name)
    assert policy is not None
    env.seed(1)
    rng = np.random.default_rng(1)
    observations, state, taken = env.reset(), None, []
    for _ in range(300):
        decided, state = policy.native.decide(observations, state)
        labels = env.labels()
        assert np.array_equal(labels, decided)
        taken += labels[:, 0].tolist()
        actions = np.where(rng.random(2) < 0.3, 2, labels[:, 0])  # which holds
        observations, *_ = env.step(actions.astype(int))
    assert len(set(taken)) > 2


def test_a_policy_teaches_other_actions() -> None:
    """Its window is the target: the nearest of what the learner can do."""
    action = {"map": {"kind": "discrete", "operations": ["/1.5", "+0", "*1.5"]}, "target": "cwnd"}
    observation = {"features": [{"signal": "cwnd", "clip": [0, 1000]}]}
    env = SB3LinkVecEnv(
        1, path=PATH, duration="8s", agent=taught_by("indigo", action=action, observation=observation, guard="none")
    )
    env.seed(1)
    env.reset()
    summary, seen = None, set()
    while summary is None:
        label = env.labels()[0, 0]
        seen.add(int(label))
        *_, infos = env.step(np.array([int(label)]))
        summary = infos[0].get("summary")
    assert seen == {0, 1, 2}
    assert summary["throughput_mbps"] > 9
