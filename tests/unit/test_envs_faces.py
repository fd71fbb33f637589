"""What all interfaces of the environments share: settings, options, order of calls, copies, pictures, marks."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccgym
from ccgym.envs import LinkEnv, SB3LinkVecEnv, VectorLinkEnv, parallel_env
from ccgym.errors import ConfigError
from tests.refusals import refused

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}
FACES: dict[str, Any] = {
    "single": LinkEnv,
    "vector": lambda **arguments: VectorLinkEnv(2, **arguments),
    "sb3": lambda **arguments: SB3LinkVecEnv(2, **arguments),
    "parallel": lambda **arguments: parallel_env(2, **arguments),
}
every_face = pytest.mark.parametrize("face", FACES)


def begin(env: Any, seed: int | None = 1, options: Any = None) -> None:
    if not isinstance(env, SB3LinkVecEnv):
        env.reset(seed=seed, options=options)
        return
    if seed is not None:
        env.seed(seed)
    env.set_options(options)
    env.reset()


def act(env: Any, face: str) -> Any:
    if face == "parallel":
        return env.step({agent: np.full(1, 0.1, np.float32) for agent in env.possible_agents})
    return env.step(np.full((2, 1) if face == "sb3" else env.action_space.shape, 0.1, np.float32))


@every_face
def test_single_keys_are_set(face: str) -> None:
    env = FACES[face](config="aurora", set={"agent.action.bounds": [-2, 2]})
    space = env.action_space("flow_1") if face == "parallel" else getattr(env, "single_action_space", env.action_space)
    assert space.high.tolist() == [2.0]


@every_face
def test_nothing_steps_before_a_reset_or_after_close(face: str) -> None:
    env = FACES[face](path=PATH)
    with refused(ConfigError, "call-order"):
        _ = env.trajectory_hash
    for _ in range(2):
        with refused(ConfigError, "call-order"):
            act(env, face)
        begin(env)
        act(env, face)
        env.close()
        env.close()


@every_face
@pytest.mark.parametrize("name", ["pth", "reset_mask", "reset_masc"])
def test_unknown_options_are_refused(face: str, name: str) -> None:
    env, options = FACES[face](path=PATH), {name: PATH if name == "pth" else np.array([True, False])}
    if face == "parallel":  # PettingZoo's own test passes one
        with pytest.warns(UserWarning, match=name):
            begin(env, options=options)
    elif (face, name) != ("vector", "reset_mask"):
        with refused(ConfigError, "unknown-argument at options"):
            begin(env, options=options)


@every_face
def test_a_copy_continues_the_random_streams(face: str) -> None:
    env = FACES[face](config="aurora", flows=["cubic"])
    begin(env)
    again, hashes = pickle.loads(pickle.dumps(env)), []
    with refused(ConfigError, "call-order"):
        act(again, face)
    for one in (env, again):
        begin(one, seed=None)
        act(one, face)
        hashes.append(one.trajectory_hash)
    assert hashes[0] == hashes[1]


@every_face
def test_images(face: str) -> None:
    env = FACES[face](path={**PATH, "loss": "1%"}, render_mode="rgb_array")
    plain = FACES[face](path={**PATH, "loss": "1%"})
    for one in (env, plain):
        begin(one)
    empty = env.render()
    for _ in range(30):
        act(env, face), act(plain, face)
    assert env.trajectory_hash == plain.trajectory_hash, "a picture changes nothing"
    images, blank = (image if face == "vector" else (image,) for image in (env.render(), empty))
    height = 720 if face in ("single", "vector") else 1440
    assert [image.shape for image in images] == [(height, 800, 3)] * (2 if face == "vector" else 1)
    assert images[0].dtype == np.uint8
    assert len(np.unique(images[0].reshape(-1, 3), axis=0)) > 50
    assert (images[0] != blank[0]).mean() > 0.01


def test_text() -> None:
    for face in ("single", "parallel"):
        env = FACES[face](path=PATH, render_mode="ansi")
        begin(env)
        assert "no step yet\n" in env.render()
        for _ in range(80):
            act(env, face)
        text = env.render()
        assert all(word in text for word in ("step", "rate", "RTT", "queue", "loss", "action", "Mbit/s", "▁"))
        assert ("flow_1" in text) == (face == "parallel")
        assert max(map(len, text.splitlines())) <= 120


def test_there_are_no_pictures_without_render_mode_or_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(ConfigError, "argument-missing"):
        parallel_env(2, path=PATH).render()
    with refused(ConfigError, "argument-missing"):
        SB3LinkVecEnv(1, path=PATH).env_method("render")
    with refused(ConfigError, "unknown-choice at render_mode"):
        VectorLinkEnv(render_mode="human")
    env = LinkEnv(path=PATH, render_mode="rgb_array")
    env.reset(seed=1)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refused(ccgym.PlatformError, "package-missing at render_mode='rgb_array'"):
        env.render()


# --- Marks -----------------------------------------------------------------------------------------------------------

MARKING = {"rate": "12mbps", "rtt": "100ms", "queue": {"kind": "codel", "limit": "2bdp", "ecn": True}}
STEADY = Path(__file__).parent / "data" / "policies" / "steady.onnx"


@pytest.mark.parametrize("ecn", [True, False])
def test_an_agent_with_ecn_sees_marks(ecn: bool) -> None:
    agent = {
        "ecn": ecn,
        "clock": "50ms",
        "observation": {"features": [{"signal": "ce_fraction", "clip": [0, 1]}]},
        "action": {"map": {"kind": "exponential", "base": 1.05}, "target": "rate"},
        "reward": {"terms": [{"term": "marks", "weight": -1}]},
        "startup": "2mbps",
    }
    env = LinkEnv(agent=agent, path=MARKING, episode_steps=150)
    env.reset(seed=1)
    steps = [env.step(np.ones(1, np.float32)) for _ in range(100)]
    seen, paid = max(step[0][0] for step in steps), sum(float(step[1]) for step in steps)
    assert (seen > 0.1, paid < -0.5) == (ecn, ecn)
    assert ecn or seen == paid == 0


def test_a_deployed_agent_with_ecn_is_marked_instead_of_dropped(tmp_path: Path) -> None:
    card, results = json.loads(STEADY.with_suffix(".json").read_text()), []
    for ecn in (False, True):
        file = tmp_path / f"{ecn}.onnx"
        file.write_bytes(STEADY.read_bytes())
        file.with_suffix(".json").write_text(json.dumps({**card, "agent": {**card["agent"], "ecn": ecn}}))
        queue = {**MARKING["queue"], "target": "1ms", "interval": "20ms"}
        run = ccgym.simulate({**MARKING, "queue": queue}, [str(file)], "10s", record=ccgym.Record(packets=False))
        results.append((run.link.drops > 0, json.loads(run.native.summary())["link"]["marks"] > 0))
    assert results == [(True, False), (False, True)]
