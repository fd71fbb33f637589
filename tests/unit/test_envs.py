"""The environments' behavior: seeds, truncation, infos, actions, copies, pictures."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

from ccgym.envs import LinkEnv, VectorLinkEnv
from ccgym.errors import ConfigError, SimulationError
from tests.refusals import refused

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}
DISCRETE = {
    "clock": "10ms",
    "observation": {"features": ["loss_fraction", "latency_ratio"], "history": 2},
    "action": {"map": ["/2", "-10", "+0", "+10", "*2"], "target": "cwnd"},
    "reward": {"terms": [{"term": "throughput", "weight": 1}, {"term": "loss", "weight": -1}]},
    "startup": "10p",
}


def actions(env: Any, count: int, seed: int = 3) -> np.ndarray[Any, Any]:
    """Actions as a policy that begins to learn has them; some lie outside the box."""
    return np.random.default_rng(seed).normal(size=(count, *env.action_space.shape)).astype(np.float32)


def run(env: LinkEnv, count: int, seed: int | None = 5, **options: Any) -> tuple[list[Any], str]:
    """Observations and rewards of some steps, and the hash of what happened."""
    observation, _ = env.reset(seed=seed, options=options or None)
    seen = [observation.tobytes()]
    for action in actions(env, count):
        observation, reward, _, truncated, _ = env.step(action)
        seen.append((observation.tobytes(), reward, truncated))
        if truncated:
            break
    return seen, env.trajectory_hash


# --- Spaces and steps ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("config", "features"), [("link", 20), ("aurora", 30)])
def test_spaces_are_those_of_the_agent(config: str, features: int) -> None:
    env = LinkEnv(config)
    assert (env.observation_space.shape, env.action_space.shape) == ((features,), (1,))
    assert env.observation_space.dtype == np.float32
    assert np.isfinite(env.observation_space.low).all()
    assert np.isfinite(env.observation_space.high).all()
    assert (env.observation_space.low < env.observation_space.high).all()
    assert env.action_space.dtype == np.float32
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert info == {}
    rows = env.settings.agent.describe()
    assert len(rows["observation"]) == env.observation_space.shape[0]
    assert len(rows["action"]) == env.action_space.shape[0]


def test_a_step_says_what_happened() -> None:
    env = LinkEnv(path=PATH)
    observation, _ = env.reset(seed=1)
    last = 0.0
    for _ in range(20):
        before, kept = observation, observation.copy()
        observation, reward, terminated, truncated, info = env.step(np.zeros(1, np.float32))
        assert (before == kept).all(), "observations are the caller's"
        assert observation in env.observation_space
        assert isinstance(reward, float)
        assert (terminated, truncated) == (False, False)
        assert info.keys() == {"interval", "reward_terms", "time_s"}
        assert reward == pytest.approx(sum(info["reward_terms"].values()))
        assert info["time_s"] == pytest.approx(last + info["interval"]["duration_s"]) or last == 0.0
        last = info["time_s"]
    assert info["interval"]["mean_rtt_s"] >= 0.04
    assert info["interval"]["delivery_rate_bps"] <= 12.01e6
    assert all(name.rsplit("_", 1)[-1] in UNITS for name in info["interval"])


UNITS = {"s", "bps", "packets", "bytes", "fraction", "slope", "retransmissions", "timeouts", "actions"}


# --- Seeds ---------------------------------------------------------------------------------------------------------


def test_the_seed_decides_and_without_one_the_stream_goes_on() -> None:
    one, other = LinkEnv("aurora"), LinkEnv("aurora")
    before = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    assert run(LinkEnv("aurora"), 5, seed=None) != run(LinkEnv("aurora"), 5, seed=None)
    assert run(one, 50) == run(other, 50) == run(one, 50)
    assert run(one, 5, seed=6)[1] != run(other, 5, seed=5)[1]
    assert np.random.get_state()[1].tobytes() == before  # type: ignore[index]  # noqa: NPY002
    run(one, 5)
    hashes = [run(env, 5, seed=None)[1] for env in (one, one, other, other)]
    assert hashes[:2] == hashes[2:]
    assert hashes[0] != hashes[1]


# --- Ends ----------------------------------------------------------------------------------------------------------


def test_a_step_limit_truncates() -> None:
    env = LinkEnv(path=PATH, episode_steps=7)
    env.reset(seed=1)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]
    with refused(ConfigError, "call-order"):
        env.step(np.zeros(1, np.float32))
    env.reset()
    env.step(np.zeros(1, np.float32))


def test_the_end_sums_up() -> None:
    env = LinkEnv(path={**PATH, "loss": "1%"}, duration="10s")
    env.reset(seed=1)
    truncated = False
    while not truncated:
        observation, _, terminated, truncated, info = env.step(np.full(1, 0.1, np.float32))
        assert not terminated
    assert observation in env.observation_space
    assert info["time_s"] == 10.0
    summary = info["summary"]
    assert 0 < summary["throughput_mbps"] <= 12.01
    assert 0 < summary["utilization"] <= 1.001
    assert summary["delay_p95_ms"] >= 20
    assert 0 < summary["loss"] < 1
    assert info["path"]["rate_mbps"] == 12.0
    assert info["trajectory_hash"] == env.trajectory_hash
    assert info["simulator_seed"] >= 0
    with refused(SimulationError, "out-of-range"):  # it ends before its first decision
        LinkEnv("aurora", path={**PATH, "rtt": "400ms"}, duration="100ms").reset(seed=1)


def test_a_path_for_one_episode() -> None:
    env = LinkEnv("aurora", episode_steps=2)
    slow, fast = (run(env, 2, path={**PATH, "rate": rate})[1] for rate in ("1mbps", "50mbps"))
    assert slow != fast
    assert run(env, 2)[1] not in (slow, fast)
    with refused(ConfigError, "wrong-type at options['path']: path"):
        env.reset(options={"path": 5})


# --- Other flows, privileged, other transports ----------------------------------------------------------------------


def test_background_flows_take_their_share() -> None:
    def delivered(flows: list[Any]) -> float:
        env = LinkEnv(path=PATH, duration="10s", flows=flows)
        env.reset(seed=1)
        truncated = False
        while not truncated:
            _, _, _, truncated, info = env.step(np.zeros(1, np.float32))
        return float(info["interval"]["mean_rtt_s"])

    assert delivered(["cubic", {"scheme": "bbr", "start": "2s"}]) > delivered([])


STEADY = Path(__file__).parent / "data" / "policies" / "steady.onnx"


@pytest.mark.parametrize("policy", ["eagle", str(STEADY)], ids=["pretrained", "exported"])
def test_policies_are_background_flows_like_any_scheme(policy: str) -> None:
    flows = [policy, {"scheme": policy, "start": {"uniform": ["1s", "2s"]}}]
    env = gymnasium.make("ccgym/Link-v0", path=PATH, duration="4s", flows=flows, privileged=True)
    hashes = []
    for made in (env, pickle.loads(pickle.dumps(env.unwrapped))):
        made.reset(seed=1)
        truncated = False
        while not truncated:
            _, _, _, truncated, info = made.step(made.action_space.sample() * 0)
        assert info["privileged"]["flows"] == 3
        hashes.append(info["trajectory_hash"])
    assert hashes[0] == hashes[1]
    alone = LinkEnv(path=PATH, duration="4s")
    alone.reset(seed=1)
    assert alone.trajectory_hash != hashes[0]


def test_a_learner_over_a_reliable_transport() -> None:
    env = LinkEnv(path={**PATH, "loss": "5%"}, learner={"profile": "tcp", "start": "1s"}, episode_steps=50)
    env.reset(seed=1)
    repeated = sum(env.step(np.zeros(1, np.float32))[4]["interval"]["retransmissions"] for _ in range(50))
    assert repeated > 0


# --- Actions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "wrong", "code"),
    [
        (1, [0.0, 0.0], "action-shape"),
        (1, 0.0, "action-shape"),
        (1, [[0.0]], "action-shape"),
        (1, "fast", "wrong-type"),
        (1, None, "action-shape"),
        (1, [np.nan], "action-not-finite"),
        (2, np.zeros((3, 1)), "action-shape"),
        (2, np.zeros(2), "action-shape"),
        (2, "x", "wrong-type"),
    ],
)
def test_wrong_actions_are_refused(count: int, wrong: Any, code: str) -> None:
    env: Any = LinkEnv(path=PATH) if count == 1 else VectorLinkEnv(count, path=PATH)
    env.reset(seed=1)
    with refused(ConfigError, f"{code} at action"):
        env.step(wrong)


def test_a_lenient_environment_holds_the_last_decision() -> None:
    env = LinkEnv(path=PATH, strict=False)
    env.reset(seed=1)
    env.step(np.zeros(1, np.float32))
    _, _, _, _, info = env.step(np.array([np.nan], np.float32))
    assert info["interval"]["refused_actions"] == 1


def test_discrete_actions() -> None:
    env = LinkEnv(path=PATH, agent=DISCRETE)
    assert env.action_space == gymnasium.spaces.Discrete(5)
    env.reset(seed=1)
    for action in range(5):
        env.step(action)
        env.step(np.int64(action))
    for wrong in (5, -1, 1.5):
        with refused(ConfigError, "action-out-of-range at action"):
            env.step(wrong)
    with refused(ConfigError, "action-shape at action"):
        env.step([1])
    envs = VectorLinkEnv(3, path=PATH, agent=DISCRETE)
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    with refused(ConfigError, "action-out-of-range at action"):
        envs.step([0, 1, 5])


# --- Copies --------------------------------------------------------------------------------------------------------


def test_a_deep_copy_continues_the_random_stream() -> None:
    env = LinkEnv("aurora", flows=["cubic"], episode_steps=30)
    run(env, 5)
    assert run(copy.deepcopy(env), 5, seed=None) == run(env, 5, seed=None)


def test_a_thousand_resets_leave_no_growth() -> None:
    env = LinkEnv("aurora")

    def resets(count: int) -> int:
        for _ in range(count):
            env.reset()
            env.step(np.zeros(1, np.float32))
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 if Path("/proc/self/statm").exists() else 0

    env.reset(seed=1)
    resets(200)
    tracemalloc.start()
    resets(20)
    python_before, resident_before = tracemalloc.get_traced_memory()[0], resets(20)
    resident_after = resets(1000)
    python_after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert python_after - python_before < 100_000
    assert resident_after - resident_before < 8 * 2**20


# --- Many at once --------------------------------------------------------------------------------------------------


def native_and_synchronous(mode: AutoresetMode, **arguments: Any) -> tuple[VectorEnv, VectorEnv]:
    """Three environments with episodes of four steps, ours and Gymnasium's."""
    arguments |= {"num_envs": 3, "episode_steps": 4}
    native = gymnasium.make_vec("ccgym/Aurora-v0", autoreset_mode=mode, threads=2, **arguments)
    assert isinstance(native, VectorLinkEnv)
    sync: Any = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": mode}}
    return native, gymnasium.make_vec("ccgym/Aurora-v0", **sync, **arguments)


