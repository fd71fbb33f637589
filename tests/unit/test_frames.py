"""Results that people use: short texts, data frames, CSV and figures of a run, and of an experiment."""

from __future__ import annotations

import csv
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import ccgym
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, PlatformError, ResultsError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.frames import to_csv
from ccgym.evaluation.results import RUN_COLUMNS, ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.run_numbers import PACKET_COLUMNS, SERIES_COLUMNS, FlowRecord
from ccgym.evaluation.run_record import RunRecord, logged_series, series_table
from ccgym.evaluation.runner import run_experiment
from tests.refusals import refused
from tests.results_rows import rows_of

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")
FLOW_FIELDS = [field.name for field in fields(FlowRecord)]


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return ccgym.simulate(PATH, ["cubic", {"scheme": "reno", "start": 1}], 3)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ResultSet:
    experiment = Experiment(PATH, parse_contenders("cubic,reno"), runs=2, runtime_ns=2 * 10**9, flows=2)
    return run_experiment(experiment, tmp_path_factory.mktemp("results"))


# --- Data frames -----------------------------------------------------------------------------------------------------


def test_the_frame_of_flows(run: RunRecord) -> None:
    frame = run.to_pandas()
    assert list(frame.columns) == ["flow", *FLOW_FIELDS]
    assert list(frame["flow"]) == [1, 2]
    assert frame["throughput_mbps"][1] == run.flows[1].throughput_mbps
    assert np.isnan(frame["completion_s"]).all()


@pytest.mark.parametrize("step", [None, "100ms", 0.5])
def test_the_frame_of_series_adds_up(run: RunRecord, step: str | float | None) -> None:
    frame = run.to_pandas("series", step)
    assert list(frame.columns) == list(SERIES_COLUMNS)
    seconds = {None: 0.01, "100ms": 0.1}.get(step, 0.5)
    assert list(frame["time_s"][:3]) == pytest.approx([seconds, seconds, 2 * seconds])
    assert list(frame["flow"][:3]) == [1, 2, 1]
    assert len(frame) == 2 * round(3 / seconds)
    for number, counters in enumerate(run.counters["flows"], start=1):
        one = frame[frame["flow"] == number]
        assert one["throughput_mbps"].sum() * seconds / 8 * 1e6 == pytest.approx(counters["received_bytes"])
        assert one["goodput_mbps"].sum() * seconds / 8 * 1e6 == pytest.approx(counters["received_unique_bytes"])
        assert one["sending_rate_mbps"].sum() * seconds / 8 * 1e6 == pytest.approx(counters["sent_bytes"])
        assert one["lost_packets"].sum() == counters["lost_packets"]


def test_what_is_not_known_is_missing(run: RunRecord) -> None:
    frame = run.to_pandas("series")
    reno = frame[frame["flow"] == 2]
    before, after = reno[reno["time_s"] <= 1], reno[reno["time_s"] > 1.1]
    for name in ("srtt_ms", "cwnd_bytes", "in_flight_bytes", "one_way_delay_ms"):
        assert before[name].isna().all(), name
    assert (before["throughput_mbps"] == 0).all()
    assert after["srtt_ms"].min() >= 20
    assert after["cwnd_bytes"].notna().all()
    assert reno["pacing_rate_mbps"].isna().all(), "reno does not pace"


def test_delays_of_the_series_are_those_of_the_packets(run: RunRecord) -> None:
    packets, series = run.to_pandas("packets"), run.to_pandas("series", "0.5s")
    chosen = packets[(packets["flow"] == 1) & (packets["left_s"] > 1.5) & (packets["left_s"] <= 2.0)]
    row = series[(series["flow"] == 1) & np.isclose(series["time_s"], 2.0)]
    assert row["one_way_delay_ms"].item() == pytest.approx(chosen["one_way_delay_ms"].mean())
    assert row["one_way_delay_min_ms"].item() == pytest.approx(chosen["one_way_delay_ms"].min())
    assert row["one_way_delay_max_ms"].item() == pytest.approx(chosen["one_way_delay_ms"].max())


