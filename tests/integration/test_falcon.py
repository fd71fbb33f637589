"""Falcon, our own agent: no run of it collapses. `CCGYM_FALCON_REPORT=FILE` keeps every run's utilization."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.evaluation.simulate import Job, Record, simulate_many

LONG = [pytest.mark.long, pytest.mark.timeout(3600)]


def random_paths(count: int) -> Iterator[NetworkPath]:
    """1 Mbit/s to 1 Gbit/s, round trips of 2 to 300 ms, 0.1 to 8 BDP of buffer, up to 3 % of random loss."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        rate, rtt = 10 ** rng.uniform(0, 3), 2 * 150 ** rng.uniform()
        packets = max(1, math.ceil(10 ** rng.uniform(-1, math.log10(8)) * rate * rtt / 12))
        loss = 0.0 if rng.uniform() < 0.5 else rng.uniform(0, 0.03)
        yield NetworkPath(rate=f"{rate:.3f}mbps", rtt=f"{rtt:.3f}ms", queue=f"{packets}p", loss=loss)


def utilizations(jobs: list[Job]) -> list[float]:
    """Throughput over capacity of each run, start-up included."""
    runs = simulate_many(jobs, record=Record(series=0))
    return [run.total.throughput_mbps / (run.link.capacity_mbps or math.inf) for run in runs]


def keep(used: list[float]) -> None:
    """Add the runs of a test to the report that was asked for."""
    if report := os.environ.get("CCGYM_FALCON_REPORT"):
        with Path(report).open("a", encoding="utf-8") as file:
            file.write(json.dumps(used) + "\n")


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=LONG)])
def test_no_random_path_is_left_unused(count: int) -> None:
    paths = list(random_paths(count))
    used = utilizations([Job(path, ["falcon"], "30s", seed) for seed, path in enumerate(paths, 1)])
    keep(used)
    assert min(used) > 0.2
    assert float(np.mean(used)) > 0.9


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=LONG)])
def test_no_seed_collapses(count: int) -> None:
    path = NetworkPath.named("77.72mbps")
    used = utilizations([Job(path, ["falcon"], "30s", seed) for seed in range(1, count + 1)])
    keep(used)
    assert min(used) > 0.9