@pytest.mark.parametrize("privileged", [False, True])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_same_in_gymnasium_s_own_vector_environment(mode: AutoresetMode, privileged: bool) -> None:
    native, other = native_and_synchronous(mode, privileged=privileged)
    assert native.metadata["autoreset_mode"] == other.metadata["autoreset_mode"] == mode
    assert native.observation_space == other.observation_space
    assert native.action_space == other.action_space
    assert same(native.reset(seed=2), other.reset(seed=2))
    ends = 0
    for step, action in enumerate(np.random.default_rng(1).normal(size=(16, 3, 1)).astype(np.float32)):
        ours, theirs = native.step(action), other.step(action)
        assert same(ours, theirs)
        ends += ours[3].sum()
        mask = ours[3] if mode is AutoresetMode.DISABLED else np.zeros(3, np.bool_)
        if step == 1:  # from here on they end at different times
            mask = np.array([True, False, False])
        if mask.any():
            options = ({"reset_mask": mask.copy()} for _ in range(2))
            assert same(native.reset(options=next(options)), other.reset(options=next(options)))
    assert ends > 6
    other.close()


def test_the_way_of_resets_is_checked_and_kept() -> None:
    assert VectorLinkEnv(2, path=PATH).metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    named = VectorLinkEnv(2, path=PATH, autoreset_mode="NextStep")
    assert pickle.loads(pickle.dumps(named)).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    with refused(ConfigError, "unknown-choice at autoreset_mode"):
        VectorLinkEnv(2, path=PATH, autoreset_mode="never")
    with refused(ConfigError, "out-of-range at num_envs"):
        VectorLinkEnv(0)
    disabled = VectorLinkEnv(2, path=PATH, autoreset_mode="Disabled", episode_steps=1)
    disabled.reset(seed=1)
    disabled.step(np.zeros((2, 1), np.float32))
    with refused(ConfigError, "call-order"):
        disabled.step(np.zeros((2, 1), np.float32))


