"""The environments' behavior: seeds, truncation, infos, actions, copies, pictures."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

import ccgym
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


@pytest.mark.parametrize("config", ["link", "aurora"])
def test_spaces_are_those_of_the_agent(config: str) -> None:
    env = LinkEnv(config)
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


def test_aurora_is_thirty_numbers_and_one_action() -> None:
    env = LinkEnv("aurora")
    assert env.observation_space.shape == (30,)
    assert env.action_space.shape == (1,)


def test_a_step_says_what_happened() -> None:
    env = LinkEnv(path=PATH)
    env.reset(seed=1)
    last = 0.0
    for _ in range(20):
        observation, reward, terminated, truncated, info = env.step(np.zeros(1, np.float32))
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


def test_observations_are_the_caller_s() -> None:
    env = LinkEnv(path=PATH)
    first, _ = env.reset(seed=1)
    kept = first.copy()
    env.step(np.ones(1, np.float32))
    assert (first == kept).all()


# --- Seeds ---------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_packets() -> None:
    one, other = LinkEnv("aurora"), LinkEnv("aurora")
    assert run(one, 50) == run(other, 50) == run(one, 50)
    assert run(one, 50, seed=6)[1] != run(other, 50, seed=5)[1]


def test_without_a_seed_the_stream_goes_on() -> None:
    one, other = LinkEnv("aurora"), LinkEnv("aurora")
    first = [run(one, 5)[1], run(one, 5, seed=None)[1], run(one, 5, seed=None)[1]]
    assert first == [run(other, 5)[1], run(other, 5, seed=None)[1], run(other, 5, seed=None)[1]]
    assert len(set(first)) == 3


def test_unseeded_environments_differ() -> None:
    assert run(LinkEnv("aurora"), 5, seed=None)[1] != run(LinkEnv("aurora"), 5, seed=None)[1]


def test_numpy_s_global_state_is_left_alone() -> None:
    env = LinkEnv("aurora")
    before = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    run(env, 5)
    assert np.random.get_state()[1].tobytes() == before  # type: ignore[index]  # noqa: NPY002


def test_random_losses_depend_on_the_seed() -> None:
    env = LinkEnv(path={**PATH, "loss": "2%"})
    assert run(env, 60, seed=1)[1] == run(env, 60, seed=1)[1]
    assert run(env, 60, seed=1)[1] != run(env, 60, seed=2)[1]


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


def test_a_time_limit_truncates() -> None:
    env = LinkEnv(path=PATH, duration="2s")
    env.reset(seed=1)
    truncated, info = False, {}
    while not truncated:
        observation, _, terminated, truncated, info = env.step(np.zeros(1, np.float32))
        assert not terminated
    assert info["time_s"] == 2.0
    assert observation in env.observation_space


def test_the_end_sums_up() -> None:
    env = LinkEnv(path={**PATH, "loss": "1%"}, duration="10s")
    env.reset(seed=1)
    truncated = False
    while not truncated:
        _, _, _, truncated, info = env.step(np.full(1, 0.1, np.float32))
    summary = info["summary"]
    assert 0 < summary["throughput_mbps"] <= 12.01
    assert 0 < summary["utilization"] <= 1.001
    assert summary["delay_p95_ms"] >= 20
    assert 0 < summary["loss"] < 1
    assert info["path"]["rate_mbps"] == 12.0
    assert info["trajectory_hash"] == env.trajectory_hash
    assert info["simulator_seed"] >= 0


def test_an_episode_that_ends_before_its_first_decision_is_refused() -> None:
    env = LinkEnv("aurora", path={**PATH, "rtt": "400ms"}, duration="100ms")
    with refused(SimulationError, "out-of-range"):
        env.reset(seed=1)


def test_a_path_for_one_episode() -> None:
    env = LinkEnv("aurora", episode_steps=2)
    slow, fast = (run(env, 2, path={**PATH, "rate": rate})[1] for rate in ("1mbps", "50mbps"))
    assert slow != fast
    assert run(env, 2)[1] not in (slow, fast)
    with refused(ConfigError, "wrong-type at options['path']: path"):
        env.reset(options={"path": 5})


def test_unknown_options_are_refused() -> None:
    with refused(ConfigError, "unknown-argument at options"):
        LinkEnv(path=PATH).reset(options={"pth": PATH})
    with refused(ConfigError, "unknown-argument at options"):
        LinkEnv(path=PATH).reset(options={"reset_mask": True})
    with refused(ConfigError, "unknown-argument at options"):
        VectorLinkEnv(2, path=PATH).reset(options={"reset_masc": np.array([True, False])})


@pytest.mark.parametrize("make", [LinkEnv, lambda **others: VectorLinkEnv(2, **others)])
def test_nothing_steps_after_close(make: Any) -> None:
    env = make(path=PATH)
    action = np.zeros(env.action_space.shape, np.float32)
    env.reset(seed=1)
    env.step(action)
    env.close()
    env.close()
    with refused(ConfigError, "call-order"):
        env.step(action)
    env.reset(seed=1)
    env.step(action)


def test_set_reaches_every_face() -> None:
    change = {"agent.action.bounds": [-2, 2]}
    envs = gymnasium.make_vec("ccgym/Aurora-v0", num_envs=2, set=change)
    one = gymnasium.make("ccgym/Aurora-v0", set=change)
    assert one.action_space.high.tolist() == envs.single_action_space.high.tolist() == [2.0]
    assert one.spec is not None
    assert gymnasium.make(one.spec).action_space == one.action_space


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


def test_privileged_is_there_only_when_asked_for() -> None:
    env = LinkEnv(path=PATH, privileged=True)
    _, info = env.reset(seed=1)
    assert info["privileged"]["link_rate_bps"] == 12e6
    _, _, _, _, info = env.step(np.zeros(1, np.float32))
    assert info["privileged"]["base_rtt_s"] == pytest.approx(0.04)
    assert info["privileged"]["queue_limit_packets"] == 40
    assert info["privileged"]["flows"] == 1


def test_a_learner_over_a_reliable_transport() -> None:
    env = LinkEnv(path={**PATH, "loss": "5%"}, learner={"profile": "tcp", "start": "1s"}, episode_steps=50)
    env.reset(seed=1)
    repeated = sum(env.step(np.zeros(1, np.float32))[4]["interval"]["retransmissions"] for _ in range(50))
    assert repeated > 0


# --- Actions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ([0.0, 0.0], "action-shape"),
        (0.0, "action-shape"),
        ([[0.0]], "action-shape"),
        ("fast", "wrong-type"),
        (None, "action-shape"),
    ],
)
def test_actions_of_another_shape_are_refused(wrong: Any, code: str) -> None:
    env = LinkEnv(path=PATH)
    env.reset(seed=1)
    with refused(ConfigError, f"{code} at action"):
        env.step(wrong)


def test_actions_that_are_no_numbers_are_refused_or_held() -> None:
    env = LinkEnv(path=PATH)
    env.reset(seed=1)
    with refused(ConfigError, "action-not-finite at action"):
        env.step(np.array([np.nan], np.float32))
    lenient = LinkEnv(path=PATH, strict=False)
    lenient.reset(seed=1)
    lenient.step(np.zeros(1, np.float32))
    _, _, _, _, info = lenient.step(np.array([np.nan], np.float32))
    assert info["interval"]["refused_actions"] == 1


def test_step_before_reset() -> None:
    with refused(ConfigError, "call-order"):
        LinkEnv(path=PATH).step(np.zeros(1, np.float32))
    with refused(ConfigError, "call-order"):
        _ = LinkEnv(path=PATH).trajectory_hash


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


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_continues_the_random_stream(duplicate: Any) -> None:
    env = LinkEnv("aurora", flows=["cubic"], episode_steps=30)
    run(env, 5)
    again = duplicate(env)
    with refused(ConfigError, "call-order"):
        again.step(np.zeros(1, np.float32))
    assert run(again, 5, seed=None) == run(env, 5, seed=None)
    envs = VectorLinkEnv(2, "aurora")
    envs.reset(seed=1)
    assert (duplicate(envs).reset()[0] == envs.reset()[0]).all()


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


def test_paths_can_be_exchanged() -> None:
    env = LinkEnv(path=PATH, episode_steps=1)
    env.paths = {"kind": "fixed", "path": {**PATH, "rate": "3mbps"}}
    env.reset(seed=1)
    assert env.step(np.zeros(1, np.float32))[4]["path"]["rate_mbps"] == 3.0


# --- Many at once --------------------------------------------------------------------------------------------------


def test_the_vector_environment_equals_single_ones() -> None:
    count, steps = 5, 60
    envs = VectorLinkEnv(count, "aurora", episode_steps=25, threads=2)
    singles = [LinkEnv("aurora", episode_steps=25) for _ in range(count)]
    observations, infos = envs.reset(seed=11)
    assert infos == {}
    for index, single in enumerate(singles):
        assert (single.reset(seed=11 + index)[0] == observations[index]).all()
    for action in np.random.default_rng(1).normal(size=(steps, count, 1)).astype(np.float32):
        observations, rewards, terminations, truncations, infos = envs.step(action)
        assert not terminations.any()
        for index, single in enumerate(singles):
            observation, reward, _, truncated, info = single.step(action[index])
            assert (reward, truncated) == (rewards[index], truncations[index])
            if truncated:
                assert (infos["final_obs"][index] == observation).all()
                final = infos["final_info"]
                assert final["trajectory_hash"][index] == info["trajectory_hash"]
                assert final["summary"]["throughput_mbps"][index] == info["summary"]["throughput_mbps"]
                assert final["interval"]["mean_rtt_s"][index] == info["interval"]["mean_rtt_s"]
                assert not infos.get("_interval", np.zeros(count))[index]
                observation, _ = single.reset()
            else:
                assert infos["_interval"][index]
                assert infos["interval"]["mean_rtt_s"][index] == info["interval"]["mean_rtt_s"]
                assert infos["reward_terms"].keys() >= info["reward_terms"].keys()
            assert (observation == observations[index]).all()


def native_and_synchronous(mode: AutoresetMode, **arguments: Any) -> tuple[VectorEnv, VectorEnv]:
    """Three environments with episodes of four steps, ours and Gymnasium's."""
    native = gymnasium.make_vec("ccgym/Aurora-v0", num_envs=3, episode_steps=4, autoreset_mode=mode, **arguments)
    assert isinstance(native, VectorLinkEnv)
    other = gymnasium.make_vec(
        "ccgym/Aurora-v0",
        num_envs=3,
        episode_steps=4,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **arguments,
    )
    return native, other


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


