"""Transfers and copies of flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccgym.errors import ConfigError
from ccgym.experiments.transfers import expanded
from ccgym.schemes.flow import flow_spec
from tests.refusals import refused


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


LOG_UNIFORM = {"kind": "log_uniform", "min": "10kB", "max": "1MB"}


def test_transfers_are_a_poisson_process_that_every_scheme_meets() -> None:
    entry = {"every": "100ms", "from": "2s", "to": "42s", "size": LOG_UNIFORM}
    flows = [{"scheme": "reno"}, {"scheme": "$scheme", "profile": "tcp", "transfers": entry}]
    drawn = expanded(flows, rng(3))
    assert drawn == expanded(flows, rng(3)) != expanded(flows, rng(4))
    assert drawn[0] == {"scheme": "reno"}
    starts = np.array([float(one["start"]) / 1e9 for one in drawn[1:]])
    assert 2 <= starts.min() <= starts.max() < 42
    gaps = np.diff(starts)
    assert len(starts) == pytest.approx(400, abs=60)
    assert gaps.mean() == pytest.approx(0.1, rel=0.2) == gaps.std(), "exponential: both are the mean"
    read = [flow_spec({**one, "scheme": "reno"}) for one in drawn[1:]]
    sizes = np.array([one.source.native()["bytes"] for one in read])
    assert 10_000 <= sizes.min() <= sizes.max() <= 1_000_000
    assert np.median(sizes) == pytest.approx(100_000, rel=0.3)


def test_transfers_offer_a_load() -> None:
    """A rate in place of the gap: what they offer is that of any law, here a measured table."""
    table = {"kind": "table", "sizes": ["1kB", "10kB", "100kB", "1MB"], "fractions": [0.1, 0.5, 0.9, 1.0]}
    entry = {"rate": "6mbps", "to": "40s", "size": table}
    drawn = expanded([{"scheme": "reno", "transfers": entry}], rng(5))
    sizes = np.array([flow_spec(one).source.native()["bytes"] for one in drawn])
    assert sizes.min() >= 1000
    assert sizes.max() <= 1_000_000
    assert sizes.sum() * 8 / 40 == pytest.approx(6e6, rel=0.2)
    assert np.mean(sizes <= 10_000) == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transfers": {"every": "1s", "to": "5s"}}, "key-missing at [0].transfers: size"),
        ({"transfers": {"every": "1us", "to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        ({"transfers": {"rate": "1gbps", "to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        (
            {"transfers": {"every": "1s", "to": "5s", "size": {"kind": "parteo"}}},
            "unknown-kind at [0].transfers: size: kind",
        ),
        (
            {"transfers": {"every": "1s", "to": "5s", "size": {**LOG_UNIFORM, "max": "1kB"}}},
            "wrong-type at [0].transfers",
        ),
        ({"transfers": {"to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        ({"transfers": {"every": "1s", "rate": "1mbps", "to": "5s", "size": "1kB"}}, "wrong-type at [0].transfers"),
        ({"transfers": {"every": "1s", "to": "5s", "size": "1kB"}, "start": "1s"}, "options-conflict at [0].transfers"),
        ({"copies": 0}, "out-of-range at [0]"),
        ({"copies": 1001}, "out-of-range at [0]"),
        ({"copies": 1.5}, "wrong-type at [0]"),
        ({"copies": "two"}, "wrong-type at [0]"),
        ({"copies": True}, "wrong-type at [0]"),
        ({"copies": 2, "transfers": {}}, "wrong-type at [0]"),
    ],
)
def test_transfers_and_copies_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with refused(ConfigError, message):
        expanded([{"scheme": "reno", **changes}], rng())


def test_copies_are_equal_flows() -> None:
    flows = [{"scheme": "$scheme", "source": "64kB", "copies": 3.0}, {"scheme": "reno"}]
    assert expanded(flows, rng()) == [{"scheme": "$scheme", "source": "64kB"}] * 3 + [{"scheme": "reno"}]
