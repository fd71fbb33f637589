"""The simulator, the emulated path and mahimahi against each other, from recorded runs of 30 s and more.

Recorded by record/record_real_path.py.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import pytest

RECORDED: Final = Path(__file__).parent / "recorded" / "real_path" / "summary.json"
CALIBRATED: Final = (
    "0.57mbps-poisson", "2.64mbps-poisson", "3.04mbps-poisson", "77.72mbps", "100.42mbps", "114.68mbps"
)  # fmt: skip

PUBLISHED_BBR: Final = {"throughput_mbps": (72.70, 2.0), "delay_p95_ms": (65.94, 2.0), "loss": (0.0343, 0.01)}
"""Pantheon's BBR on 77.72mbps, and how near the kernel's over our path must come."""


BEYOND: Final = {
    ("0.57mbps-poisson", "bbr"): 0.01,
    ("0.57mbps-poisson", "cubic"): 0.015,
    ("2.64mbps-poisson", "cubic"): 0.025,
    ("3.04mbps-poisson", "bbr"): 0.015,
    ("3.04mbps-poisson", "cubic"): 0.015,
    ("100.42mbps", "bbr"): 0.08,
}
"""Rows whose p95 delay is further apart than 2 ms, and how far as a share of it; docs/validation.md says why."""


class Means(NamedTuple):
    """Means over the runs of a scheme."""

    throughput_mbps: float
    delay_p95_ms: float
    loss: float


@cache
def experiments() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))["experiments"]
    return recorded


@cache
def recorded(experiment: str, backend: str, scheme: str) -> Means:
    rows = [r for r in experiments()[experiment]["rows"] if (r["backend"], r["scheme"]) == (backend, scheme)]
    assert rows, f"{experiment}: nothing recorded of {scheme} on {backend}"
    return Means(*(fmean(row[field] for row in rows) for field in Means._fields))


@pytest.mark.parametrize(("field", "target"), PUBLISHED_BBR.items())
def test_kernel_bbr_over_our_path_is_the_published_one(field: str, target: tuple[float, float]) -> None:
    """Five runs of 30 s."""
    assert getattr(recorded("published", "emulated", "tcp_bbr"), field) == pytest.approx(target[0], abs=target[1])


@pytest.mark.parametrize("scheme", ["tcp_bbr", "tcp_cubic"])
@pytest.mark.parametrize("experiment", ["published", "without random loss"])
def test_mahimahi_agrees_with_our_path(experiment: str, scheme: str) -> None:
    """The kernel's flows through other people's link: 3 % of throughput, 1.5 ms, 0.7 points of loss. With random loss,
    which mahimahi draws anew in every run, Cubic's single runs differ by far more than their means.
    """
    ours, theirs = (recorded(experiment, backend, scheme) for backend in ("emulated", "mahimahi"))
    assert ours.throughput_mbps == pytest.approx(theirs.throughput_mbps, rel=0.03)
    assert ours.delay_p95_ms == pytest.approx(theirs.delay_p95_ms, abs=1.5)
    assert ours.loss == pytest.approx(theirs.loss, abs=0.007)


@pytest.mark.parametrize("scheme", ["tcp_bbr", "tcp_cubic"])
def test_mahimahi_agrees_on_a_cellular_trace(scheme: str) -> None:
    """Throughput within 5 %: two runs of a minute. mahimahi's trace begins a second before its flows."""
    ours, theirs = recorded("cellular", "emulated", scheme), recorded("cellular", "mahimahi", scheme)
    assert ours.throughput_mbps == pytest.approx(theirs.throughput_mbps, rel=0.05)


@pytest.mark.parametrize("scheme", ["bbr", "cubic"])
def test_our_schemes_are_near_the_kernel_s(scheme: str) -> None:
    """Throughput within 10 %, on the same path with the same random losses."""
    ours, kernel = recorded("published", "emulated", scheme), recorded("published", "emulated", f"tcp_{scheme}")
    assert ours.throughput_mbps == pytest.approx(kernel.throughput_mbps, rel=0.10)


@pytest.mark.parametrize("scheme", ["bbr", "cubic"])
@pytest.mark.parametrize("path", CALIBRATED)
def test_the_simulator_agrees_with_the_emulated_path(path: str, scheme: str) -> None:
    """5 % of throughput, 2 ms of p95 delay, 1 point of loss, on Pantheon's six calibrated paths."""
    real = recorded(f"calibrated {path}", "emulated", scheme)
    virtual = recorded(f"calibrated {path}", "sim", scheme)
    assert virtual.throughput_mbps == pytest.approx(real.throughput_mbps, rel=0.05)
    allowed = BEYOND.get((path, scheme), 0.0) * real.delay_p95_ms
    assert virtual.delay_p95_ms == pytest.approx(real.delay_p95_ms, abs=max(2.0, allowed))
    assert virtual.loss == pytest.approx(real.loss, abs=0.01)
