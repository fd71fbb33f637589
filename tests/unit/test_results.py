"""Results: spread, storage, and a results directory that survives whatever happens to it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ResultsError
from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.experiment import Experiment, differences
from ccgym.evaluation.directory import MARKERS, Kind, refuse_other_kinds
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.results import (
    CellFailure,
    CellResult,
    PublishedPoint,
    ResultSet,
    SchemeStyle,
    Spread,
    atomic_write,
)
from ccgym.evaluation.run_record import FlowRecord, LinkRecord, RunRecord
from ccgym.evaluation.store import MANIFEST_FILE, Damage, ResultStore, holder
from ccgym.schemes.registry import SchemeChoice

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


def experiment(**changes: object) -> Experiment:
    base = Experiment(path=PATH, schemes=(SchemeChoice("cubic"), SchemeChoice("bbr")), runs=2, runtime_ns=2 * 10**9)
    return replace(base, **changes)  # type: ignore[arg-type]


def cell_result(made: Experiment) -> CellResult:
    cell = next(iter(made.cells()))
    return CellResult(cell.choice.key, cell.run, record(seed=cell.seed), None, 1.7e9, 0.1)


def curves() -> RunCurves:
    line = np.linspace(0, 1, 5)
    return RunCurves(0.5, line, (FlowCurves(line, line, line, line),))


# --- Numbers -------------------------------------------------------------------------------------------------------


def test_spread_is_the_sample_standard_deviation() -> None:
    spread = Spread.of([72.65, 72.95, 72.82, 72.97, 72.10])
    assert spread is not None
    assert spread.mean == pytest.approx(72.698)
    assert spread.std == pytest.approx(0.35787, abs=1e-5)
    assert Spread.of([5.0]) == Spread(5.0, None, 1)
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
        published={"bbr": PublishedPoint("TCP BBR", 5, 72.7, 65.94, 0.0343)},
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
    assert cubic.throughput_mbps == Spread(10.0, None, 1)
    assert (len(cubic.runs), len(cubic.valid_runs)) == (2, 1)
    assert bbr.published is not None


def test_results_survive_storage(tmp_path: Path) -> None:
    results = result_set()
    atomic_write(tmp_path / "ccgym_results.json", json.dumps(results.as_dict()))
    loaded = ResultSet.load(tmp_path)
    assert loaded.as_dict() == results.as_dict()
    assert loaded.trajectory_hash == results.trajectory_hash


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "there are no results"),
        ('{"format": "ccgym-results", "ver', "damaged"),
        ('{"format": "something-else", "version": 1}', "'something-else'"),
        ('{"format": "ccgym-results", "version": 99}', "version 99"),
        ('{"format": "ccgym-results", "version": 1}', "damaged"),
    ],
)
def test_damaged_results_are_named(tmp_path: Path, text: str | None, found: str) -> None:
    if text is not None:
        (tmp_path / "ccgym_results.json").write_text(text)
    with pytest.raises(ResultsError) as caught:
        ResultSet.load(tmp_path)
    assert found in caught.value.found
    assert "ccgym_results.json" in caught.value.where


def test_run_records_survive_storage() -> None:
    assert RunRecord.from_json(record().to_json()) == record()
    with pytest.raises(ResultsError):
        RunRecord.from_json("{")
    data = record().as_dict()
    del data["flows"][0]["loss"]
    with pytest.raises(ResultsError, match="damaged"):
        RunRecord.from_dict(data)


# --- Seeds and identity --------------------------------------------------------------------------------------------


def test_seeds_depend_on_scheme_and_run_only() -> None:
    made = experiment()
    alone = experiment(schemes=(SchemeChoice("bbr"),), runs=1)
    seeds = {(cell.choice.key, cell.run): cell.seed for cell in made.cells()}
    assert len(set(seeds.values())) == 4
    assert next(iter(alone.cells())).seed == seeds[("bbr", 1)]
    assert {cell.seed for cell in experiment(seed=2).cells()}.isdisjoint(seeds.values())


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"runs": 3}, "runs: 2 there, 3 here"),
        ({"seed": 5}, "seed: 1 there, 5 here"),
        ({"schemes": (SchemeChoice("cubic"),)}, "schemes"),
        ({"runtime_ns": 3 * 10**9}, "runtime_s: 2.0 there, 3.0 here"),
        ({"path": NetworkPath(rate="13mbps", rtt="20ms", queue="20p", name="test")}, "path.uplink"),
    ],
)
def test_another_experiment_in_the_same_directory_is_refused(
    tmp_path: Path, change: dict[str, object], place: str
) -> None:
    with ResultStore(tmp_path, experiment()):
        pass
    with pytest.raises(ResultsError) as caught, ResultStore(tmp_path, experiment(**change)):
        pass
    assert "different experiment" in caught.value.found
    assert place in caught.value.found
    assert caught.value.hint.startswith("choose another directory")


def test_differences_name_the_place() -> None:
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "d": 4}) == [
        "a.b: 1 there, 3 here",
        "c: only there",
        "d: only here",
    ]


# --- The directory -------------------------------------------------------------------------------------------------


def test_a_written_cell_is_read_back(tmp_path: Path) -> None:
    made = experiment()
    cell = next(iter(made.cells()))
    with ResultStore(tmp_path, made) as store:
        assert store.read(cell, with_logs=False) is None
        store.write(cell, cell_result(made), curves(), [])
        assert store.read(cell, with_logs=False) == cell_result(made)
        np.testing.assert_allclose(store.curves(cell.name).flows[0].delay_ms, np.linspace(0, 1, 5))
        assert store.read(cell, with_logs=True) is None, "logs are wanted now and were not written"


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


def _forge(file: Path) -> None:
    file.write_text(file.read_text().replace('"throughput_mbps": 10.0', '"throughput_mbps": 99.0'))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, Path.unlink])
@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_damage_is_noticed(tmp_path: Path, damage: object, suffix: str) -> None:
    made = experiment()
    cell = next(iter(made.cells()))
    with ResultStore(tmp_path, made) as store:
        store.write(cell, cell_result(made), curves(), [])
        damage(store.cells / f"{cell.name}.{suffix}")  # type: ignore[operator]
        found = store.read(cell, with_logs=False)
    assert found is None if (damage is Path.unlink and suffix == "json") else isinstance(found, Damage)


def test_an_edited_number_is_noticed(tmp_path: Path) -> None:
    made = experiment()
    cell = next(iter(made.cells()))
    with ResultStore(tmp_path, made) as store:
        store.write(cell, cell_result(made), curves(), [])
        _forge(store.cells / f"{cell.name}.json")
        found = store.read(cell, with_logs=False)
    assert isinstance(found, Damage)
    assert "checksum" in found.reason


def _cut(log: Path) -> None:
    log.write_text("12345")


def _edit(log: Path) -> None:
    log.write_text("1234567899")


def _edit_and_set_the_time_back(log: Path) -> None:
    before = log.stat()
    _edit(log)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))


def _exchange(log: Path) -> None:
    other = log.with_name("other")
    other.write_text("0987654321")
    other.replace(log)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (_cut, "is cut off or was edited"),
        (_edit, "was edited"),
        (_edit_and_set_the_time_back, "was edited"),
        (_exchange, "was edited"),
        (Path.unlink, "is missing"),
    ],
)
def test_a_log_that_is_not_what_was_written_is_noticed(
    tmp_path: Path, harm: Callable[[Path], None], reason: str
) -> None:
    made = experiment()
    cell = next(iter(made.cells()))
    log = tmp_path / "cubic_datalink_run1.log"
    log.write_text("1234567890")
    with ResultStore(tmp_path, made) as store:
        store.write(cell, cell_result(made), curves(), [log.name])
        assert isinstance(store.read(cell, with_logs=True), CellResult)
        harm(log)
        assert store.read(cell, with_logs=True) == Damage(cell.name, f"{log.name} {reason}")
        assert isinstance(store.read(cell, with_logs=False), CellResult)


def test_a_copied_log_is_still_what_was_written(tmp_path: Path) -> None:
    made = experiment()
    cell = next(iter(made.cells()))
    log = tmp_path / "there" / "cubic_datalink_run1.log"
    log.parent.mkdir()
    log.write_text("1234567890")
    with ResultStore(tmp_path / "there", made) as store:
        store.write(cell, cell_result(made), curves(), [log.name])
    shutil.copytree(tmp_path / "there", tmp_path / "here")
    with ResultStore(tmp_path / "here", made) as store:
        assert isinstance(store.read(cell, with_logs=True), CellResult)


def test_left_over_partial_files_are_removed(tmp_path: Path) -> None:
    with ResultStore(tmp_path, experiment()):
        pass
    left = [tmp_path / ".x_datalink_run1.log.partial", tmp_path / "cells" / ".cubic_run1.json.partial"]
    for file in left:
        file.write_text("half")
    with ResultStore(tmp_path, experiment()):
        assert not any(file.exists() for file in left)


def test_two_evaluations_at_once_are_refused(tmp_path: Path) -> None:
    with (
        ResultStore(tmp_path, experiment()),
        pytest.raises(ResultsError, match="another evaluation"),
        ResultStore(tmp_path, experiment()),
    ):
        pass
    with ResultStore(tmp_path, experiment()):
        pass  # the first has let go


@pytest.mark.parametrize("kind", list(MARKERS))
@pytest.mark.parametrize("other", list(MARKERS))
def test_two_kinds_of_results_are_never_mixed(kind: Kind, other: Kind, tmp_path: Path) -> None:
    (tmp_path / MARKERS[other][0]).touch()
    if kind == other:
        refuse_other_kinds(tmp_path, kind)
        return
    with pytest.raises(ResultsError, match=f"the directory holds {re.escape(MARKERS[other][1])}"):
        refuse_other_kinds(tmp_path, kind)


@pytest.mark.parametrize("marker", ["ccgym_suite.json", "ccgym_gap.json", "seeds.json"])
def test_an_evaluation_leaves_other_directories_alone(marker: str, tmp_path: Path) -> None:
    (tmp_path / marker).touch()
    with pytest.raises(ResultsError, match="choose another directory with --out"), ResultStore(tmp_path, experiment()):
        pass
    assert [file.name for file in tmp_path.iterdir()] == [marker]


@pytest.mark.parametrize("text", ["", "{", '{"format": "other"}', "[]", "[" * 100_000, '{"hash": ' + "1" * 5001 + "}"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST_FILE).write_text(text)
    assert holder(tmp_path) == "unknown"
    with pytest.raises(ResultsError, match=MANIFEST_FILE), ResultStore(tmp_path, experiment()):
        pass


def test_results_without_a_manifest_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "cubic_run1.json").write_text("{}")
    with pytest.raises(ResultsError, match="no manifest"), ResultStore(tmp_path, experiment()):
        pass


def test_a_file_in_place_of_the_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"), ResultStore(tmp_path / "file", experiment()):
        pass


def test_atomic_write_leaves_nothing_behind(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", "one")
    atomic_write(tmp_path / "a", b"two")
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "two"
