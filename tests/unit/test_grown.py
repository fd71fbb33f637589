"""Curricula that grow by what is measured: points of ranges, shares of the mixture, bins, states, mistakes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccgym.config.bottleneck import Ranges
from ccgym.config.curriculum import curriculum_of, read_paths
from ccgym.config.distributions import Mixture, read_distribution
from ccgym.config.grown import grown_weights
from ccgym.config.random_variables import PLAIN, RATE, read_random_variable
from ccgym.config.sampled_path import PathDistribution
from ccgym.errors import CcgymError, ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.environments import passive_agent
from tests.refusals import refused

SECOND = 10**9
SEARCH: dict[str, Any] = {"kind": "gap_search", "paths": "genet_rl3"}
BINS: dict[str, Any] = {"kind": "gap_bins", "paths": "genet_rl3", "bounds": [100, 200, 300]}


def space(name: str = "genet_rl3") -> Ranges:
    found = read_distribution(name)
    return found


# --- Points -----------------------------------------------------------------------------------------------------------


def test_a_range_has_a_value_at_every_place() -> None:
    even = read_random_variable({"uniform": [2, 6]}, PLAIN)
    log = read_random_variable({"log_uniform": ["1mbps", "100mbps"]}, RATE)
    assert [even.at(part).values[0] for part in (0, 0.25, 1)] == [2, 3, 6]
    assert [log.at(part).values[0] for part in (0, 0.5, 1)] == [1e6, 1e7, 1e8]
    loss = space().loss
    assert loss.at(0.1).bounds() == (0.0, 0.0), "below 1e-4 there is no loss"
    assert loss.at(1).bounds()[1] == pytest.approx(0.05001)


def test_the_axes_are_the_ranges_of_the_paths() -> None:
    assert list(space().ranges()) == ["rate.max", "rate.every", "one_way_delay", "queue", "loss"]
    assert list(space("genet_rl1").ranges()) == ["rate.max", "rate.min", "rate.every", "one_way_delay", "loss"]


@given(place=st.lists(st.floats(0, 1), min_size=5, max_size=5), name=st.sampled_from(["genet_rl1", "genet_rl3"]))
def test_a_point_lies_in_its_ranges_and_survives_yaml(place: list[float], name: str) -> None:
    whole = space(name)
    point = whole.at(dict(zip(whole.ranges(), place)))
    assert not point.ranges()
    assert read_distribution(point.model_dump(mode="json")) == point
    for row, wide in zip(point.rows(), whole.rows()):
        low, high, least, most = (float(end or 0) for end in (row["low"], row["high"], wide["low"], wide["high"]))
        assert least * (1 - 1e-9) <= low <= high <= most * (1 + 1e-9)
    one, other = (point.sample(np.random.default_rng(seed), 30 * SECOND).numbers for seed in (1, 2))
    assert {k: v for k, v in one.items() if k != "rate_mbps" and k != "queue_packets"} == {
        k: v for k, v in other.items() if k != "rate_mbps" and k != "queue_packets"
    }, "only how the rate changes differs"


# --- Shares -----------------------------------------------------------------------------------------------------------


def test_shares_of_what_joins() -> None:
    assert grown_weights(1, 0.3) == [1.0]
    assert grown_weights(3, 0.3) == pytest.approx([0.49, 0.21, 0.3])
    fifteen = grown_weights(16, 0.3)
    assert sum(fifteen) == pytest.approx(1)
    assert fifteen[0] == pytest.approx(0.7**15)


def test_the_mixture_is_drawn_by_the_shares() -> None:
    curriculum = curriculum_of(read_paths(SEARCH))
    curriculum.points += [{"queue": 0.25}, {"queue": 0.75}]
    rng, mixture = np.random.default_rng(1), curriculum.distribution(0.5)
    queues = [round(mixture.sample(rng, SECOND).numbers["queue_bdp"], 9) for _ in range(4000)]
    assert queues.count(0.9) / 4000 == pytest.approx(0.21, abs=0.02)
    assert queues.count(2.3) / 4000 == pytest.approx(0.3, abs=0.02)


def test_cl1_has_the_published_shares() -> None:
    """The mixtures of configs/ablations/genet_cl1.yaml are what joining one after the other gives."""
    curriculum = TrainConfig.load("ablations/genet_cl1").environment.curriculum()
    assert isinstance(curriculum.distribution(0.1), Ranges)
    for count in (2, 3, 4, 5):
        mixture = curriculum.distribution(0.2 * count - 0.1)
        assert isinstance(mixture, Mixture)
        assert [part.weight for part in mixture.parts] == pytest.approx(grown_weights(count, 0.3))


# --- A search ---------------------------------------------------------------------------------------------------------


def test_a_search_grows_and_resumes() -> None:
    plan = read_paths(SEARCH)
    curriculum = curriculum_of(plan)
    assert curriculum.distribution(1.0) == plan.paths, "what the policy is measured on"
    assert curriculum.level() == 0
    curriculum.points.append({"loss": 0.5})
    assert curriculum.level() == 1
    fresh = curriculum_of(plan)
    fresh.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
    assert fresh.distribution(0.0) == curriculum.distribution(0.0)
    assert read_paths(plan.model_dump(mode="json")) == plan
    assert "bbr" in plan.describe()["summary"]
    with refused(ConfigError, "resume-changed at curriculum"):
        fresh.load_state_dict({"kind": "stages", "stage": 0, "stages": 1})


# --- Bins -------------------------------------------------------------------------------------------------------------


def lossy(parts: list[float]) -> list[dict[str, float]]:
    return [{"loss": part} for part in parts]


def test_bins_join_by_progress_the_easiest_first() -> None:
    plan = read_paths(BINS)
    curriculum = curriculum_of(plan)
    assert curriculum.distribution(0.9) == plan.paths, "nothing was measured yet"
    # 250 lies in the third bin; the second is empty and does not count.
    curriculum.fill(lossy([0.5, 0.6, 0.7, 0.8]), [-5.0, 250.0, 99.9, 300.0])
    assert curriculum.bins == [lossy([0.5, 0.7]), lossy([0.6]), lossy([0.8])]

    def losses(distribution: PathDistribution) -> set[float]:
        rng = np.random.default_rng(1)
        return {round(distribution.sample(rng, SECOND).numbers["loss"], 6) for _ in range(200)}

    levels = []
    for progress, bins in ((0.0, 1), (0.34, 2), (0.1, 2), (0.7, 3), (1.0, 3)):
        seen = losses(curriculum.distribution(progress))
        assert len(seen) == bins + 1
        levels.append(curriculum.level())
    assert levels == [0, 1, 1, 2, 2], "it never goes back"
    fresh = curriculum_of(plan)
    fresh.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
    assert fresh.distribution(0.0) == curriculum.distribution(0.0)
    with refused(ConfigError, "resume-changed at curriculum"):
        fresh.load_state_dict({"kind": "gap_search", "points": []})


# --- Mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"kind": "gap_serch"}, "unknown-kind at paths: kind"),
        ({"paths": "indigo"}, "paths-unsuitable at paths"),
        ({"paths": {"kind": "ranges", "rate": "3mbps", "rtt": "40ms"}}, "paths-unsuitable at paths"),
        ({"weight": 1}, "out-of-range at paths.weight"),
        ({"every": 0}, "out-of-range at paths.every"),
        ({"random": 0}, "out-of-range at paths.random"),
        ({"kapa": 2}, "unknown-key at paths.kapa"),
        ({**BINS, "bounds": [100, 100]}, "order-wrong at paths: bounds[1]"),
    ],
)
def test_mistakes_are_explained(changes: dict[str, Any], part: str) -> None:
    with refused(ConfigError, part):
        read_paths(changes if "bounds" in changes else {**SEARCH, **changes})


def test_a_search_needs_the_simulator_and_a_known_scheme() -> None:
    with refused(ConfigError, "backend-unsuitable at environment.paths"):
        TrainConfig.load("genet", ["environment.backend=emulated", "algorithm.n_envs=1", "algorithm.batch_size=128"])
    with refused(CcgymError, "unknown-scheme at environment.paths.baseline: bbrr"):
        passive_agent(TrainConfig.load("genet").agent, "bbrr", "environment.paths.baseline")
