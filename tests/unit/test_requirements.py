"""RFC 9743 as rows: the file, schemes that should fail or pass, verdicts by intervals, the report, the command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from ccgym.cli.main import main
from ccgym.errors import ConfigError
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.spread import Spread
from ccgym.experiments import criterion_spec, spec
from ccgym.experiments.criteria import Criterion, Evidence, judged
from ccgym.experiments.expand import conditions
from ccgym.experiments.load import load_experiment
from ccgym.experiments.outcome import RunResult as Ran
from ccgym.experiments.outcome import Test, Verdict, evidence_of
from ccgym.experiments.plan import planned
from ccgym.experiments.request import Request
from ccgym.experiments.run import Executed
from ccgym.experiments.views.requirements import MOST_MBPS, MOST_S, run_requirements, sample
from ccgym.experiments.views.results import Confirmed, ExperimentResults
from ccgym.report.requirements_report import confirmed_table, decisive, open_table, page, summary_table
from tests.refusals import refused
from tests.results_rows import document_of

FOUND = load_experiment("rfc9743", quick=True)
assert isinstance(FOUND, spec.ExperimentSet)
ROWS = FOUND
BAD = ["5.1.1", "5.1.3", "5.2.1", "6.3", "7.2"]


def report(directory: Path, schemes: str, sections: list[str], runs: int | None = None) -> ExperimentResults:
    request = Request(out=directory, schemes=parse_contenders(schemes), runs=runs, quick=True)
    return run_requirements(ROWS.only(sections), request)


@pytest.fixture(scope="module")
def judged_schemes(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    """Two bad schemes and a good one over the rows that tell them apart."""
    schemes = "fixed_rate:rate_mbps=60,fixed_window:cwnd=2,reno"
    return report(tmp_path_factory.mktemp("rows"), schemes, BAD)


def verdicts(results: ExperimentResults, algorithm: str) -> dict[str, Verdict]:
    key = next(one.key for one in results.styles if one.key.startswith(algorithm))
    return {test.name: results.outcome(test, key).verdict for test in results.tests}


# --- The rows --------------------------------------------------------------------------------------------------------


def test_every_row_is_tested_or_says_why_not() -> None:
    sections = [row.section for row in ROWS.rows]
    assert len(set(sections)) == len(sections) == 27
    order = [tuple(map(int, section.split("."))) for section in sections]
    assert order == sorted(order)
    names = {test.name for test in ROWS.experiments}
    for row in ROWS.rows:
        assert row.tests or row.missing or row.author
        assert set(row.names) <= names
        assert bool(row.tests) == bool(row.reason)


def test_every_experiment_of_a_row_has_criteria() -> None:
    """A row cannot pass because nothing was asked."""
    assert all(test.criteria and conditions(test) for test in ROWS.experiments)
    assert ROWS.intervals


def test_sections_are_chosen_with_what_they_contain() -> None:
    chosen = ROWS.only(["5.1", "7.9"])
    assert [row.section for row in chosen.rows] == ["5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "7.9"]
    assert {one.name for one in chosen.experiments} == {name for row in chosen.rows for name in row.names}
    with refused(ConfigError, "unknown-name"):
        ROWS.only(["9.9"])


def test_a_row_needs_an_answer_and_marks_a_reason() -> None:
    known = {"section": "1", "title": "a row", "level": "MUST", "asks": "Something."}
    with refused(ValidationError, "key-missing at 1"):
        spec.Row.model_validate(known)
    with refused(ValidationError, "key-missing at 1"):
        spec.Row.model_validate({**known, "tests": ["a.yaml"]})


# --- Bad schemes fail what they should, and only that ----------------------------------------------------------------


def test_a_scheme_that_never_backs_off_fails(judged_schemes: ExperimentResults) -> None:
    """60 Mbit/s whatever happens: it presses on in the silence, at half of all packets lost, and starves the others."""
    found = verdicts(judged_schemes, "fixed_rate")
    assert {name for name, verdict in found.items() if verdict == "fail"} >= {
        "circuit_breaker", "full_backoff", "heavy_loss", "high_loss", "standard_flows",
    }  # fmt: skip
    beside = judged_schemes.outcome(Test(_test("standard_flows")), judged_schemes.styles[0].key)
    failed = {one.metric for one in beside.criteria if one.verdict == "fail"}
    assert {"throughput_harm", "other_share"} <= failed


def test_a_scheme_that_starves_fails(judged_schemes: ExperimentResults) -> None:
    """Two packets in flight: it harms nobody and backs off, but gets nothing beside others and does not use a link."""
    found = verdicts(judged_schemes, "fixed_window")
    assert found["standard_flows"] == found["wired"] == "fail"
    assert found["heavy_loss"] == found["high_loss"] == "pass"
    beside = judged_schemes.outcome(Test(_test("standard_flows")), judged_schemes.styles[1].key)
    assert {one.metric for one in beside.criteria if one.verdict == "fail"} == {"share"}


def test_who_hides_losses_gains_and_who_copies_acknowledgements_does_not(tmp_path: Path) -> None:
    results = report(tmp_path, "reno", ["7.6"])
    outcome = results.outcome(results.tests[0], "reno")
    found = {one.at["lie"]: one.verdict for one in outcome.criteria}
    lies = ("divided", "10 ms ahead", "30 ms ahead", "hidden loss")
    assert found == dict(zip(lies, ("pass", "fail", "fail", "fail"), strict=True))
    (place,) = (row for row in results.to_json()["rows"] if row["section"] == "7.6")
    assert place["verdicts"] == {"reno": "fail"}


def test_a_standard_scheme_passes(judged_schemes: ExperimentResults) -> None:
    assert set(verdicts(judged_schemes, "reno").values()) == {"pass"}


def _test(name: str) -> spec.ExperimentSpec:
    return next(one for one in ROWS.experiments if one.name == name)


# --- Verdicts by intervals -------------------------------------------------------------------------------------------


def evidence(values: Mapping[str, list[float]]) -> dict[str, Evidence]:
    test = Test(_test("late_joiner").model_copy(update={"sweep": {"buffer": ["1bdp"]}}))
    (condition,) = test.conditions
    found = {}
    for scheme, own in values.items():
        runs = [
            Ran(condition.key, number, 1, {"newcomer": value, "first": 0.5}, "") for number, value in enumerate(own, 1)
        ]
        found[scheme] = evidence_of(test, {condition.key: len(own)}, runs, {})
    return found


def one_verdict(bound: criterion_spec.Bound, values: list[float], cubic: list[float] | None = None) -> Criterion:
    found = evidence({"mine": values} | ({} if cubic is None else {"cubic": cubic}))
    mine = found.pop("mine")
    (one,) = judged([criterion_spec.CriterionSpec(metric="newcomer", min=bound)], mine, found, intervals=True)
    return one


def test_an_interval_that_holds_the_mark_is_undecided() -> None:
    assert one_verdict(0.1, [0.30, 0.31, 0.32]).verdict == "pass"
    assert one_verdict(0.1, [0.02, 0.03, 0.01]).verdict == "fail"
    wide = one_verdict(0.1, [0.02, 0.30, 0.11])
    assert wide.verdict == "undecided"
    assert wide.low is not None
    assert wide.high is not None
    assert wide.low < 0.1 < wide.high


def test_a_measured_mark_is_compared_run_by_run() -> None:
    """Both vary widely from draw to draw, and always by the same step: that is certain."""
    cubic = [0.1, 0.5, 0.9]
    assert one_verdict("cubic", [0.12, 0.52, 0.92], cubic).verdict == "pass"
    assert one_verdict("cubic", [0.08, 0.48, 0.88], cubic).verdict == "fail"
    assert one_verdict("cubic", [0.2, 0.4, 0.95], cubic).verdict == "undecided"


def test_a_reference_can_leave_room() -> None:
    bound = criterion_spec.Reference(scheme="cubic", plus=-0.1)
    assert bound.text == "cubic's − 0.1"
    assert one_verdict(bound, [0.25, 0.26, 0.25], [0.3, 0.3, 0.3]).verdict == "pass"
    assert one_verdict("cubic", [0.25, 0.26, 0.25], [0.3, 0.3, 0.3]).verdict == "fail"


def test_one_repetition_has_no_interval() -> None:
    one = one_verdict(0.1, [0.2])
    assert (one.low, one.high, one.verdict) == (None, None, "pass")


# --- The report ------------------------------------------------------------------------------------------------------


def test_what_is_not_tested_is_never_passed(judged_schemes: ExperimentResults, tmp_path: Path) -> None:
    results = report(tmp_path, "cubic", ["5.3", "7.10", "8"])
    lines = {row.values["section"]: row.values["verdict"].value for row in summary_table(results).rows}
    assert lines == {"5.3.1": "for the author", "5.3.2": "pass", "7.10": "for the author", "8": "not tested yet"}
    assert [row.values["section"] for row in open_table(results).rows] == ["5.3.1", "5.3.2", "7.10", "8", "8"]
    assert results.to_json()["rows"][3]["verdicts"] == {"cubic": "none"}
    text = page(results).markdown()
    assert "needs observations that an attacker changes" in text
    assert "of 4 rows 1 pass, 1 not tested yet, 2 for the author alone" in text


def test_the_worst_mark_is_shown_with_its_command(judged_schemes: ExperimentResults) -> None:
    rows = summary_table(judged_schemes).rows
    assert {row.values["section"] for row in rows} == set(BAD)
    first = next(row for row in rows if row.values["section"] == "5.1.1")
    assert first.values["verdict"].value == "FAIL"
    assert " ".join(first.values["replay"].split()) == "ccgym rfc9743 fixed_rate:rate_mbps=60 --only 5.1.1 --quick"
    outcome = judged_schemes.outcome(Test(_test("standard_flows")), judged_schemes.styles[1].key)
    decided = decisive(outcome)
    assert decided is not None
    assert decided.verdict == "fail"


def test_a_sample_of_short_runs_over_as_many_experiments(judged_schemes: ExperimentResults, tmp_path: Path) -> None:
    request = Request(out=tmp_path, schemes=parse_contenders("cubic"), quick=True)
    tests = tuple(Test(one) for one in ROWS.experiments)
    ran = Executed(ROWS, request, request.schemes or (), tests, {}, {}, 0.0)
    chosen = sample(ran, 5)
    assert len({test.name for test, _ in chosen}) == len(chosen) == 5
    assert chosen == sample(ran, 5)
    for test, one in chosen:
        assert one.scenario.duration_ns <= MOST_S * 1e9
        assert one.scenario.path.mean_rate_mbps <= MOST_MBPS
        assert not any(flow.simulated_only for flow in one.run.contender.flows)
        simulated = planned(test, ran.schemes, runs=1, seed=1)
        same = next(known for known in simulated if known.run.name == one.run.name)
        assert (same.run.seed, one.run.backend) == (one.run.seed, "emulated")


def test_the_sample_is_shown(tmp_path: Path) -> None:
    results = report(tmp_path, "cubic", ["6.2"])
    spread = Spread.of([0.94, 0.95])
    name, key = results.tests[0].name, results.tests[0].conditions[0].key
    kept = [Confirmed(name, "cubic", key, "utilization", spread, value, value > 0.5) for value in (0.93, 0.1)]
    shown = confirmed_table(ExperimentResults(**{**vars(results), "confirmed": tuple(kept)}))
    assert [row.values["agrees"].value for row in shown.rows] == ["agrees", "differs"]


# --- The command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_report(tmp_path: Path) -> None:
    out = tmp_path / "report"
    words = ["rfc9743", "cubic", "--only", "7.9", "--quick", "--out", str(out)]
    assert main(words) == 0
    document = document_of(out)
    assert (document["document"], [row["section"] for row in document["rows"]]) == ("RFC 9743", ["7.9"])
    html = (out / "rfc9743.html").read_text()
    for part in ("TCP Cubic", 'data-type="image/svg+xml"', "MUST"):
        assert part in html
    assert "TCP Cubic" in (out / "rfc9743.md").read_text()
