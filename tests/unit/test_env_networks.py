"""Environments over paths of several links: routes, ground truth, distributions."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccgym
from ccgym.config.distributions import read_distribution
from ccgym.config.path import NetworkPath
from ccgym.envs.config import read_learner
from ccgym.envs.episode import HORIZON, draw_episode
from ccgym.envs.link_env import LinkEnv
from ccgym.envs.settings import read_agent
from ccgym.envs.vector_env import VectorLinkEnv
from ccgym.errors import ConfigError
from ccgym.experiments.training import Training
from ccgym.schemes.flow import read_flows
from tests.refusals import refused

LOT = {
    "links": {
        "first": {"rate": "10mbps", "rtt": "10ms", "queue": "20p"},
        "second": {"rate": "8mbps", "rtt": "20ms", "queue": "50p", "loss": "1%"},
        "third": {"rate": "12mbps", "rtt": "30ms", "queue": "30p"},
    }
}
CROSS = [{"scheme": "cubic", "route": [name]} for name in LOT["links"]]

DRAWN = {
    "kind": "ranges",
    "rate": {"uniform": ["5mbps", "20mbps"]},
    "rtt": {"uniform": ["5ms", "40ms"]},
    "queue": {"packets": {"uniform": [10, 100], "floor": True}},
    "start_rate": {"uniform": [0.3, 1.5], "of": "rate"},
}
HELD = {"kind": "on_off", "mean_on": "100ms", "mean_off": "2ms", "hold": True}
DRAWN_LOT = {"kind": "links", "links": {"first": DRAWN, "second": DRAWN, "third": "12mbps"}}


def episode(env: gymnasium.Env[Any, Any], seed: int, steps: int = 10**6) -> tuple[list[Any], dict[str, Any]]:
    """What an episode of random actions shows, and the last info."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    shown, ended = [observation], False
    while not ended and len(shown) < steps:
        discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
        action = 0 if discrete else rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observation, reward, _, ended, info = env.step(action)
        shown += [observation, reward]
    return shown, info


def same(one: tuple[list[Any], dict[str, Any]], other: tuple[list[Any], dict[str, Any]]) -> None:
    """Two episodes are the same, byte for byte; their paths may be told of at different length."""
    assert [np.asarray(part).tobytes() for part in one[0]] == [np.asarray(part).tobytes() for part in other[0]]
    told, told_too = one[1].pop("path"), other[1].pop("path")
    assert told.items() <= told_too.items()
    assert json.dumps(one[1]) == json.dumps(other[1])


def fixed_paths() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"rate": st.sampled_from(["3mbps", "12mbps", [["0s", "4mbps"], ["1s", "16mbps"]]]),
         "rtt": st.sampled_from(["8ms", "41.7ms"]), "queue": st.sampled_from(["1.5bdp", "17p", "codel", "infinite"])},
        optional={"loss": st.sampled_from(["1%", 0.05]), "jitter": st.just("3ms"), "reverse_rate": st.just("1mbps")},
    )  # fmt: skip


@settings(max_examples=12)
@given(path=fixed_paths(), seed=st.integers(0, 2**20), cross=st.booleans())
def test_one_link_by_name_is_that_path(path: dict[str, Any], seed: int, cross: bool) -> None:
    limits: Any = {"duration": "2s", "privileged": True, "flows": ["cubic"] if cross else []}
    plain = episode(LinkEnv(path=path, **limits), seed)
    same(plain, episode(LinkEnv(path={"links": {"only": path}}, **limits), seed))
    routed = LinkEnv(path={"links": {"only": path}}, learner={"route": ["only"]}, **limits)
    shown, info = episode(routed, seed)
    assert info["trajectory_hash"] == plain[1]["trajectory_hash"]
    assert [np.asarray(part).tobytes() for part in shown] == [np.asarray(part).tobytes() for part in plain[0]]


@settings(max_examples=8)
@given(name=st.sampled_from(["aurora", "indigo", "genet_rl1"]), seed=st.integers(0, 2**20))
def test_one_drawn_link_is_the_path_that_is_drawn(name: str, seed: int) -> None:
    paths = {"kind": "links", "links": {"only": name}}
    limits: Any = {"episode_steps": 20}
    plain, linked = (episode(LinkEnv("aurora", paths=one, **limits), seed) for one in (name, paths))
    # The name of the trace or path that is drawn is not that of the row.
    assert plain[1]["trajectory_hash"] == linked[1]["trajectory_hash"]
    assert [np.asarray(part).tobytes() for part in plain[0]] == [np.asarray(part).tobytes() for part in linked[0]]
    told = {key: value for key, value in plain[1]["path"].items() if key != "name"}
    assert {f"only.{key}": value for key, value in told.items()}.items() <= linked[1]["path"].items()
    assert linked[1]["path"]["rate_mbps"] == told["rate_mbps"]


