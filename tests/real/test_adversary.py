"""A find of the adversary, with real packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.adversary import run_adversary
from ccgym.experiments.adversary_finds import FAR
from ccgym.experiments.adversary_search import AdversarySpec
from ccgym.experiments.request import Request
from ccgym.units import Nanoseconds


@pytest.mark.real("root", "netns", "tun")
@pytest.mark.long
def test_a_scheme_that_is_far_from_the_oracle_is_so_with_real_packets(tmp_path: Path) -> None:
    run_ns = Nanoseconds(3_000_000_000)
    spec = AdversarySpec(evaluations=16, duration=run_ns, runs=1, finds=1, max_rate_mbps=20.0)
    request = Request(out=tmp_path, schemes=parse_contenders("fixed_window:cwnd=8"), runtime_ns=run_ns, confirm=1)
    results = run_adversary(spec, request)
    assert results.unconfirmed == ""
    real = results.finds[0].real
    assert real.gap >= FAR / 2
