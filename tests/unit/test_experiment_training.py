"""What a policy was trained on: the range of rates and delays, and whether training could have drawn a path."""

from __future__ import annotations

from typing import Any

import pytest

from ccgym.config.curriculum import read_paths
from ccgym.config.path import NetworkPath
from ccgym.experiments.expand import conditions
from ccgym.experiments.load import load_experiment
from ccgym.experiments.scorecard_spec import ScorecardSpec
from ccgym.experiments.spec import ExperimentSet
from ccgym.experiments.training import Training, range_of_rows
from ccgym.experiments.views.verdicts import inside_range
from ccgym.schemes.reading import parse_scheme

# --- The range of training --------------------------------------------------------------------------------------------


def test_the_card_tells_the_range_of_training() -> None:
    training = Training.of_card({"config": {"environment": {"paths": "aurora"}}})
    assert training is not None
    aurora = training.range
    assert aurora is not None
    assert aurora.text == "1.2–6 Mbit/s, 50–500 ms one way"
    assert aurora.contains(6.0, 50.0)
    assert not aurora.contains(10.0, 100.0)
    assert not aurora.contains(3.0, 10.0)
    fairness = load_experiment("stress_tests/intra_rtt_fairness", quick=True)
    assert isinstance(fairness, ExperimentSet)
    found = conditions(fairness.experiments[0])
    assert {inside_range(one, aurora) for one in found} == {False}
    assert {inside_range(one, None) for one in found} == {None}


def test_changing_rates_mixtures_and_stages_have_ranges() -> None:
    genet = range_of_rows(read_paths("genet_rl3").rows())
    assert genet is not None
    assert genet.contains(0.1, 2.0)
    assert genet.contains(100.0, 200.0)
    parts = [
        {"paths": {"kind": "ranges", "rate": "10mbps", "one_way_delay": "10ms", "queue": {"bdp": 1}}},
        {"paths": {"kind": "ranges", "rate": "50mbps", "rtt": "200ms", "queue": {"bdp": 1}}},
    ]
    mixture = range_of_rows(read_paths({"kind": "mixture", "parts": parts}).rows())
    assert mixture is not None
    assert mixture.contains(10, 10)
    assert mixture.contains(50, 100)
    assert not mixture.contains(50, 10), "each part has its own box"
    stages = {"kind": "stages", "stages": [{"until": 0.5, **parts[0]}, {"until": 1.0, **parts[1]}]}
    assert range_of_rows(read_paths(stages).rows()) == mixture


@pytest.mark.parametrize(
    "training",
    [{}, {"config": None}, {"config": {"environment": {}}}, {"config": {"environment": {"paths": "gone.trace"}}}],
)
def test_a_card_that_does_not_tell(training: dict[str, Any]) -> None:
    found = Training.of_card(training)
    assert found is None or found.range is None


# --- Whether training could have drawn a path ----------------------------------------------------------------------

FAST, SMALL = "77.72mbps", "small-buffer-one-bdp"

WIDE = {
    "kind": "ranges",
    "rate": {"uniform": ["5mbps", "120mbps"]},
    "rtt": {"uniform": ["20ms", "200ms"]},
    "queue": {"bdp": {"uniform": [0.05, 2]}},
    "loss": {"uniform": [0, 0.01]},
}


@pytest.mark.parametrize(
    ("paths", "path", "expected"),
    [
        (None, FAST, None),
        ({"kind": "of another version"}, FAST, None),
        ("indigo", FAST, True),
        ("indigo", "indigo-5mbps-10ms", True),
        ("indigo", SMALL, False),
        ("indigo_calibrated", "indigo-5mbps-10ms", False),
        (FAST, FAST, True),
        ("pantheon-5", FAST, True),
        (FAST, SMALL, False),
        ({"kind": "named", "names": [SMALL]}, SMALL, True),
        ({"kind": "mixture", "parts": [{"paths": FAST}, {"paths": WIDE}]}, SMALL, True),
        ({"kind": "stages", "stages": [{"until": 0.5, "paths": SMALL}, {"until": 1.0, "paths": FAST}]}, SMALL, True),
        ({"kind": "gap_search", "paths": WIDE}, FAST, True),
        ({"kind": "gap_bins", "paths": WIDE, "bounds": [1]}, "indigo-5mbps-10ms", False),
        (WIDE, FAST, True),
        ({**WIDE, "loss": 0}, FAST, False),
        ({**WIDE, "rate": {"uniform": ["5mbps", "70mbps"]}}, FAST, False),
        ({**WIDE, "rtt": {"uniform": ["110ms", "200ms"]}}, FAST, False),
        ({**WIDE, "queue": "1bdp"}, FAST, False),
        ({**WIDE, "queue": {"packets": {"uniform": [50, 100]}}}, FAST, True),
        ({**WIDE, "jitter": {"uniform": ["1ms", "2ms"]}}, FAST, False),
        (WIDE, "indigo-5mbps-10ms", False),  # its queue has no end
        ({**WIDE, "queue": "infinite"}, "indigo-5mbps-10ms", True),
        ({**WIDE, "queue": "infinite"}, FAST, False),
        (WIDE, "policer-12mbps-rtt20", False),  # acknowledgements have a queue of one packet, too
        ({**WIDE, "queue": "infinite"}, "ack-aggregation-slow", False),
        ({**WIDE, "queue": "infinite"}, "ack-aggregation-bursts", False),
        (
            {**WIDE, "rate": {"uniform": ["0.1mbps", "9mbps"]}, "rtt": "176ms", "queue": "130p"},
            "2.64mbps-poisson",
            False,
        ),
        (
            {"kind": "traces", "uplink": ["2.64mbps-poisson"], "rtt": "176ms", "queue": "130p"},
            "2.64mbps-poisson",
            True,
        ),
        (
            {"kind": "traces", "uplink": ["3.04mbps-poisson"], "rtt": "176ms", "queue": "130p"},
            "2.64mbps-poisson",
            False,
        ),
    ],
)
def test_training_draws_a_path(paths: Any, path: str, expected: bool | None) -> None:
    training = Training.of_card({} if paths is None else {"config": {"environment": {"paths": paths}}})
    assert (None if training is None else training.draws(NetworkPath.named(path))) is expected


def test_auroras_own_training_holds_none_of_the_paths() -> None:
    aurora = Training.of(parse_scheme("aurora"))
    spec = load_experiment("calibrated")
    assert aurora is not None
    assert isinstance(spec, ScorecardSpec)
    assert [aurora.draws(NetworkPath.named(name)) for name in spec.paths] == [False] * 42
