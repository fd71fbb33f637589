"""Environments on real paths, as far as it goes without packets: the senders are fakes that speak the protocol."""

from __future__ import annotations

import gc
import json
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import ccgym
from ccgym.envs import LinkEnv, VectorLinkEnv, real_batch, real_episode
from ccgym.errors import ConfigError, RealPathError
from ccgym.schemes.policies import find
from tests.refusals import refused
from tests.unit.fake_run import OBSERVATION, Behavior, FakeRun

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Behavior]:
    """Run processes are fakes."""
    behavior = Behavior()
    monkeypatch.setattr(real_episode, "RunProcess", lambda plan: FakeRun(plan, behavior))
    yield behavior
    for run in behavior.runs:
        run.end()


def make(**arguments: Any) -> LinkEnv:
    return LinkEnv("aurora", **{"path": PATH, "backend": "emulated", **arguments})


def zero() -> np.ndarray:
    return np.zeros(1, np.float32)


def shown(observation: np.ndarray) -> int:
    """Number of the interval that an observation is of."""
    return round(float(observation[0]) * 1e3)


# --- Steps -----------------------------------------------------------------------------------------------------------


def test_a_step_is_the_first_interval_in_which_its_action_was_in_force(fake: Behavior) -> None:
    fake.false_starts = 1  # a run that needs longer than expected begins again
    env = make(privileged=True)
    observation, info = env.reset(seed=1)
    truth = info["privileged"]
    assert (shown(observation), info.keys()) == (0, {"privileged"})
    assert (truth["link_rate_bps"], truth["base_rtt_s"]) == (12e6, 0.04)
    assert np.isnan(truth["backlog_packets"]), "as far as it is known"
    assert observation in env.observation_space
    for number in range(1, 6):
        observation, reward, terminated, truncated, info = env.step([0.25])
        assert (terminated, truncated) == (False, False)
        assert shown(observation) == number
        assert reward == shown(observation)
        assert info.keys() == {
            "interval", "reward_terms", "time_s", "missed_deadlines", "missed_deadlines_total", "decision_latency_s",
            "skipped_reward", "privileged",
        }  # fmt: skip
        assert info["time_s"] == info["interval"]["time_s"] > 0
        assert (info["missed_deadlines"], info["decision_latency_s"]) == (0, 0.0)
    assert fake.runs[0].actions == [[0.25]] * 5
    env.close()
    assert (len(fake.runs), fake.alive) == (1, 0)


def test_a_learner_that_thinks_misses_deadlines(fake: Behavior) -> None:
    fake.lapses = 3
    env = make()
    observation, _ = env.reset(seed=1)
    before = shown(observation)
    for step in range(1, 4):
        observation, _, _, _, info = env.step(zero())
        after = shown(observation)
        assert info["missed_deadlines"] == after - before - 1 == 3
        assert info["skipped_reward"] == sum(range(before + 1, after)), "the rewards of those that were skipped"
        assert info["missed_deadlines_total"] == 3 * step
        assert info["decision_latency_s"] == pytest.approx(0.03)
        before = after
    env.close()


# --- Ends ------------------------------------------------------------------------------------------------------------


def test_a_limit_of_steps_stops_the_flow(fake: Behavior) -> None:
    env = make(episode_steps=3)
    env.reset(seed=4)
    for _ in range(2):
        assert not env.step(zero())[3]
    observation, reward, _, truncated, info = env.step(zero())
    assert truncated
    assert reward == shown(observation)
    assert (fake.runs[0].stopped, fake.alive) == (1, 0)
    summary = info["summary"]
    assert (summary["steps"], summary["throughput_mbps"], summary["loss"]) == (3, 7.5, 0.125)
    assert (summary["delay_mean_ms"], summary["delay_p95_ms"], summary["utilization"]) == (None, 21.0, None)
    assert summary["missed_deadlines"] == info["missed_deadlines_total"]
    assert (info["backend"], info["reproducible"]) == ("emulated", False)
    assert len(info["trajectory_hash"]) == 16
    assert info["path"]["rate_mbps"] == 12.0
    with refused(ConfigError, "call-order"):
        env.step(zero())
    env.reset()
    assert (len(fake.runs), fake.alive) == (2, 1)
    env.close()