@st.composite
def routed(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    names = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True))
    rates = draw(st.lists(st.integers(2, 40), min_size=len(names), max_size=len(names), unique=True))
    links = {
        name: {"rate": f"{rate}mbps", "rtt": f"{draw(st.integers(1, 30))}ms", "queue": f"{draw(st.integers(5, 99))}p"}
        for name, rate in zip(names, rates, strict=True)
    }
    return links, draw(st.lists(st.sampled_from(names), unique=True))


@settings(max_examples=25)
@given(given_lot=routed(), seed=st.integers(0, 2**20))
def test_the_truth_is_that_of_the_route(given_lot: tuple[dict[str, Any], list[str]], seed: int) -> None:
    links, route = given_lot
    crossed = [links[name] for name in route or links]
    slowest = min(crossed, key=lambda link: int(link["rate"].removesuffix("mbps")))
    env = LinkEnv(path={"links": links}, learner={"route": route}, duration="2s", privileged=True)
    _, info = env.reset(seed=seed)
    truth, rate = info["privileged"], float(slowest["rate"].removesuffix("mbps"))
    assert truth["link_rate_bps"] == truth["fair_share_bps"] == rate * 1e6
    assert truth["queue_limit_packets"] == float(slowest["queue"].removesuffix("p"))
    rtt = sum(int(link["rtt"].removesuffix("ms")) for link in crossed)
    assert truth["base_rtt_s"] == pytest.approx(rtt / 1e3)
    _, info = episode(env, seed)
    told = info["path"]
    assert (told["rate_mbps"], told["queue_packets"]) == (rate, truth["queue_limit_packets"])
    assert told["one_way_delay_ms"] == pytest.approx(rtt / 2)
    for name, link in links.items():
        assert told[f"{name}.rate_mbps"] == float(link["rate"].removesuffix("mbps"))
    assert info["interval"]["min_rtt_s"] >= rtt / 1e3


def test_a_parking_lot_with_cross_traffic() -> None:
    env = gymnasium.make(
        "ccgym/Link-v0", path=LOT, flows=CROSS, duration="10s", learner={"start": "1s"}, privileged=True
    )
    _, info = env.reset(seed=3)
    truths, ended = [info["privileged"]], False
    while not ended:
        *_, ended, info = env.step(np.zeros(env.action_space.shape or (), np.float32))
        truths.append(info["privileged"])
    # The slowest link is shared with one flow of three; the smallest queue is another link's.
    for truth in truths:
        assert (truth["link_rate_bps"], truth["flows"], truth["fair_share_bps"]) == (8e6, 2, 4e6)
        assert (truth["base_rtt_s"], truth["queue_limit_packets"]) == (0.06, 50)
        assert truth["loss"] == pytest.approx(0.01)
        assert truth["backlog_packets"] <= 50
    assert len({truth["backlog_packets"] for truth in truths}) > 3
    assert 0 < info["summary"]["utilization"] < 1
    assert info["summary"]["fair_share_ratio"] == pytest.approx(2 * info["summary"]["utilization"], rel=0.05)


def test_a_run_is_the_same_network() -> None:
    """A scheme below an agent that leaves it alone gets what it gets in a run of the same flows."""
    agent = {
        **read_agent("aurora").model_dump(mode="json"),
        "action": {"map": {"kind": "passive"}, "target": "both",
                   "inner": {"scheme": "fixed_window", "params": {"cwnd": 20}}},
        "observation": {"features": ["loss_fraction"], "history": 1},
        "startup": {"kind": "none"}, "guard": {"kind": "none"},
    }  # fmt: skip
    learner = {"route": ["second", "third"], "profile": "tcp"}
    env = LinkEnv(path={"links": lossless()}, flows=CROSS, agent=agent, learner=learner, duration="5s")
    _, info = episode(env, 1)
    flows = [{"scheme": "fixed_window:cwnd=20", "route": ["second", "third"]}, *CROSS]
    run = ccgym.simulate({"links": lossless()}, flows=flows, duration="5s", seed=int(info["simulator_seed"]))
    assert info["trajectory_hash"] == run.trajectory_hash