def test_gymnasium_s_own_wrappers_run_on_it() -> None:
    results = []
    for envs in native_and_synchronous(AutoresetMode.NEXT_STEP):
        wrapped = RecordEpisodeStatistics(NormalizeReward(NormalizeObservation(envs)))
        wrapped.reset(seed=5)
        draws = np.random.default_rng(1).normal(size=(12, 3, 1)).astype(np.float32)
        steps = [wrapped.step(action) for action in draws]
        ends = [step[4]["episode"] for step in steps if "episode" in step[4]]
        assert [end["l"].tolist() for end in ends] == [[4, 4, 4]] * 2
        results.append([(*step[:2], step[4].get("episode", {}).get("r", 0.0)) for step in steps])
    assert same(*results)


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, where their masks say that they mean something."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return all(
            same(one[key][one[f"_{key}"]], other[key][one[f"_{key}"]])
            if f"_{key}" in one and not isinstance(one[key], dict)
            else same(one[key], other[key])
            for key in one
        )
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return len(one) == len(other) and all(map(same, one, other))
    assert not isinstance(one, np.ndarray) or one.dtype == other.dtype
    return bool(np.array_equal(one, other))


def test_without_copies_the_arrays_are_the_environment_s() -> None:
    envs = VectorLinkEnv(2, path=PATH, copy=False)
    first, _ = envs.reset(seed=1)
    second, rewards, *_ = envs.step(np.zeros((2, 1), np.float32))
    assert first is second
    third, again, *_ = envs.step(np.zeros((2, 1), np.float32))
    assert third is second
    assert again is rewards
    copying = VectorLinkEnv(2, path=PATH)
    first, _ = copying.reset(seed=1)
    kept = first.copy()
    copying.step(np.zeros((2, 1), np.float32))
    assert (first == kept).all()


def test_threads_change_nothing() -> None:
    results = []
    for threads in (1, 3):
        envs = VectorLinkEnv(7, "aurora", threads=threads)
        envs.reset(seed=1)
        draws = np.random.default_rng(1).normal(size=(20, 7, 1))
        results.append(np.array([envs.step(action)[0] for action in draws]))
    assert (results[0] == results[1]).all()


def test_some_are_reset() -> None:
    envs = VectorLinkEnv(3, "aurora")
    before, _ = envs.reset(seed=1)
    envs.step(np.zeros((3, 1), np.float32))
    now, _ = envs.reset(seed=[1, None, 3], options={"reset_mask": np.array([True, False, False])})
    assert (now[0] == before[0]).all()
    with refused(ConfigError, "wrong-type at options['reset_mask']"):
        envs.reset(options={"reset_mask": np.array([True])})
    with refused(ConfigError, "wrong-count at seed"):
        envs.reset(seed=[1, 2])
    assert len(envs.np_random) == 3
    assert envs.np_random_seed[0] == 1


# --- Pictures ------------------------------------------------------------------------------------------------------


# --- Marks -----------------------------------------------------------------------------------------------------------