def test_the_queue_of_the_series_is_the_bottleneck_s(run: RunRecord) -> None:
    frame = run.to_pandas("series", "0.5s")
    one, other = (frame[frame["flow"] == number] for number in (1, 2))
    for name in ("queue_packets", "queue_max_packets", "dropped_packets"):
        assert list(one[name]) == list(other[name]), "one queue for all"
    assert one["dropped_packets"].sum() == run.link.drops
    assert run.series is not None
    samples = np.asarray(run.series["link"]["queue_packets"]).astype(float).reshape(-1, 50)
    assert list(one["queue_packets"]) == pytest.approx(samples.mean(axis=1))
    assert list(one["queue_max_packets"]) == pytest.approx(samples.max(axis=1))
    assert samples.max() > 0


def test_where_nothing_tells_of_a_queue_it_is_missing(run: RunRecord) -> None:
    unlinked = ccgym.simulate(ccgym.NetworkPath(mahimahi="mm-delay 20"), ["fixed_window"], 1)
    for record in (unlinked, replace(run, backend="mahimahi")):
        frame = record.to_pandas("series", "0.5s")
        assert frame[["queue_packets", "queue_max_packets", "dropped_packets"]].isna().all(axis=None)


def test_the_series_of_a_log_are_those_of_its_packets(run: RunRecord) -> None:
    assert run.packets is not None
    whole = series_table(run, 0.5)
    # Pantheon's clock begins with the first event of the log.
    origin = run.packets.origin_ns
    shifted = replace(
        run.packets, arrival_ns=run.packets.arrival_ns - origin + 7, departure_ns=run.packets.departure_ns - origin + 7
    )
    found = logged_series(shifted, ["cubic", "reno"], 3 * 10**9, 5 * 10**8)
    assert list(found) == list(SERIES_COLUMNS)
    assert list(found["scheme"][:3]) == ["cubic", "reno", "cubic"]
    assert np.isnan(found["srtt_ms"]).all()
    assert np.isnan(found["queue_packets"]).all()
    for name in ("throughput_mbps", "one_way_delay_ms"):
        for number in (1, 2):
            ours, wanted = (table[name][table["flow"] == number] for table in (found, whole))
            # The run itself begins somewhat before its first packet.
            assert np.nanmean(ours) == pytest.approx(np.nanmean(wanted), rel=0.05), (name, number)
    assert np.nanmax(found["one_way_delay_max_ms"]) == pytest.approx(run.packets.delay_ns.max() / 1e6)


def test_the_frame_of_packets(run: RunRecord) -> None:
    frame = run.to_pandas("packets")
    assert list(frame.columns) == list(PACKET_COLUMNS)
    assert len(frame) == run.total.packets_in
    assert frame["left_s"].notna().sum() == run.total.packets_out
    assert frame["one_way_delay_ms"].min() >= 10
    assert set(frame["flow"]) == {1, 2}


def test_the_frame_of_an_experiment(results: ResultSet) -> None:
    frame = results.to_pandas()
    assert list(frame["flow_scheme"]) == list(frame["scheme"])
    assert list(frame.columns) == [*RUN_COLUMNS, "flow", *(name for name in FLOW_FIELDS if name != "scheme")]
    assert len(frame) == 2 * 2 * 2
    assert list(frame["scheme"].unique()) == ["cubic", "reno"]
    assert frame["counts"].dtype == bool
    assert frame["goodput_mbps"][0] == results.cells[0].record.flows[0].goodput_mbps


