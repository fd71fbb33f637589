"""Results: spread and storage."""

from __future__ import annotations

import json
import shutil
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ccgym.cli.main import main
from ccgym.config.catalog_file import PublishedResult
from ccgym.config.path import NetworkPath
from ccgym.errors import ResultsError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.frames import to_csv
from ccgym.evaluation.kept_series import read_series
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.observer import Silent
from ccgym.evaluation.results import ResultSet, SchemeStyle
from ccgym.evaluation.results_file import read_results
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.run_numbers import FlowRecord, LinkRecord
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.scheme_summary import CellFailure, CellResult
from ccgym.evaluation.spread import Spread
from ccgym.evaluation.store import read_run
from ccgym.files import atomic_write
from ccgym.report.site import StoredExperiments, StoredReport, find_results, write_site
from tests.refusals import refused

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


def record(throughput: float = 10.0, seed: int = 7) -> RunRecord:
    numbers = PantheonMetrics(throughput, throughput, 25.0, 0.01, 2.0, 100, 99)
    flow = FlowRecord(
        scheme="cubic",
        start_s=0.0,
        stop_s=2.0,
        throughput_mbps=throughput,
        delay_p95_ms=25.0,
        loss=0.01,
        ingress_mbps=throughput,
        mean_rtt_ms=30.0,
        min_rtt_ms=20.0,
        mean_cwnd_packets=20.0,
        mean_in_flight_packets=19.0,
        goodput_mbps=9.5,
        sent_packets=100,
        lost_packets=1,
        retransmissions=1,
        rtos=0,
        recoveries=1,
        mean_recovery_ms=25.0,
        completion_s=None,
    )
    return RunRecord(
        path="test",
        seed=seed,
        duration_s=2.0,
        trajectory_hash="00ff",
        flows=(flow,),
        link=LinkRecord(12.0, throughput / 12, 1, 150_000, 3.0, 2.0),
        metrics=RunMetrics(total=numbers, flows={1: numbers}, capacity_mbps=12.0),
        counters={"duration_ns": 2_000_000_000},
    )


def experiment() -> Experiment:
    return Experiment(path=PATH, schemes=parse_contenders("cubic,bbr"), runs=2, runtime_ns=2 * 10**9)


# --- Numbers -------------------------------------------------------------------------------------------------------


def test_spread_is_the_sample_standard_deviation() -> None:
    spread = Spread.of([72.65, 72.95, 72.82, 72.97, 72.10])
    assert spread is not None
    assert spread.mean == pytest.approx(72.698)
    assert spread.std == pytest.approx(0.35787, abs=1e-5)
    assert Spread.of([5.0]) == Spread(5.0, None, 5.0, 5.0, 1)
    assert Spread.of([None, float("nan")]) is None


def result_set() -> ResultSet:
    styles = (SchemeStyle("cubic", "TCP Cubic", "black", "*"), SchemeStyle("bbr", "TCP BBR", "gold", "^"))
    cells = (
        CellResult("cubic", 1, record(10.0), None, 1.7e9, 0.1),
        CellResult("cubic", 2, record(4.0), "too short", 1.7e9, 0.1),
        CellResult("bbr", 1, record(11.0), None, 1.7e9, 0.1),
    )
    return ResultSet(
        parameters=experiment().parameters(),
        provenance={"command": "x"},
        styles=styles,
        cells=cells,
        failures=(CellFailure("bbr", 2, 9, "no luck"),),
        published={
            "bbr": PublishedResult(
                scheme="bbr", label="TCP BBR", runs=5, throughput_mbps=72.7, delay_p95_ms=65.94, loss=0.0343
            )
        },
        published_source="a report",
        flags=({"level": "note", "code": "x", "subject": "y", "message": "z", "cause": "c", "command": "d"},),
    )


def test_means_are_of_printed_numbers_as_in_pantheons_report() -> None:
    """Half of all means of two rounded numbers are ties, and there the last bit decides: np.mean((3.17, 3.18))."""

    def part(throughput: float, delay: float, loss: float) -> CellResult:
        numbers = PantheonMetrics(throughput, throughput, delay, loss, 2.0, 100, 99)
        metrics = RunMetrics(total=numbers, flows={1: numbers}, capacity_mbps=12.0)
        return CellResult("bbr", 1, replace(record(), metrics=metrics), None, 1.7e9, 0.1)

    runs = (part(72.6549, 65.9804, 0.031749), part(72.9549, 65.9674, 0.031751))
    summary = replace(result_set().schemes[1], runs=runs)
    throughput, delay, loss = (summary.as_printed(name) for name in ("throughput_mbps", "delay_p95_ms", "loss"))
    assert throughput is not None
    assert delay is not None
    assert loss is not None
    assert (throughput.mean, delay.mean, loss.mean) == (np.mean((72.65, 72.95)), np.mean((65.98, 65.967)), 3.175)
    exact = summary.throughput_mbps
    assert exact is not None
    assert exact.mean == pytest.approx(72.8049)
    # 72.80, where the exact mean would round to 72.80, too; 3.17, where 100 · the mean of fractions rounds to 3.18.
    assert [f"{spread.mean:.2f}" for spread in (throughput, delay, loss)] == ["72.80", "65.97", "3.17"]