def lossless() -> dict[str, Any]:
    return {name: {key: value for key, value in link.items() if key != "loss"} for name, link in LOT["links"].items()}


def test_a_learner_in_the_other_direction() -> None:
    path = {"rate": "12mbps", "rtt": "40ms", "reverse_rate": "3mbps", "reverse_queue": "15p"}
    env = LinkEnv(path=path, flows=["cubic"], learner={"reverse": True}, duration="5s", privileged=True)
    _, info = env.reset(seed=1)
    truth = info["privileged"]
    assert (truth["link_rate_bps"], truth["queue_limit_packets"], truth["base_rtt_s"]) == (3e6, 15, 0.04)
    _, info = episode(env, 1)
    assert (info["path"]["rate_mbps"], info["path"]["queue_packets"]) == (3, 15)
    assert info["summary"]["throughput_mbps"] < 3
    # A flow on a route of its own is not told of links that it does not cross.
    env = LinkEnv(path={"rate": "12mbps", "rtt": "40ms"}, learner={"reverse": True}, duration="1s", privileged=True)
    _, info = env.reset(seed=1)
    assert (info["privileged"]["link_rate_bps"], info["privileged"]["base_rtt_s"]) == (0, 0)


def test_learners_on_routes_of_their_own() -> None:
    from ccgym.envs.parallel import parallel_env

    agents = [{}, {"route": ["first"]}, {"route": ["third", "second"], "start": "1s"}]
    env = parallel_env(agents=agents, path=LOT, flows=CROSS[:1], duration="5s")
    rng = np.random.default_rng(1)
    hashes = []
    for _ in range(2):
        _, infos = env.reset(seed=7)
        rates = env.state()[:, env.state_columns.index("link_rate_bps")].tolist()
        delays = env.state()[:, env.state_columns.index("base_rtt_s")].tolist()
        assert rates == [8e6, 10e6, 8e6]
        assert delays == pytest.approx([0.06, 0.01, 0.05])
        while env.agents:
            due = [agent for agent in env.agents if infos[agent]["due"]]
            _, _, _, _, infos = env.step({agent: rng.uniform(-1, 1, 1).astype(np.float32) for agent in due})
        told = [info["path"] for info in infos.values()]
        assert [path["rate_mbps"] for path in told] == [8, 10, 8]
        assert [path["one_way_delay_ms"] for path in told] == [30, 5, 25]
        assert [path["queue_packets"] for path in told] == [50, 20, 50]
        assert all(path["third.rate_mbps"] == 12 for path in told)
        assert all(info["summary"]["steps"] > 10 for info in infos.values())
        assert infos["flow_1"]["summary"]["throughput_mbps"] < 10
        hashes.append(infos["flow_0"]["trajectory_hash"])
        rng = np.random.default_rng(1)
    assert hashes[0] == hashes[1]


def test_many_at_once_are_those_one_by_one() -> None:
    arguments: Any = {"paths": DRAWN_LOT, "flows": CROSS, "episode_steps": 30, "learner": {"route": ["third", "first"]}}
    actions = np.random.default_rng(2).uniform(-1, 1, (30, 3, 1)).astype(np.float32)
    envs = VectorLinkEnv(3, threads=2, privileged=True, **arguments)
    envs.reset(seed=5)
    for action in actions:
        *_, infos = envs.step(action)
    ends = infos["final_info"]
    assert ends["_trajectory_hash"].all()
    for index in range(3):
        env = LinkEnv(**arguments)
        env.reset(seed=5 + index)
        for action in actions[:, index]:
            *_, truncated, info = env.step(action)
        assert truncated
        assert info["trajectory_hash"] == ends["trajectory_hash"][index]
        assert info["path"]["rate_mbps"] == ends["path"]["rate_mbps"][index] <= ends["path"]["first.rate_mbps"][index]
    assert len(set(ends["trajectory_hash"])) == 3