def test_the_end_of_time_cuts_the_last_interval_off(fake: Behavior) -> None:
    fake.duration_s = 0.1
    env = make(duration="5s")
    env.reset(seed=1)
    steps, truncated = 0, False
    while not truncated:
        observation, reward, _, truncated, info = env.step(zero())
        steps += 1
    assert reward == shown(observation)
    assert info["time_s"] == pytest.approx(0.1)
    assert info["summary"]["steps"] == steps == 9, "of ten intervals the first is the reset's"
    assert fake.alive == 0


def test_nothing_is_left_however_it_ends(fake: Behavior) -> None:
    env = make()
    for count in range(1, 4):
        env.reset(seed=1)
        assert (len(fake.runs), fake.alive) == (count, 1)
    other = pickle.loads(pickle.dumps(env))
    assert other.settings.backend == "emulated"
    other.reset()
    assert fake.alive == 2, "a copy has a run of its own"
    env.close()
    env.close()
    assert fake.alive == 1
    with refused(ConfigError, "call-order"):
        env.step(zero())
    del other  # closing is not required
    gc.collect()
    assert fake.alive == 0


# --- What goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behavior", "kind", "what"),
    [
        ({"hello": {"version": 2}}, RealPathError, "version-mismatch at the sender's control socket"),
        ({"hello": {"observation_size": 29}}, RealPathError, "version-mismatch at the sender's control socket"),
        ({"hello": {"flow": 7}}, RealPathError, "protocol-error at starting the run process"),
        ({"silent": True}, RealPathError, "run-stalled at waiting for the sender"),
        ({"silent": True, "duration_s": 0.05}, ConfigError, "out-of-range at duration"),
    ],
)
def test_episodes_that_do_not_begin(
    fake: Behavior, behavior: dict[str, Any], kind: type[Exception], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_episode, "STALL_S", 0.3)
    vars(fake).update(behavior)
    with refused(kind, what):
        make(duration="5s").reset(seed=1)
    assert fake.alive == 0


@pytest.mark.parametrize("intervals", [0, 1, 5])
def test_a_run_that_dies_says_in_which_step(fake: Behavior, intervals: int) -> None:
    fake.die_after = intervals
    env = make()

    def run() -> None:
        env.reset(seed=1)
        for _ in range(10):
            env.step(zero())

    with refused(RealPathError, "run-failed at faking packets"):
        run()
    assert fake.alive == 0
    fake.die_after = None
    env.reset()
    env.step(zero())
    env.close()