def test_without_pandas_the_error_names_the_extra(run: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused(PlatformError, "package-missing"):
        run.to_pandas()


def test_records_without_series_or_packets_say_so(run: RunRecord) -> None:
    read = RunRecord.from_json(run.to_json())
    assert read.flows == run.flows
    with refused(ResultsError, "not-recorded"):
        read.to_csv("nothing.csv")
    with refused(ResultsError, "not-recorded"):
        read.to_pandas("packets")
    with refused(ResultsError, "not-recorded"):
        read.plot()


def test_wrong_tables_and_steps(run: RunRecord) -> None:
    with refused(ConfigError, "unknown-choice at table"):
        run.to_pandas("flow")  # type: ignore[arg-type]
    with refused(ConfigError, "out-of-range at step"):
        run.to_pandas("series", "15ms")


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_csv_of_a_run(run: RunRecord, tmp_path: Path) -> None:
    run.to_csv(tmp_path / "run.csv", step="100ms")
    with (tmp_path / "run.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert list(rows[0]) == list(SERIES_COLUMNS)
    assert len(rows) == 60
    assert (rows[1]["time_s"], rows[1]["flow"], rows[1]["scheme"], rows[1]["srtt_ms"]) == ("0.1", "2", "reno", "")
    with refused(ResultsError, "file-unwritable at no/run.csv"):
        run.to_csv(tmp_path / "no" / "run.csv")


def test_csv_without_packets_has_no_delays() -> None:
    bare = ccgym.simulate(PATH, ["cubic"], 1, record=ccgym.Record(packets=False))
    rows = list(csv.DictReader(to_csv(series_table(bare, 0.5)).splitlines()))
    assert [row["one_way_delay_ms"] for row in rows] == ["", ""]
    assert float(rows[1]["throughput_mbps"]) > 5


def test_an_experiment_leaves_csv(results: ResultSet, tmp_path: Path) -> None:
    experiment = Experiment(PATH, parse_contenders("cubic"), runs=1, runtime_ns=10**9)
    made = run_experiment(experiment, tmp_path, logs="first")
    with (tmp_path / "cubic_run1.csv").open(newline="") as text:
        assert len(list(csv.DictReader(text))) == 10
    measured = {(row["flow"], row["metric"]): (float(row["value"]), row["unit"]) for row in rows_of(tmp_path)}
    (cell,) = made.cells
    assert measured["1", "throughput_mbps"] == (cell.record.flows[0].throughput_mbps, "Mbit/s")
    assert measured["", "delay_p95_ms"] == (cell.record.total.delay_p95_ms, "ms")
    assert ("1", "completion_s") not in measured, "what is not known has no row"
    text = (tmp_path / "cubic_run1.csv").read_bytes()
    (tmp_path / "cubic_run1.csv").unlink()
    run_experiment(experiment, tmp_path, logs="first")
    assert (tmp_path / "cubic_run1.csv").read_bytes() == text


# --- Figures ---------------------------------------------------------------------------------------------------------


def test_plot_of_a_run(run: RunRecord, tmp_path: Path) -> None:
    figure = run.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000
    throughput, delay = figure.axes
    assert "Mbit/s" in throughput.get_ylabel()
    assert "ms" in delay.get_ylabel()
    (shared,) = figure.legends
    assert [text.get_text().split(":")[0] for text in shared.get_texts()] == ["1 cubic", "2 reno"]
    assert len(throughput.get_lines()) == 2
    title = figure.get_suptitle()
    assert all(word in title for word in ("cubic", "reno", run.path_title, f"{run.duration_s:g} s"))
    with refused(ConfigError, "unknown-suffix at file"):
        run.plot("run.bmp")
    with refused(PlatformError, "file-unwritable at no/run.png"):
        run.plot(tmp_path / "no" / "run.png")


def test_without_matplotlib_the_error_names_the_extra(run: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refused(PlatformError, "package-missing"):
        run.plot()


def test_names_of_hints_can_be_imported(run: RunRecord) -> None:
    assert ccgym.Record is not None
    assert ccgym.Job is not None
    assert ccgym.simulate_many is not None
    bare = replace(run, metrics=None)
    with refused(ResultsError, "not-recorded"):
        _ = bare.total


def test_an_experiment_has_the_series_of_all_runs(results: ResultSet, tmp_path: Path) -> None:
    frame = results.to_pandas("series")
    assert list(frame.columns) == ["scheme", "run", *("flow_scheme" if n == "scheme" else n for n in SERIES_COLUMNS)]
    assert frame.groupby(["scheme", "run", "flow"]).size().tolist() == [20] * 2 * 2 * 2
    with refused(ConfigError, "unknown-choice at table"):
        results.to_pandas("packets")  # type: ignore[arg-type]
    with refused(ResultsError, "not-recorded"):
        replace(results, directory=None).to_pandas("series")
    with refused(ResultsError, "results-damaged at cubic_run1.csv"):
        replace(results, directory=tmp_path).to_pandas("series")