def test_checkpoints_continue_on_their_routes() -> None:
    from ccgym.envs.sb3 import SB3LinkVecEnv

    arguments: Any = {"paths": DRAWN_LOT, "flows": CROSS, "episode_steps": 25, "learner": {"route": ["second"]}}
    envs, again = (SB3LinkVecEnv(2, journal=True, **arguments) for _ in range(2))
    envs.seed(1)
    envs.reset()
    rng = np.random.default_rng(3)
    for _ in range(10):
        envs.step(rng.uniform(-1, 1, (2, 1)).astype(np.float32))
    again.restore(envs.capture())
    for _ in range(15):
        action = rng.uniform(-1, 1, (2, 1)).astype(np.float32)
        (*_, infos), (*_, infos_again) = envs.step(action), again.step(action)
    for info, other in zip(infos, infos_again, strict=True):
        assert (info["trajectory_hash"], info["path"]) == (other["trajectory_hash"], other["path"])
        assert info["path"]["rate_mbps"] == info["path"]["second.rate_mbps"]


# --- Distributions ----------------------------------------------------------------------------------------------------


def test_links_are_drawn_one_by_one() -> None:
    paths = read_distribution(DRAWN_LOT)
    one, other, third = (paths.sample(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.spec() == other.spec() != third.spec()
    numbers = one.numbers
    assert numbers["rate_mbps"] == min(numbers["first.rate_mbps"], numbers["second.rate_mbps"], 12)
    # 12mbps.trace alone has no delay.
    delays = numbers["first.one_way_delay_ms"] + numbers["second.one_way_delay_ms"]
    assert numbers["one_way_delay_ms"] == pytest.approx(delays)
    starts = [numbers[f"{name}.start_rate_mbps"] for name in ("first", "second")]
    assert one.start_rate_mbps == min(starts)
    assert one.along(["second"], "uplink", 10**9).start_rate_mbps == starts[1]
    assert one.along(["third"], "uplink", 10**9).start_rate_mbps is None
    assert [link["name"] for link in one.spec()["links"]] == ["first", "second", "third"]
    path = one.path()
    assert path.compile().links == one.links
    assert paths == read_distribution(json.loads(paths.model_dump_json()))


def test_queues_in_products_are_of_their_own_link() -> None:
    link = {"kind": "ranges", "rate": "12mbps", "rtt": "20ms", "queue": {"bdp": 2}}
    drawn = read_distribution({"kind": "links", "links": {"a": link, "b": {**link, "rate": "24mbps"}}}).sample(
        np.random.default_rng(1)
    )
    assert (drawn.numbers["a.queue_packets"], drawn.numbers["b.queue_packets"]) == (40, 80)
    # Those of a path in full count the whole path, on every route over it.
    path = NetworkPath(links={"a": {"rate": "12mbps", "rtt": "20ms"}, "b": {"rate": "24mbps", "rtt": "20ms"}})
    env = LinkEnv(path=path, learner={"route": ["b"]}, duration="1s", privileged=True)
    assert env.reset(seed=1)[1]["privileged"]["queue_limit_packets"] == 40
    assert path.along(["b"]).queue.limit.packets == 40  # type: ignore[union-attr]


def test_parts_of_links_are_any_distributions() -> None:
    paths = {
        "kind": "mixture",
        "parts": [
            {"paths": {"kind": "links", "links": {
                "wifi": {"kind": "extended", "paths": "indigo", "elements": [HELD]},
                "uplink": {"kind": "fixed", "path": {"rate": "20mbps", "rtt": "8ms"}},
            }}},
        ],
    }  # fmt: skip
    _, info = episode(LinkEnv(paths=paths, duration="1s", flows=[{"scheme": "cubic", "route": ["uplink"]}]), 1)
    assert info["path"]["uplink.rate_mbps"] == 20
    described = read_distribution(paths).describe()
    assert "2 links in a row" in described["summary"]
    assert "parts[0].uplink: rate" in {row["name"] for row in described["numbers"]}
    # What a link has is no range of paths.
    assert Training(read_distribution(DRAWN_LOT)).range is None


def test_how_long_a_changing_capacity_is_known() -> None:
    """A link that is never the slowest of all may be the slowest of a route."""
    changing = [[f"{second}s", f"{20 + second % 2}mbps"] for second in range(200)]
    lot = {"links": {"slow": {"rate": "5mbps", "rtt": "8ms"}, "fast": {"rate": changing, "rtt": "8ms"}}}

    def drawn(learner: dict[str, Any], *flows: Any) -> dict[str, Any]:
        rng = np.random.default_rng(1)
        source = read_distribution({"kind": "fixed", "path": lot})
        made = draw_episode(source, rng, [read_learner(learner)], read_flows(flows))
        spec: dict[str, Any] = json.loads(made.spec)
        return spec

    assert drawn({})["duration"] == HORIZON
    assert "facts" not in {key for key, value in drawn({})["flows"][0].items() if value is not None}
    for spec in (drawn({"route": ["fast"]}), drawn({}, {"scheme": "cubic", "route": ["fast"]})):
        assert spec["duration"] < HORIZON
        own = next(flow["facts"] for flow in spec["flows"] if flow.get("facts"))
        starts = [start for start, _ in own["capacity"]]
        assert all(early < late for early, late in pairwise(starts))
        assert {rate for _, rate in own["capacity"]} == {20_000_000, 21_000_000}


def test_the_best_window_is_that_of_the_route() -> None:
    agent = {**read_agent("indigo").model_dump(mode="json"), "expert": {"kind": "best_window"}}
    lot = {"links": {"known": "77.72mbps", "other": {"rate": "5mbps", "rtt": "8ms"}}}

    def window(path: Any, learner: dict[str, Any]) -> Any:
        made = draw_episode(
            read_distribution({"kind": "fixed", "path": path}), np.random.default_rng(1), [read_learner(learner)],
            agent=read_agent(agent),
        )  # fmt: skip
        return json.loads(made.spec)["flows"][0]["params"].get("expert_window")

    assert window("77.72mbps", {}) == window(lot, {"route": ["known"]}) is not None
    assert window(lot, {}) is None


def test_from_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "lot.yaml"
    file.write_text(
        "extends: aurora\n"
        "environment:\n"
        "  paths:\n"
        "    kind: links\n"
        "    links:\n"
        "      access: {kind: ranges, rate: {uniform: [5mbps, 20mbps]}, rtt: 10ms}\n"
        "      core: {kind: ranges, rate: {uniform: [5mbps, 20mbps]}, rtt: {uniform: [5ms, 40ms]}}\n"
        "  flows: [{scheme: cubic, route: [core]}]\n"
        "  learner: {route: [access, core]}\n"
        "  episode: {steps: 20}\n"
    )
    env = LinkEnv(str(file))
    one, other, third = (episode(env, seed)[1] for seed in (1, 1, 2))
    assert one["trajectory_hash"] == other["trajectory_hash"] != third["trajectory_hash"]
    assert one["path"]["rate_mbps"] == min(one["path"]["access.rate_mbps"], one["path"]["core.rate_mbps"])


# --- What makes no sense ----------------------------------------------------------------------------------------------


def links(**parts: Any) -> dict[str, Any]:
    return {"kind": "links", "links": parts}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": LOT, "learner": {"route": ["secnd"]}}, "unknown-name at learners[0]: route[0]"),
        ({"path": LOT, "learner": {"route": ["first", "first"]}}, "unknown-name at learners[0]: route[1]"),
        ({"path": LOT, "flows": ["cubic", {"scheme": "cubic", "route": ["x"]}]}, "unknown-name at flows[1]: route[0]"),
        ({"path": "12mbps", "learner": {"route": ["first"]}}, "unknown-name at learners[0]: route[0]"),
        ({"path": LOT, "learner": {"route": ["third"], "rtt": "20ms"}}, "out-of-range at learners[0]"),
        ({"paths": links()}, "wrong-count at paths.links"),
        ({"paths": links(**{"a:b": DRAWN})}, "name-invalid at paths.links: links.a:b"),
        ({"paths": links(a={"kind": "fixed", "path": LOT})}, "name-invalid at paths.links: links.a"),
        ({"paths": links(a={**DRAWN, "rat": "3mbps"})}, "unknown-key at paths.links.a.rat"),
        ({"paths": links(a=DRAWN_LOT)}, "name-invalid at paths.links: links.a"),
        ({"paths": LOT}, "key-missing at paths"),
        ({"paths": {"kind": "extended", "paths": DRAWN_LOT, "elements": [HELD]}}, "paths-unsuitable at elements"),
        ({"path": LOT, "backend": "emulated"}, "backend-unsuitable"),
        ({"path": LOT, "backend": "mahimahi"}, "backend-unsuitable"),
        ({"path": "12mbps", "learner": {"reverse": True}, "backend": "emulated"}, "backend-unsuitable"),
    ],
)
def test_mistakes_are_explained(arguments: dict[str, Any], words: str) -> None:
    with refused(ConfigError, words):
        LinkEnv(duration="1s", **arguments).reset(seed=1)