def test_all_episodes_end_at_once_and_begin_again_at_the_next_step() -> None:
    native, _ = native_and_synchronous(AutoresetMode.NEXT_STEP)
    still = np.zeros((3, 1), np.float32)
    with pytest.raises(ConfigError):
        native.step(still)
    native.reset(seed=1)
    truncations = [native.step(still)[3].all() for _ in range(11)]
    assert truncations == [step in (3, 8) for step in range(11)]
    assert pickle.loads(pickle.dumps(native)).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    disabled, _ = native_and_synchronous(AutoresetMode.DISABLED)
    disabled.reset(seed=1)
    for _ in range(4):
        disabled.step(still)
    with pytest.raises(ConfigError):
        disabled.step(still)
    assert VectorLinkEnv(2, path=PATH).metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert VectorLinkEnv(2, path=PATH, autoreset_mode="NextStep").autoreset_mode is AutoresetMode.NEXT_STEP
    with pytest.raises(ConfigError) as caught:
        VectorLinkEnv(2, path=PATH, autoreset_mode="never")
    assert caught.value.where == "autoreset_mode"


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "out-of-range at num_envs"),
        ({"pathz": 1}, "unknown-argument"),
        ({"render_mode": "human"}, "unknown-choice at render_mode"),
    ],
)
def test_mistakes_of_vector_environments(arguments: dict[str, Any], message: str) -> None:
    with refused(ConfigError, message):
        VectorLinkEnv(**arguments)


