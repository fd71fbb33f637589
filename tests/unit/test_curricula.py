"""Curricula: which distribution of paths a training has at which progress, and how they resume."""

from __future__ import annotations

import json
from typing import Any

from ccgym.config.bottleneck import Ranges
from ccgym.config.curriculum import curriculum_of, read_paths
from ccgym.config.distributions import Named
from ccgym.errors import ConfigError
from tests.refusals import refused

STAGES: dict[str, Any] = {
    "kind": "stages",
    "stages": [{"until": 0.3, "paths": "genet_rl1"}, {"until": 1, "paths": "indigo"}],
}


def test_stages_follow_the_progress_and_resume() -> None:
    plan = read_paths(STAGES)
    curriculum = curriculum_of(plan)
    assert isinstance(curriculum.distribution(0.0), Ranges)
    assert isinstance(curriculum.distribution(0.3), Named)
    assert isinstance(curriculum.distribution(0.0), Named), "it never goes back"
    assert curriculum.level() == 1
    fresh = curriculum_of(plan)
    fresh.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
    assert fresh.state_dict() == curriculum.state_dict()
    assert [stage["until"] for stage in plan.describe()["stages"]] == [0.3, 1]
    assert read_paths(plan.model_dump(mode="json")) == plan


def test_a_distribution_is_a_curriculum_that_never_changes() -> None:
    distribution = read_paths("aurora")
    curriculum = curriculum_of(distribution)
    assert curriculum.distribution(0.9) is distribution
    curriculum.load_state_dict(curriculum.state_dict())
    assert curriculum.level() == 0
    with refused(ConfigError, "resume-changed at curriculum"):
        curriculum.load_state_dict({"kind": "stages", "stage": 0, "stages": 2})
    plan = read_paths(STAGES)
    with refused(ConfigError, "resume-changed at curriculum"):
        curriculum_of(plan).load_state_dict({"kind": "stages", "stage": 0, "stages": 3})