def test_ignored_runs_do_not_count() -> None:
    cubic, bbr = result_set().schemes
    assert cubic.throughput_mbps == Spread(10.0, None, 10.0, 10.0, 1)
    assert (len(cubic.runs), len(cubic.valid_runs)) == (2, 1)
    assert bbr.published is not None


def test_results_survive_storage(tmp_path: Path) -> None:
    results = result_set()
    atomic_write(tmp_path / "results.json", json.dumps(results.as_dict()))
    loaded = ResultSet.load(tmp_path)
    assert loaded.as_dict() == results.as_dict()
    assert loaded.trajectory_hash == results.trajectory_hash


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "results-missing at results.json"),
        ('{"format": "ccgym-results", "ver', "results-damaged at results.json"),
        ('{"format": "something-else", "version": 1}', "results-version at results.json"),
        ('{"format": "ccgym-results", "version": 99}', "results-version at results.json"),
        ('{"format": "ccgym-results", "version": 1}', "results-damaged at results.json"),
    ],
)
def test_damaged_results_are_named(tmp_path: Path, text: str | None, found: str) -> None:
    if text is not None:
        (tmp_path / "results.json").write_text(text)
    with refused(ResultsError, found):
        ResultSet.load(tmp_path)


def test_run_records_survive_storage() -> None:
    assert RunRecord.from_json(record().to_json()) == record()
    with refused(ResultsError, "results-damaged"):
        RunRecord.from_json("{")
    data = record().as_dict()
    del data["flows"][0]["loss"]
    with refused(ResultsError, "results-damaged"):
        RunRecord.from_dict(data)


def test_published_means_are_those_of_the_published_runs() -> None:
    published = NetworkPath.from_any("77.72mbps").published
    assert len(published) == 4
    for result in published.values():
        assert len(result.each) == result.runs == 5
        throughput, delay, loss = (statistics.fmean(run[part] for run in result.each) for part in range(3))
        assert throughput == pytest.approx(result.throughput_mbps, abs=0.0051)
        assert delay == pytest.approx(result.delay_p95_ms, abs=0.0051)
        assert loss == pytest.approx(result.loss, abs=0.000051)


FORMER = Path(__file__).parent / "data" / "results_v1"
"""Made by ccgym of 2026-11-29: `evaluate --trace 12mbps --schemes cubic,bbr --runs 2 --runtime 3`, an experiment and a
league of two conditions."""


def test_results_of_the_version_before_are_read(tmp_path: Path) -> None:
    results = ResultSet.load(FORMER / "evaluation")
    assert results.trajectory_hash == "20e284cebea7c911"
    assert [(one.style.key, len(one.valid_runs)) for one in results.schemes] == [("cubic", 2), ("bbr", 2)]
    kinds = {name: read_results(FORMER / name)["kind"] for name in ("evaluation", "experiment", "league")}
    assert kinds == {name: name for name in kinds}
    found = find_results([FORMER], pytest.fail)
    (experiment,) = [one for one in found if isinstance(one, StoredExperiments)]
    assert experiment.name == "tiny"
    (outcome, _) = experiment.outcomes("tiny").values()
    assert experiment.kept(outcome, "rate=5mbps") is not None
    ratings = {one.kind: one.ratings for one in found if isinstance(one, StoredReport)}
    assert ratings["league"].keys() == {"vegas", "reno"}
    assert (write_site(found, tmp_path, "Former", [], 0.0, Silent())).exists()


def test_runs_of_the_version_before_are_read_from_their_files(tmp_path: Path) -> None:
    """Made by ccgym of 2026-11-29, which kept documents, arrays and series apart: `evaluate --trace 12mbps --schemes
    cubic,bbr --runs 1 --runtime 3`."""
    shutil.copytree(FORMER.with_name("results_v2") / "evaluation", tmp_path, dirs_exist_ok=True)
    kept = [read_run(file) for file in (tmp_path / "runs").glob("*.json")]
    assert {one.name for one in kept} == {"cubic_run1", "bbr_run1"}
    results = ResultSet.load(tmp_path)
    for cell in results.cells:
        series = read_series(tmp_path, cell)
        assert series is not None
        assert to_csv(series) == (tmp_path / f"{cell.name}.csv").read_text()
    assert main(["report", "analyze", str(tmp_path)]) == 0
    assert "explore.html" in {file.name for file in tmp_path.iterdir()}
