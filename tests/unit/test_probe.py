"""The probe of an empty path: what it lets pass, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.backends import backend
from ccgym.evaluation.probe import probe
from tests.refusals import refused

SIMULATOR = backend("sim")
"""Virtual time knows the same paths, and is quicker."""


def trace(directory: Path, times_ms: Sequence[int]) -> str:
    file = directory / "gaps.trace"
    file.write_text("".join(f"{time}\n" for time in times_ms))
    return str(file)


@pytest.mark.parametrize(
    "name", ["77.72mbps", "0.57mbps-poisson", "2.64mbps-poisson", "3.04mbps-poisson", "114.68mbps", "1mbps-200ms"]
)
def test_paths_as_they_are_meant_pass(name: str) -> None:
    path = NetworkPath.from_any(name)
    found = probe(path, SIMULATOR, seed=1)
    assert found.one_way_delay_ms > found.own_ms - 2, "none is faster than the path"
    assert found.packets >= 8


def test_a_link_that_is_shut_for_long_is_refused(tmp_path: Path) -> None:
    path = NetworkPath.from_mahimahi(f"mm-link {trace(tmp_path, [1499] * 2000 + [1500] * 2166)} 12mbps", name="gaps")
    with refused(ConfigError, "path-blocked at gaps"):
        probe(path, SIMULATOR, seed=1)


def test_a_link_that_never_opens_in_time_is_refused(tmp_path: Path) -> None:
    path = NetworkPath.from_mahimahi(f"mm-link {trace(tmp_path, [60_000] * 1000)} 12mbps", name="shut")
    with refused(ConfigError, "path-blocked at shut"):
        probe(path, SIMULATOR, seed=1)


def test_gaps_that_the_catalog_intends_pass() -> None:
    path = NetworkPath.from_mahimahi("mm-link 4166-every-1500 12mbps", name="lesson")
    assert probe(path, SIMULATOR, seed=1).one_way_delay_ms > 500
