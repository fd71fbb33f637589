"""Decisions per second of the environments on Aurora's paths: one JSON line per result.

Each result is the best of several runs on one thread, resets included. The number of packets per decision depends on
the actions: random actions overload the links, and every fourth packet is lost; the pretrained policy just fills
them. Its actions are recorded first, so that only the environment is timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gymnasium
import numpy as np
import numpy.typing as npt

from ccgym.config.distributions import read_distribution
from ccgym.envs.vector_env import VectorLinkEnv

Actions = Sequence[npt.NDArray[np.float32]]

COUNT = 64
STEPS = 800
RUNS = 5


def main(words: Sequence[str]) -> int:
    """Run the benchmarks whose names contain one of the words."""

    def emit(name: str, measure: Callable[[], dict[str, float]], unit: str = "steps/s") -> None:
        if not words or any(word in name for word in words):
            print(json.dumps({"name": name, "unit": unit, **measure()}), flush=True)

    rng = np.random.default_rng(1)
    one = [rng.standard_normal(1, dtype=np.float32) for _ in range(10 * STEPS)]
    many = [rng.standard_normal((COUNT, 1), dtype=np.float32) for _ in range(STEPS)]
    emit("env_steps_per_second/single/random", lambda: best(lambda: single(one)))
    emit(f"env_steps_per_second/vector_{COUNT}/random", lambda: best(lambda: vector(many)))
    emit(f"env_steps_per_second/vector_{COUNT}/pretrained", lambda: best(lambda: vector(by_the_policy())))
    emit("env_draws_per_second/aurora", lambda: best(draws), unit="draws/s")
    return 0


def best(run: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Return the fastest of several runs: noise can only slow a run down."""
    return max((run() for _ in range(RUNS)), key=lambda result: result["value"])


def single(actions: Actions) -> dict[str, float]:
    """Measure one environment after another, as from ``gymnasium.make``."""
    env = gymnasium.make("ccgym:ccgym/Aurora-v0")
    env.reset(seed=1)
    began = time.perf_counter()
    for action in actions:
        *_, truncated, _ = env.step(action)
        if truncated:
            env.reset()
    return {"value": len(actions) / (time.perf_counter() - began)}


def make() -> VectorLinkEnv:
    """Return the environments, always with the same paths."""
    env = VectorLinkEnv(COUNT, "aurora", threads=1, copy=False)
    env.reset(seed=1)
    return env


def vector(actions: Actions) -> dict[str, float]:
    """Measure all environments together."""
    env = make()
    began = time.perf_counter()
    for action in actions:
        env.step(action)
    value = COUNT * len(actions) / (time.perf_counter() - began)
    # A second run counts the packets, since counting would slow down the timed run.
    env = make()
    packets = [
        info["interval"]["sent_packets"].mean()
        for info in (env.step(action)[4] for action in actions)
        if "interval" in info
    ]  # if all episodes end at the same time, there are only final entries
    return {"value": value, "packets_per_step": round(float(np.mean(packets)), 1)}


def draws() -> dict[str, float]:
    """Measure the draw of paths, as in each reset."""
    distribution, rng = read_distribution("aurora"), np.random.default_rng(1)
    began = time.perf_counter()
    for _ in range(STEPS):
        distribution.sample(rng)
    return {"value": STEPS / (time.perf_counter() - began)}


_recorded: list[npt.NDArray[np.float32]] = []


def by_the_policy() -> Actions:
    """Return the actions of the pretrained policy in these environments."""
    if not _recorded:
        from ccgym.schemes.policies import find

        policy = find("aurora")
        if policy is None:
            raise SystemExit("agents/aurora has no policy")
        env = make()
        observations, _ = env.reset(seed=1)
        for _ in range(STEPS):
            actions, _ = policy.native.decide(np.array(observations))
            _recorded.append(actions)
            observations, *_ = env.step(actions)
    return _recorded


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
