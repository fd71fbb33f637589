"""What the pretrained policies do: on the calibrated paths, on busy hosts, on fresh draws of their training paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

from ccgym.config.distributions import presets
from ccgym.config.path import NetworkPath
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.simulate import simulate
from ccgym.schemes.policies import find, pretrained
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import evaluate, measure_scheme
from ccgym.training.streams import stream_seed

CALIBRATED = tuple(NetworkPath.named(name).name or name for name in presets()["indigo_calibrated"]["names"])
TWENTY = tuple(range(1, 21))


@dataclass(frozen=True)
class Runs:
    """Means over whole runs of 30 s."""

    throughput_mbps: float
    delay_p95_ms: float
    loss: float
    utilization: float
    min_utilization: float


@cache
def measured(scheme: str, path: str, seeds: tuple[int, ...] = (1, 2, 3)) -> Runs:
    """A scheme alone on a named path."""
    runs = [simulate(NetworkPath.named(path), [scheme], "30s", seed, Record(series=0)) for seed in seeds]
    used = [run.total.throughput_mbps / (run.link.capacity_mbps or np.inf) for run in runs]
    return Runs(
        throughput_mbps=float(np.mean([run.total.throughput_mbps for run in runs])),
        delay_p95_ms=float(np.mean([run.total.delay_p95_ms or np.inf for run in runs])),
        loss=float(np.mean([1.0 if run.total.loss is None else run.total.loss for run in runs])),
        utilization=float(np.mean(used)),
        min_utilization=min(used),
    )


@pytest.mark.parametrize("name", ["eagle", "eagle_v1", "eagle_v2", "falcon", "genet", "indigo", "orca"])
def test_no_run_collapses(name: str) -> None:
    assert measured(name, "77.72mbps", TWENTY).min_utilization > 0.5


def test_eagle_on_the_path_of_the_published_report() -> None:
    runs = measured("eagle", "77.72mbps", TWENTY)
    assert runs.throughput_mbps >= 72
    assert runs.delay_p95_ms <= 56
    assert runs.loss <= 0.01


def test_falcon_on_the_path_of_the_published_report() -> None:
    runs = measured("falcon", "77.72mbps", TWENTY)
    assert runs.throughput_mbps >= 75
    assert runs.delay_p95_ms <= 54
    assert runs.loss <= 0.005


def test_indigo_on_the_path_of_the_published_report() -> None:
    runs = measured("indigo", "77.72mbps", TWENTY)
    assert runs.throughput_mbps >= 74
    assert runs.delay_p95_ms <= 64
    assert runs.loss <= 0.02


def test_orca_on_the_path_of_the_published_report() -> None:
    runs = measured("orca", "77.72mbps", TWENTY)
    assert runs.throughput_mbps >= 4 * measured("cubic", "77.72mbps").throughput_mbps
    assert runs.loss <= 0.02


def test_a_host_that_stands_still_does_not_make_orca_lose_packets() -> None:
    path = NetworkPath.named("77.72mbps")
    stall = {"kind": "on_off", "mean_on": "100ms", "mean_off": "1ms", "hold": True, "direction": "downlink"}
    busy = NetworkPath(chain=[*path.chain, stall])
    losses = [simulate(busy, ["orca"], "30s", seed, Record(series=0)).total.loss for seed in range(1, 6)]
    # With acknowledged bytes over 20 ms as its throughput a policy lost 4 %.
    assert float(np.mean([1.0 if loss is None else loss for loss in losses])) <= 0.015


def test_a_busy_host_does_not_bring_eagle_down() -> None:
    path = NetworkPath.named("77.72mbps")
    stall = {"kind": "on_off", "mean_on": "200ms", "mean_off": "40ms", "hold": True}
    busy = NetworkPath(chain=[*path.chain, stall])
    runs = [simulate(busy, ["eagle"], "30s", seed, Record(series=0)) for seed in range(1, 6)]
    # BBR reaches 49 to 60 Mbit/s there, Cubic 6 to 8.
    assert min(run.total.throughput_mbps for run in runs) > 25


@pytest.mark.parametrize("path", CALIBRATED)
@pytest.mark.parametrize("name", ["eagle", "indigo"])
def test_they_fill_the_calibrated_paths_at_less_delay_than_bbr(name: str, path: str) -> None:
    runs = measured(name, path)
    assert runs.utilization >= 0.85
    assert runs.delay_p95_ms <= measured("bbr", path).delay_p95_ms


def on_fresh_draws(name: str) -> tuple[float, float, float]:
    """Mean rewards of a policy, the oracle and BBR on draws of its held-out paths that training has not seen."""
    config = TrainConfig.load(name, ["evaluation.episodes=16", "training.simulator_threads=1"])
    environments, per_decision = Environments(config), config.evaluation.per_decision
    fresh = stream_seed(config.evaluation.seed, "test")
    policy = find(name)

    def decide(observations: Any, starts: Any) -> Any:
        actions, _ = policy.native.decide(observations, None)
        return actions

    ours = evaluate(environments.evaluation(), decide, fresh, per_decision=per_decision).mean_reward
    schemes = {
        scheme: measure_scheme(environments.baseline(scheme), fresh, 16, per_decision=per_decision)
        for scheme in ("oracle", "bbr")
    }
    return ours, schemes["oracle"].mean_reward, schemes["bbr"].mean_reward


def test_aurora_is_close_to_the_oracle_and_better_than_bbr() -> None:
    ours, oracle, bbr = on_fresh_draws("aurora")
    assert ours > bbr
    assert ours >= 0.85 * oracle


def test_genet_is_better_than_bbr() -> None:
    ours, _, bbr = on_fresh_draws("genet")
    assert ours > bbr + 30


def test_no_observation_brings_aurora_to_the_bounds_of_its_action() -> None:
    """So with our bounds it does the same as with the published ones, ±1e12."""
    graph = onnx.load(pretrained()["aurora"]).graph
    numbers = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    *_, hidden, last, shift, low, high, _ = graph.node
    assert [node.op_type for node in (hidden, last, shift, low, high)] == ["Tanh", "MatMul", "Add", "Max", "Min"]
    # What tanh gives is within ±1.
    largest = np.abs(numbers[last.input[1]]).sum() + np.abs(numbers[shift.input[1]]).sum()
    assert largest < 16
    _, bound = TrainConfig.load("aurora").agent.native()["action"]["bounds"]
    assert (numbers[low.input[1]], numbers[high.input[1]]) == (-bound, bound) == (-40, 40)
