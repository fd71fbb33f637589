"""Indigo: the native core against a second reading of the published sender, acknowledgement by acknowledgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ccgym.config.agent import read_agent
from ccgym.config.best_windows import best_windows
from ccgym.config.distributions import presets
from ccgym.config.path import NetworkPath
from ccgym.envs import LinkEnv
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.evaluation.metrics import NEVER
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.simulate import simulate
from ccgym.training.config import TrainConfig
from ccgym.units import NS_PER_S
from tests.reference import indigo

STAY = indigo.ACTIONS.index("+0")

PUBLISHED: dict[str, Any] = {
    "clock": {"kind": "fixed", "interval": f"{indigo.STEP_MS}ms", "on_ack": True, "tick": "1ms"},
    "observation": {
        "features": [
            {"signal": "ewma_queue_delay", "over": indigo.DELAY_SCALE_MS / 1e3, "clip": [0, 100]},
            {"signal": "ewma_delivery_rate", "over": indigo.RATE_SCALE_MBPS * 1e6, "clip": [0, 100]},
            {"signal": "ewma_send_rate", "over": indigo.RATE_SCALE_MBPS * 1e6, "clip": [0, 100]},
            {"signal": "cwnd", "over": indigo.WINDOW_SCALE, "clip": [0, 1000]},
        ],
        "previous_action": "one_hot",
        "initial_action": indigo.FIRST_ACTION,
    },
    "action": {"map": list(indigo.ACTIONS), "target": "cwnd", "limits": {"window": [indigo.MIN_WINDOW, 1e6]}},
    "startup": f"{indigo.FIRST_WINDOW:g}p",
}
"""The published sender in our words."""

PATHS = [
    NetworkPath.named("indigo-5mbps-20ms"),
    NetworkPath.named("indigo-50mbps-40ms"),
    NetworkPath(rate="20mbps", rtt="60ms", queue="infinite"),
]


# --- The published formulas ------------------------------------------------------------------------------------------


def reference_states(path: NetworkPath, window: int, seed: int, seconds: float) -> list[tuple[float, ...]]:
    """Length in ns and the three averages of every step of a sender with a constant window, read from its packets."""
    flow = {"scheme": "fixed_window", "params": {"cwnd": window}, "profile": "udp"}
    run = simulate(path, [flow], seconds, seed, Record(series=0, acks=True))
    left = [int(time) for time in run.native.packets("data")["entered_ns"]]
    heard = [int(time) for time in run.native.packets("ack")["left_ns"] if time != NEVER]
    reference = indigo.Reference()
    # On a path that loses nothing each acknowledgement lets one packet go.
    stamps = [reference.send(left[place]) for place in range(window)]
    states, started = [], 0
    for place, now in enumerate(heard):
        reference.acknowledge(stamps[place], now)
        if indigo.is_over(started, now):
            states.append((now - started, *reference.step()))
            started = now
        if len(stamps) < len(left):
            stamps.append(reference.send(left[len(stamps)]))
    return states


def scaled(agent: dict[str, Any], averages: Sequence[float], window: float) -> list[tuple[int, float]]:
    """Place and value of the published features in an agent's observation, by the agent's own scales."""
    delay, delivery, sending = averages
    raw = {
        "ewma_queue_delay": delay / 1e3,
        "ewma_delivery_rate": delivery * 1e6,
        "ewma_send_rate": sending * 1e6,
        "cwnd": window,
    }
    found = []
    for place, feature in enumerate(agent["observation"]["features"]):
        over = feature.get("over", 1.0)
        plain = not feature["log"] and not {"minus", "difference", "ewma"} & feature.keys()
        if feature["signal"] in raw and plain and isinstance(over, (int, float)):
            found.append((place, float(np.clip(feature["scale"] * raw[feature["signal"]] / over, *feature["clip"]))))
    return found


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name or "steady")
@pytest.mark.parametrize("share", [0.6, 1.0, 2.5], ids="window of {} BDP".format)
@pytest.mark.parametrize("whose", ["published", "ours"])
def test_the_core_sees_what_the_published_sender_sees(path: NetworkPath, share: float, whose: str) -> None:
    window = round(share * path.bdp_packets)
    agent = read_agent(PUBLISHED) if whose == "published" else TrainConfig.load(indigo.CONFIG).agent
    env = LinkEnv(agent=agent, path=path, learner={"start_window": window}, episode_steps=300)
    observations, lengths = [env.reset(seed=7)[0]], []
    ended = False
    while not ended:
        observation, _, _, ended, info = env.step(STAY)
        observations.append(observation)
        lengths.append(info["interval"]["duration_s"])
    states = reference_states(path, window, info["simulator_seed"], info["interval"]["time_s"] + 0.001)
    assert len(states) == len(observations) == 301
    assert lengths == pytest.approx([length / NS_PER_S for length, *_ in states[1:]])
    actions = [indigo.FIRST_ACTION, *[STAY] * 300]
    for (_, *averages), action, observation in zip(states, actions, observations, strict=True):
        places, expected = zip(*scaled(agent.native(), averages, window), strict=True)
        assert len(places) >= 4
        np.testing.assert_allclose(observation[list(places)], expected, rtol=5e-6, atol=1e-6)
        if whose == "published":
            published = indigo.normalized((*averages, window), action)
            np.testing.assert_allclose(observation, published, rtol=5e-6, atol=1e-6)


def test_the_published_delivery_rate_counts_acknowledgements_alone() -> None:
    # What differs, and is said in the docs: over a burst the core also counts the time in which it was sent.
    fast = indigo.Reference(ack_clock_only=True)
    slow = indigo.Reference()
    for reference in (fast, slow):
        stamps = [reference.send(now) for now in (0, 0)]
        reference.acknowledge(stamps[0], 50_000_000)
        late = [reference.send(now) for now in (50_000_000, 95_000_000)]
        reference.acknowledge(stamps[1], 90_000_000)
        reference.acknowledge(late[0], 100_000_000)
        reference.step()
        reference.acknowledge(late[1], 104_000_000)
    assert fast.step()[1] == pytest.approx(8000 * 3 * 1500 / 54e6)
    assert slow.step()[1] <= 8000 * 3 * 1500 / 54e6


@pytest.mark.parametrize("name", ["77.72mbps", "0.57mbps-poisson", "indigo-200mbps-10ms"])
def test_windows_move_and_steps_end_as_published(name: str) -> None:
    env = LinkEnv(agent=PUBLISHED, path=name, episode_steps=250)
    observation, _ = env.reset(seed=3)
    assert observation[3] == pytest.approx(indigo.FIRST_WINDOW / indigo.WINDOW_SCALE)
    assert observation[4:].tolist() == indigo.normalized((0, 0, 0, 0), indigo.FIRST_ACTION)[4:]
    rng = np.random.default_rng(1)
    window, target, previous_s = indigo.FIRST_WINDOW, 60.0, None
    single, ended = 0, False
    while not ended:
        # Mostly toward some window, and sometimes anywhere.
        target = target if rng.random() < 0.98 else rng.uniform(2, 900)
        action = indigo.best_action(window, target) if rng.random() < 0.9 else int(rng.integers(5))
        window = indigo.next_window(window, action)
        observation, _, _, ended, info = env.step(action)
        interval = info["interval"]
        assert interval["cwnd_bytes"] // 1500 == int(window)
        assert observation[3] == pytest.approx(window / indigo.WINDOW_SCALE, abs=1 / indigo.WINDOW_SCALE)
        assert observation[4:].tolist() == indigo.normalized((0, 0, 0, 0), action)[4:]
        delay_ms = observation[0] * indigo.DELAY_SCALE_MS
        if interval["timeouts"] == 0:
            assert interval["acked_packets"] >= 1
            lowest, highest = (interval[f"interval_{end}_rtt_s"] - interval["min_rtt_s"] for end in ("min", "max"))
            assert 1e3 * lowest - 1e-3 <= delay_ms <= 1e3 * highest + 1e-3
        if interval["acked_packets"] == 1:
            single += 1
            assert delay_ms == pytest.approx(1e3 * (interval["mean_rtt_s"] - interval["min_rtt_s"]), abs=1e-3)
        end_s = interval["time_s"]
        if previous_s is not None:
            assert indigo.is_over(round(previous_s * NS_PER_S), round(end_s * NS_PER_S))
        previous_s = end_s
    assert single > 0 or name != "0.57mbps-poisson"


def test_the_expert_s_labels_are_the_published_ones() -> None:
    agent = read_agent({**PUBLISHED, "expert": "best_window"})
    batch = SimulatedBatch(replace(Settings.read(path="77.72mbps", episode_steps=400), agent=agent), 1)
    rng = np.random.default_rng(2)
    batch.begin(0, rng)
    window, target = indigo.FIRST_WINDOW, best_windows()["77.72mbps"].window
    while batch.ended[0] == 0:
        actions, targets = batch.refresh_labels()
        assert targets[0] == target
        assert actions[0, 0] == indigo.best_action(window, target)
        action = indigo.best_action(window, target) if rng.random() < 0.7 else int(rng.integers(5))
        window = indigo.next_window(window, action)
        batch.actions[0, 0] = action
        batch.step()


# --- The configuration -----------------------------------------------------------------------------------------------


def test_the_configuration_is_the_published_sender() -> None:
    config = TrainConfig.load(indigo.CONFIG)
    ours, published = config.agent.native(), read_agent(PUBLISHED).native()
    assert ours["clock"] == published["clock"]
    assert ours["startup"] == published["startup"]
    assert ours["action"]["map"] == published["action"]["map"]
    assert ours["action"]["limits"]["window"][0] == indigo.MIN_WINDOW
    assert ours["observation"]["previous_action"] == "one_hot"
    assert ours["observation"]["initial_action"] == indigo.FIRST_ACTION
    signals = {feature["signal"] for feature in ours["observation"]["features"]}
    assert signals >= {feature["signal"] for feature in published["observation"]["features"]}
    assert ours["expert"]["kind"] == "best_window"


def test_the_configuration_is_trained_as_published() -> None:
    config = TrainConfig.load(indigo.CONFIG)
    assert config.algorithm.name == "dagger"
    assert config.algorithm.memory is not None
    assert config.environment.episode.steps == indigo.EPISODE_STEPS
    calibrated = [NetworkPath.named(name).name or name for name in presets()["indigo_calibrated"]["names"]]
    published = tuple(best_windows()[name].published for name in calibrated)
    assert published == indigo.CALIBRATED_WINDOWS
