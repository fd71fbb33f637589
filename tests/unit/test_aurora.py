"""Aurora: the native core against a second reading of the published formulas; what the pretrained policy reaches."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ccgym._core")
gymnasium = pytest.importorskip("gymnasium")

import ccgym  # noqa: E402, F401 (registers the environments)
from agents import aurora  # noqa: E402
from ccgym.training.config import TrainConfig  # noqa: E402

PRETRAINED = Path(__file__).resolve().parents[2] / "agents" / "pretrained"


# --- The published formulas ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_core_computes_the_published_formulas(seed: int) -> None:
    env = gymnasium.make(aurora.PRESET, privileged=True)
    observation, info = env.reset(seed=seed)
    bits = 8 * aurora.PACKET_BYTES
    rate = info["privileged"]["pacing_rate_bps"] / bits
    reference = aurora.Reference()
    assert observation.tolist() == reference.observation() == list(aurora.EMPTY) * aurora.HISTORY
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, 2)  # up to a full queue in some episodes, down to the least rate in others
    steps, ended = 0, False
    while not ended:
        action = rng.normal(drift, 4, 1).astype(np.float32)
        observation, reward, _, ended, info = env.step(action)
        interval = info["interval"]
        rate = aurora.limited(aurora.next_rate(rate, float(action[0])))
        # The core paces by whole bits per second.
        assert interval["pacing_rate_bps"] / bits == pytest.approx(rate, rel=1e-6, abs=1 / bits)
        assert reward == pytest.approx(reference.digest(interval), rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(observation, reference.observation(), rtol=1e-6, atol=1e-7)
        steps += 1
    env.close()
    assert steps == 400


def test_the_largest_actions_double_and_halve_the_rate() -> None:
    env = gymnasium.make(aurora.PRESET)
    assert (env.action_space.low.tolist(), env.action_space.high.tolist()) == ([-40.0], [40.0])
    assert (aurora.next_rate(1.0, 40.0), aurora.next_rate(1.0, -40.0)) == (2.0, 0.5)
    env.reset(seed=1)
    rates = [env.step([a])[4]["interval"]["pacing_rate_bps"] for a in (0.0, 40.0, -40.0, 1e6)]
    assert rates == pytest.approx([rates[0], 2 * rates[0], rates[0], 2 * rates[0]], abs=4)
    env.close()


def test_the_environment_s_limits_are_the_published_ones() -> None:
    env = gymnasium.make(aurora.PRESET)
    low, high = env.observation_space.low[:3], env.observation_space.high[:3]
    assert list(zip(low.tolist(), high.tolist())) == [
        aurora.INFLATION_BOUNDS,
        aurora.RATIO_BOUNDS,
        aurora.SEND_BOUNDS,
    ]
    env.close()


# --- The pretrained policy -------------------------------------------------------------------------------------------


def test_the_card_is_of_the_configuration() -> None:
    config = TrainConfig.load(aurora.CONFIG)
    card = aurora.policy().card
    assert card.agent == config.deployment.applied_to(config.agent).native()
    assert card.agent["observation"] == config.agent.native()["observation"]
    trained = card.training["config"]
    for section in ("algorithm", "evaluation"):
        assert trained[section] == getattr(config, section).model_dump(mode="json")
    assert trained["training"]["steps"] == card.training["curve"][-1][0] == config.training.steps


def test_the_policy_is_close_to_the_oracle_and_better_than_bbr() -> None:
    pytest.importorskip("stable_baselines3")
    from ccgym.training.environments import Environments
    from ccgym.training.evaluation import evaluate
    from ccgym.training.streams import stream_seed

    config = TrainConfig.load(aurora.CONFIG, ["evaluation.episodes=16", "training.simulator_threads=1"])
    environments = Environments(config)
    fresh = stream_seed(config.evaluation.seed, "test")
    native = aurora.policy().native

    def decide(observations: Any, starts: Any) -> Any:
        actions, _ = native.decide(observations, None)
        return actions

    def idle(observations: Any, starts: Any) -> Any:
        return np.zeros(len(observations), dtype=np.int64)

    ours = evaluate(environments.evaluation(), decide, fresh).mean_reward
    oracle, bbr = (evaluate(environments.baseline(name), idle, fresh).mean_reward for name in ("oracle", "bbr"))
    assert ours > bbr
    assert ours >= 0.85 * oracle


# --- The record ------------------------------------------------------------------------------------------------------


def record() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((PRETRAINED / "aurora-seeds.json").read_text(encoding="utf-8"))
    return content


def test_most_seeds_reach_four_fifths_of_the_oracle_in_ten_minutes() -> None:
    times: dict[int, list[float]] = defaultdict(list)
    with (PRETRAINED / "aurora-curves.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            reached = float(row["fraction_of_oracle"]) >= 0.8
            times[int(row["seed"])] += [float(row["wall_s"])] if reached else []
    assert sorted(times) == list(aurora.SEEDS)
    assert sum(min(seen, default=np.inf) <= 600 for seen in times.values()) >= 4


def test_no_observation_brings_the_policy_to_the_bounds_of_its_action() -> None:
    """So deployed, it does the same as within the published bounds, ±1e12, that are none."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.load(PRETRAINED / "aurora.onnx").graph
    numbers = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    *_, hidden, last, shift, low, high, _ = graph.node
    assert [node.op_type for node in (hidden, last, shift, low, high)] == ["Tanh", "MatMul", "Add", "Max", "Min"]
    # What tanh gives is within ±1.
    largest = np.abs(numbers[last.input[1]]).sum() + np.abs(numbers[shift.input[1]]).sum()
    assert largest < 16
    _, bound = TrainConfig.load(aurora.CONFIG).agent.native()["action"]["bounds"]
    assert (numbers[low.input[1]], numbers[high.input[1]]) == (-bound, bound) == (-40, 40)


def test_the_record_is_of_the_pretrained_policy() -> None:
    content, card = record(), aurora.policy().card
    assert content["command"] == "ccgym record aurora --seeds 1,2,3,4,5"
    assert content["exported"] == {"seed": card.training["seed"], "onnx_sha256": card.onnx_sha256}
    assert hashlib.sha256((PRETRAINED / "aurora.onnx").read_bytes()).hexdigest() == card.onnx_sha256
    ranked = sorted(content["seeds"], key=lambda row: row["confirmed_reward"])
    assert ranked[2]["seed"] == card.training["seed"], "the median one"
    assert content["confirmation"]["episodes"] >= 256
    bbr = content["confirmation"]["fraction_of_oracle"]["bbr"]
    assert all(row["confirmed_fraction"] > bbr for row in content["seeds"])


def test_nothing_in_the_record_is_of_somebody_s_machine() -> None:
    for name in ("aurora.json", "aurora-seeds.json", "aurora-curves.csv"):
        text = (PRETRAINED / name).read_text(encoding="utf-8")
        assert not [place for place in ("/tmp", "/home", "/root", "/work", "/Users") if place in text]
