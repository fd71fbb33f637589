"""The simulator against recorded runs with real packets, of 30 s each, on Pantheon's six calibrated paths.

The recordings are from our emulated path, from mahimahi and from the kernel's TCP: record/record_real_path.py.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import pytest

from ccgym import Job, NetworkPath, simulate_many
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.run import parse_contenders

RECORDED: Final = Path(__file__).parent / "recorded" / "real_path" / "summary.json.gz"
CALIBRATED: Final = (
    "0.57mbps-poisson", "2.64mbps-poisson", "3.04mbps-poisson", "77.72mbps", "100.42mbps", "114.68mbps"
)  # fmt: skip
RUNS: Final = 3
"""Runs of each scheme that are recorded per calibrated path."""

BEYOND: Final = {
    ("0.57mbps-poisson", "bbr"): 0.01,
    ("0.57mbps-poisson", "cubic"): 0.015,
    ("2.64mbps-poisson", "cubic"): 0.025,
    ("3.04mbps-poisson", "bbr"): 0.015,
    ("3.04mbps-poisson", "cubic"): 0.015,
    ("100.42mbps", "bbr"): 0.08,
}
"""Rows whose p95 delay differs by more than 2 ms, and by which fraction of it; docs/studies/validation.md says why."""


class Means(NamedTuple):
    """Means over the runs of a scheme."""

    throughput_mbps: float
    delay_p95_ms: float
    loss: float


@cache
def experiments() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))["experiments"]
    return recorded


@cache
def recorded(experiment: str, backend: str, scheme: str) -> Means:
    rows = [r for r in experiments()[experiment]["rows"] if (r["backend"], r["scheme"]) == (backend, scheme)]
    assert rows, f"{experiment}: nothing recorded of {scheme} on {backend}"
    return Means(*(fmean(row[field] for row in rows) for field in Means._fields))


@cache
def simulated(path: str, scheme: str, runs: int = RUNS) -> Means:
    """From the seeds of the recorded runs: what the path draws at random is the same."""
    experiment = Experiment(NetworkPath.named(path), parse_contenders(scheme), runs=runs)
    found = simulate_many([Job(path, [scheme], "30s", run.seed) for run in experiment.planned()])
    return Means(*(fmean(getattr(run.total, field) for run in found) for field in Means._fields))


@pytest.mark.parametrize("scheme", ["bbr", "cubic"])
@pytest.mark.parametrize("path", CALIBRATED)
def test_the_simulator_agrees_with_the_emulated_path(path: str, scheme: str) -> None:
    """5 % of throughput, 2 ms of p95 delay, 1 point of loss."""
    real, virtual = recorded(f"calibrated {path}", "emulated", scheme), simulated(path, scheme)
    assert virtual.throughput_mbps == pytest.approx(real.throughput_mbps, rel=0.05)
    allowed = BEYOND.get((path, scheme), 0.0) * real.delay_p95_ms
    assert virtual.delay_p95_ms == pytest.approx(real.delay_p95_ms, abs=max(2.0, allowed))
    assert virtual.loss == pytest.approx(real.loss, abs=0.01)


@pytest.mark.parametrize("backend", ["emulated", "mahimahi"])
def test_the_simulated_bbr_is_the_kernel_s(backend: str) -> None:
    """Five runs each on 77.72mbps: 3 % of throughput, 1.5 ms, 0.7 points of loss. (Cubic's single runs differ by far
    more than their means where loss is random, which mahimahi draws again in every run.)
    """
    kernel, virtual = recorded("published", backend, "tcp_bbr"), simulated("77.72mbps", "bbr", runs=5)
    assert virtual.throughput_mbps == pytest.approx(kernel.throughput_mbps, rel=0.03)
    assert virtual.delay_p95_ms == pytest.approx(kernel.delay_p95_ms, abs=1.5)
    assert virtual.loss == pytest.approx(kernel.loss, abs=0.007)