def test_steps_before_reset_in_vector_environments() -> None:
    envs = VectorLinkEnv(2, path=PATH)
    with refused(ConfigError, "call-order at environments [0, 1]"):
        envs.step(np.zeros((2, 1), np.float32))
    envs.reset(seed=1)
    for wrong in (np.zeros((3, 1)), np.zeros(2)):
        with refused(ConfigError, "action-shape at action"):
            envs.step(wrong)
    with refused(ConfigError, "wrong-type at action"):
        envs.step("x")


# --- Pictures ------------------------------------------------------------------------------------------------------


def test_text() -> None:
    env = LinkEnv(path=PATH, render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == "no step yet\n"
    for _ in range(80):
        env.step(np.zeros(1, np.float32))
    text = env.render()
    assert "step 80" in text
    assert all(word in text for word in ("rate", "RTT", "queue", "loss", "action", "Mbit/s", "▁"))
    assert max(map(len, text.splitlines())) <= 120


def test_images() -> None:
    env = LinkEnv(path={**PATH, "loss": "1%"}, render_mode="rgb_array")
    env.reset(seed=1)
    empty = env.render()
    for action in actions(env, 50):
        env.step(action)
    image = env.render()
    assert image.shape == empty.shape == (720, 800, 3)
    assert image.dtype == np.uint8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 50
    assert (image != empty).mean() > 0.01
    envs = VectorLinkEnv(2, path=PATH, agent=DISCRETE, render_mode="rgb_array")
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    frames = envs.render()
    assert frames is not None
    assert [frame.shape for frame in frames] == [(720, 800, 3)] * 2


def test_a_picture_changes_nothing() -> None:
    assert run(LinkEnv("aurora", render_mode="ansi"), 30) == run(LinkEnv("aurora"), 30)


def test_an_image_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    env = LinkEnv(path=PATH, render_mode="rgb_array")
    env.reset(seed=1)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refused(ccgym.PlatformError, "package-missing at render_mode='rgb_array'"):
        env.render()


# --- Marks -----------------------------------------------------------------------------------------------------------

MARKING = {"rate": "12mbps", "rtt": "100ms", "queue": {"kind": "codel", "limit": "2bdp", "ecn": True}}
RISING: dict[str, Any] = {
    "clock": "50ms",
    "observation": {"features": [{"signal": "ce_fraction", "clip": [0, 1]}]},
    "action": {"map": {"kind": "exponential", "base": 1.05}, "target": "rate"},
    "reward": {"terms": [{"term": "marks", "weight": -1}]},
    "startup": "2mbps",
}


@pytest.mark.parametrize("ecn", [True, False])
def test_an_agent_with_ecn_sees_marks(ecn: bool) -> None:
    agent = {**RISING, "ecn": ecn}
    single = LinkEnv(agent=agent, path=MARKING, episode_steps=150)
    many = VectorLinkEnv(2, agent=agent, path=MARKING, episode_steps=200)
    single.reset(seed=1)
    many.reset(seed=1)
    steps = [single.step(np.ones(1, np.float32)) for _ in range(100)]
    batch = [many.step(np.ones((2, 1), np.float32)) for _ in range(100)]
    assert [step[0][0] for step in steps] == [step[0][0, 0] for step in batch]
    seen = max(step[0][0] for step in steps)
    paid = sum(float(step[1]) for step in steps)
    assert (seen > 0.1, paid < -0.5) == (ecn, ecn)
    if not ecn:
        assert seen == paid == 0


def test_a_deployed_agent_with_ecn_is_marked_instead_of_dropped(tmp_path: Path) -> None:
    card = json.loads(STEADY.with_suffix(".json").read_text())
    results = []
    for ecn in (False, True):
        file = tmp_path / f"{ecn}.onnx"
        file.write_bytes(STEADY.read_bytes())
        agent = {**card["agent"], "ecn": ecn}
        file.with_suffix(".json").write_text(json.dumps({**card, "agent": agent}))
        queue = {**MARKING["queue"], "target": "1ms", "interval": "20ms"}
        run = ccgym.simulate({**MARKING, "queue": queue}, [str(file)], "10s", record=ccgym.Record(packets=False))
        assert run.native is not None
        marks = json.loads(run.native.summary())["link"]["marks"]
        results.append((run.link.drops > 0, marks > 0))
    assert results == [(True, False), (False, True)]
