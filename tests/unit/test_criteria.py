"""Criteria and verdicts of the stress tests, from numbers that are given."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ccgym.experiments import criterion_spec
from ccgym.experiments.criteria import Criterion, Evidence, judged
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics import read_metric
from ccgym.experiments.outcome import Outcome, Test
from tests.refusals import refused

FOUND = load_experiment("weaknesses")


TESTS = {one.name: Test(one) for one in FOUND.experiments}


@pytest.mark.parametrize(
    ("criterion", "passed"),
    [
        (Criterion("m", "", 0.8, min=0.8), True),
        (Criterion("m", "", 0.79, min=0.8), False),
        (Criterion("m", "", 0.71, min=0.3, max=0.7), False),
        (Criterion("m", "", 0.5, min=0.3, max=0.7), True),
        (Criterion("m", "", 0.0, max=0.0), True),
        (Criterion("m", "", 5.0, max=5.0, strict=True), False),
        (Criterion("m", "", 4.99, max=5.0, strict=True), True),
        (Criterion("m", "", float("nan"), min=0.0), False),
        (Criterion("m", "", None, min=0.0), None),
    ],
)
def test_criteria(criterion: Criterion, passed: bool | None) -> None:
    assert criterion.passed is passed


def evidence(name: str, inside: bool | None = None, **values: Any) -> Evidence:
    """Evidence in which each metric is a number, or a function of the condition; of others 0."""
    test = TESTS[name]
    means = {}
    for one in test.conditions:
        for metric in test.metrics:
            found = values.get(metric.key, 0.0)
            means[one.key, metric.key] = found(one) if callable(found) else found
    return Evidence(means, test.conditions, {one.key: inside for one in test.conditions})


def outcome(name: str, found: Evidence, cubic: Evidence | None = None) -> Outcome:
    baselines = {} if cubic is None else {"cubic": cubic}
    return Outcome(TESTS[name], "reno", tuple(judged(TESTS[name].spec.criteria, found, baselines)), (), ())


def verdicts(name: str, found: Evidence, cubic: Evidence | None = None) -> list[bool | None]:
    return [one.passed for one in outcome(name, found, cubic).criteria]


def test_fairness_asks_less_outside_of_the_training_range() -> None:
    name = "intra_rtt_fairness"
    assert verdicts(name, evidence(name, ratio=0.6)) == [False]
    assert verdicts(name, evidence(name, ratio=0.6, inside=True)) == [False]
    outside = outcome(name, evidence(name, ratio=0.6, inside=False))
    assert outside.verdict == "pass"
    assert [one.group for one in outside.criteria] == ["outside the training range"]
    mixed = evidence(name, ratio=lambda one: 0.9 if float(one.at["owd_ms"]) <= 50 else 0.4)
    inside = {one.key: float(one.at["owd_ms"]) <= 50 for one in mixed.conditions}
    within, beyond = outcome(name, Evidence(mixed.means, mixed.conditions, inside)).criteria
    assert within.value == pytest.approx(0.9)
    assert beyond.value == pytest.approx(0.4)
    assert (within.passed, beyond.passed) == (True, False)


def test_the_sweep_asks_for_fairness_and_for_use() -> None:
    name = "bandwidth_sweep"
    assert verdicts(name, evidence(name, ratio=0.9, utilization=0.89)) == [True, False]
    assert verdicts(name, evidence(name, ratio=0.7, utilization=0.99)) == [False, True]


def test_too_much_here_and_too_little_there_is_not_friendly() -> None:
    name = "cubic_friendliness"
    extremes = evidence(name, cubic_share=lambda one: 0.1 if one.at["buffer_bdp"] == 0.2 else 0.9)
    found = outcome(name, extremes)
    assert [one.passed for one in found.criteria] == [False] * 6, "although the mean over buffers may be decent"
    assert found.headline == "0.10 to 0.90"
    assert found.criteria[0].at == {"cubic": "first", "buffer_bdp": 0.2}
    assert verdicts(name, evidence(name, cubic_share=0.5)) == [True] * 6


def test_responsiveness_is_measured_against_cubic() -> None:
    name = "responsiveness"
    cubic = evidence(name, utilization=0.7, queue_delay_ms=8.0)
    assert verdicts(name, cubic, cubic) == [True, True], "Cubic is as good as itself"
    assert verdicts(name, evidence(name, utilization=0.9, queue_delay_ms=9.0), cubic) == [True, False]
    assert verdicts(name, cubic, None) == [None, None], "without Cubic's number nothing is decided"


def test_a_scheme_can_be_measured_against_itself() -> None:
    name = "decision_latency"
    for late, passed in ((0.73, True), (0.71, False)):
        used = {"none": 0.8, "0.25 RTT": late, "0.5 RTT": late, "1 RTT": late}
        found = outcome(name, evidence(name, utilization=lambda one, used=used: used[one.at["latency"]]))
        assert [one.passed for one in found.criteria] == [passed] * 3
        assert [one.min for one in found.criteria] == [pytest.approx(0.72)] * 3
    assert TESTS[name].spec.criteria[0].references[0].text == "0.9 × its own at latency none"


def test_a_multiple_of_a_baseline() -> None:
    name = "short_flows"
    cubic = evidence(name, completion_s=2.0, long_goodput=10.0)
    assert verdicts(name, evidence(name, completion_s=2.2, long_goodput=9.0), cubic) == [True] * 6
    assert verdicts(name, evidence(name, completion_s=2.3, long_goodput=8.9), cubic) == [False] * 6
    assert verdicts(name, cubic, None) == [None] * 6
    short = Test(TESTS[name].spec.model_copy(update={"brief": ""}))
    assert short.brief == "mean completion time ≤ 1.1 × cubic's, long flow's goodput ≥ 0.9 × cubic's"
    with refused(ValidationError, "key-missing at criteria"):
        criterion_spec.Reference(times=2.0)


def test_many_flows_are_to_be_fair_soon() -> None:
    name = "many_flows"
    found = evidence(name, jain=0.95, second_s=3.0, third_s=4.0, fourth_s=10.0)
    assert verdicts(name, found) == [True, True, True, False], "less than 10 s"


def test_small_buffers_may_lose_more() -> None:
    name = "self_inflicted_loss"
    found = outcome(name, evidence(name, loss=0.02)).criteria
    assert [one.passed for one in found] == [True, False, False, False]
    assert [one.max for one in found] == [0.03, 0.01, 0.01, 0.01]


def test_one_collapsed_run_is_too_many() -> None:
    name = "startup_recovery"
    assert verdicts(name, evidence(name, collapsed=0.0)) == [True]
    assert verdicts(name, evidence(name, collapsed=lambda one: 0.02 if one.key == "drawn" else 0.0)) == [False]


def test_a_recovery_that_never_came_is_said() -> None:
    name = "stale_estimates"
    found = outcome(name, evidence(name, after_rate_s=10.0, after_rtt_s=0.34))
    assert [one.passed for one in found.criteria] == [False, True, False, True]
    assert found.headline == "≥ 10 s, 0.3 s"


def test_without_criteria_there_is_no_verdict() -> None:
    test = Test(TESTS["self_inflicted_loss"].spec.model_copy(update={"criteria": ()}))
    found = Outcome(test, "reno", (), (), ())
    assert (found.verdict, found.headline, test.spec.baselines) == ("none", "–, –", ())


@pytest.mark.parametrize(
    ("value", "text"), [(0.979, "97.9 %"), (0.0212, "2.12 %"), (0.0, "0 %"), (1.0, "100 %"), (0.05, "5 %"), (None, "–")]
)
def test_fractions_are_shown_as_percent(value: float | None, text: str) -> None:
    assert read_metric("utilization", {}).show(value) == text