def test_an_interruption_ends_the_run(fake: Behavior, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make()
    env.reset(seed=1)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(real_episode.RealEpisode, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        env.step(zero())
    assert fake.alive == 0


# --- What a run gets ----------------------------------------------------------------------------------------------


def test_the_plan_has_all_that_the_run_needs(fake: Behavior) -> None:
    env = make(path="77.72mbps", duration="7s", flows=["cubic", "tcp:reno", "eagle"], learner={"start": "10ms"})
    env.reset(seed=9)
    plan, policy = fake.plans[0], find("eagle")
    assert plan.spec["duration"] == 7_000_000_000
    assert [flow["scheme"] for flow in plan.spec["flows"]] == ["learned", "cubic", "tcp:reno", "learned"]
    taught = plan.spec["flows"][3]
    assert (taught["params"], taught["profile"]) == ({"policy": policy.key}, "udp")
    assert plan.policies == {policy.key: policy.files}
    assert plan.agent == env.settings.agent.native()
    assert plan.mahimahi == ()
    assert all(file.is_file() for file in plan.traces.values())
    assert len(plan.traces) == 1
    assert len(str(plan.control)) < 100
    assert not plan.control.exists(), "once all have connected no other can"
    json.dumps(plan.document(Path("result")))
    env.close()


def test_mahimahi_is_told_in_its_own_words(fake: Behavior, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(real_episode, "require_programs", asked.append)
    env = make(path={**PATH, "loss": "1%"}, backend="mahimahi", episode_steps=2)
    env.reset(seed=1)
    shells = fake.plans[0].mahimahi
    assert shells[0] == ("mm-delay", "20")
    assert [shell[0] for shell in shells] == ["mm-delay", "mm-loss", "mm-link"]
    assert asked == [shells]
    env.close()
    with refused(ConfigError, "mahimahi-inexpressible at backend mahimahi"):
        make(path={**PATH, "rtt": "33.3ms"}, backend="mahimahi").reset(seed=1)
    assert fake.alive == 0


def test_the_configuration_may_say_where(fake: Behavior, tmp_path: Path) -> None:
    file = tmp_path / "real.yaml"
    file.write_text(f"extends: {Path('configs/aurora.yaml').absolute()}\nenvironment: {{backend: emulated}}\n")
    env = gymnasium.make("ccgym/Aurora-v0", config=file, path=PATH)
    env.reset(seed=1)
    assert len(fake.runs) == 1
    env.close()
    simulated = LinkEnv(str(file), path=PATH, backend="sim")
    simulated.reset(seed=1)
    assert (len(fake.runs), simulated.settings.is_real) == (1, False)


# --- Many ------------------------------------------------------------------------------------------------------------


def test_many_at_once_have_a_run_each(fake: Behavior, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_batch.os, "cpu_count", lambda: 8)
    envs = VectorLinkEnv(2, "aurora", path=PATH, backend="emulated", episode_steps=4, privileged=True)
    observations, infos = envs.reset(seed=1)
    assert (observations.shape, fake.alive) == ((2, OBSERVATION), 2)
    for _ in range(3):
        observations, rewards, _, truncations, infos = envs.step(np.zeros((2, 1), np.float32))
        assert rewards.tolist() == [shown(row) for row in observations]
        assert not truncations.any()
        assert infos["missed_deadlines"].shape == infos["_missed_deadlines"].shape == (2,)
    _, _, _, truncations, infos = envs.step(np.zeros((2, 1), np.float32))
    assert truncations.all()
    assert infos["final_info"]["summary"]["steps"].tolist() == [4, 4]
    assert (len(fake.runs), fake.alive) == (4, 2)
    envs.close()
    assert fake.alive == 0


def test_too_many_for_the_machine_are_warned_of(fake: Behavior, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_batch.os, "cpu_count", lambda: 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make()
    with pytest.warns(UserWarning, match="3 real paths at once on 2 processors"):
        VectorLinkEnv(3, "aurora", path=PATH, backend="emulated")


def test_several_learners_take_turns(fake: Behavior) -> None:
    import ccgym.envs.parallel as parallel

    fake.duration_s = 0.2
    env = parallel.parallel_env(2, "aurora", path=PATH, backend="emulated", duration="5s")
    _, infos = env.reset(seed=1)
    rewards = dict.fromkeys(env.agents, 0.0)
    seen: dict[str, list[int]] = {agent: [] for agent in env.agents}
    while env.agents:
        due = [agent for agent in env.agents if infos[agent]["due"]]
        assert due
        observations, given, _, truncations, infos = env.step({agent: zero() for agent in due})
        for agent, reward in given.items():
            rewards[agent] += reward
            if reward:
                assert reward == shown(observations[agent])
                seen[agent].append(int(reward))
    assert all(truncations.values())
    for agent, numbers in seen.items():
        assert numbers == sorted(set(numbers)), "no interval is rewarded twice"
        assert sum(numbers) == rewards[agent]
    assert {info["summary"]["throughput_mbps"] for info in infos.values()} == {7.5}
    assert fake.alive == 0


def test_stable_baselines_counts_deadlines(fake: Behavior) -> None:
    from ccgym.envs import SB3LinkVecEnv

    fake.lapses = 3
    env = SB3LinkVecEnv(1, "aurora", path=PATH, backend="emulated", episode_steps=2)
    assert env.missed_deadlines == 0
    env.reset()
    env.step(np.zeros((1, 1), np.float32))
    assert env.missed_deadlines == 3
    _, _, dones, infos = env.step(np.zeros((1, 1), np.float32))
    assert dones[0]
    assert infos[0]["episode"]["l"] == 2
    assert fake.alive == 1
    state = env.capture()
    assert state["episodes"] is None
    env.close()
    env.restore(state)
    env.reset()
    env.close()
    assert SB3LinkVecEnv(1, "aurora", path=PATH).missed_deadlines is None
    once = SB3LinkVecEnv(1, "aurora", path=PATH, backend="emulated", episode_steps=1, autoreset=False)
    once.reset()
    assert once.step(np.zeros((1, 1), np.float32))[2][0]
    assert fake.alive == 0, "without automatic resets nothing runs after the end"
    with refused(ConfigError, "wrong-count at 2 environments"):
        SB3LinkVecEnv(2, "aurora", autoreset=False)


def test_ccgym_loads_protobuf_only_for_real_paths() -> None:
    import subprocess
    import sys

    code = "import sys, ccgym.envs.link_env; assert 'google.protobuf' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(ccgym.__file__).parents[1])
