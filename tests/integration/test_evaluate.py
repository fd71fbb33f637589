"""Whole evaluations: files, resumption, damage, kills, failing runs, and the same bytes whatever the circumstances."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ResultsError
from ccgym.evaluation.backends import simulated
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.metrics import run_metrics
from ccgym.evaluation.pantheon import statistics_text
from ccgym.evaluation.pantheon.logs import read_log
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.runner import run_experiment
from ccgym.evaluation.simulate import Record, simulate, simulate_prepared
from tests.commands import evaluate as main
from tests.refusals import refused
from tests.watching import Watching

TRACED = NetworkPath.from_mahimahi(
    "mm-delay 10 mm-loss uplink 0.01 mm-link 12mbps.trace 12mbps.trace "
    "--uplink-queue=droptail --uplink-queue-args=packets=20",
    name="small",
)


def experiment(**changes: Any) -> Experiment:
    fields: dict[str, Any] = {
        "path": TRACED,
        "schemes": parse_contenders("cubic,bbr"),
        "runs": 2,
        "runtime_ns": 2 * 10**9,
    }
    return Experiment(**{**fields, **changes})


def numbers(results: ResultSet) -> list[Any]:
    return [(cell.scheme, cell.run, cell.invalid, cell.record.to_json()) for cell in results.cells]


def run_file(out: Path, results: ResultSet, scheme: str, run: int) -> Path:
    (found,) = (cell for cell in results.cells if (cell.scheme, cell.run) == (scheme, run))
    return out / found.curves


def sweep(out: Path, made: Experiment | None = None, **options: Any) -> tuple[ResultSet, Watching]:
    watcher = Watching()
    return run_experiment(made or experiment(), out, observer=watcher, **options), watcher


# --- Files ---------------------------------------------------------------------------------------------------------


def test_pantheons_files_are_all_there_and_agree(tmp_path: Path) -> None:
    results, _ = sweep(tmp_path, logs="first")
    names = {file.name for file in tmp_path.iterdir() if file.is_file() and not file.name.startswith(".")}
    assert names == {
        "pantheon_metadata.json",
        "pantheon_perf.json",
        "config.yml",
        "results.json",
        "results.csv",
        *(f"{scheme}_run{run}.csv" for scheme in ("cubic", "bbr") for run in (1, 2)),
        "ccgym_manifest.json",
        *(f"{scheme}_stats_run{run}.log" for scheme in ("cubic", "bbr") for run in (1, 2)),
        *(f"{scheme}_{link}_run1.log" for scheme in ("cubic", "bbr")
          for link in ("datalink", "acklink", "mm_datalink", "mm_acklink")),
    }  # fmt: skip
    metadata = json.loads((tmp_path / "pantheon_metadata.json").read_text())
    assert set(metadata) == {
        "mode", "flows", "runtime", "interval", "run_times", "start_run_id", "random_order", "cc_schemes",
        "git_summary", "uplink_trace", "downlink_trace", "prepend_mm_cmds", "extra_mm_link_args",
    }  # fmt: skip
    assert metadata["uplink_trace"] == "12mbps.trace"
    assert metadata["prepend_mm_cmds"] == "mm-delay 10 mm-loss uplink 0.01"
    assert metadata["extra_mm_link_args"] == "--uplink-queue=droptail --uplink-queue-args=packets=20"
    perf = json.loads((tmp_path / "pantheon_perf.json").read_text())
    for cell in results.cells:
        entry = perf[cell.scheme][str(cell.run)]
        assert entry["all"] == {
            "tput": cell.record.total.throughput_mbps,
            "delay": cell.record.total.delay_p95_ms,
            "loss": cell.record.total.loss,
        }
        assert list(entry) == ["all", "1"]
        stats = (tmp_path / f"{cell.scheme}_stats_run{cell.run}.log").read_text()
        assert f"Average throughput: {cell.record.total.throughput_mbps:.2f} Mbit/s" in stats
    assert ResultSet.load(tmp_path).as_dict() == results.as_dict()


TINY_DATALINK = """\
# init timestamp: 1700000000000.000
0.000 + 1500 1
0.000 + 1500 1
0.000 + 1500 1
1.000 # 1500
2.000 # 1500
3.000 # 1500
4.000 # 1500
5.000 # 1500
6.000 # 1500
6.000 - 1500 6.000 1
7.000 # 1500
8.000 # 1500
9.000 # 1500
10.000 # 1500
11.000 # 1500
12.000 # 1500
12.000 + 1500 1
13.000 # 1500
14.000 # 1500
"""

TINY_MM_LOG = """\
# header
0 + 1504
0 + 1504
# 0 d 1 1504
0 + 1504
# 0 d 1 1504
1 # 1504
1 - 1504 1
2 # 1504
3 # 1504
4 # 1504
5 # 1504
6 # 1504
7 # 1504
8 # 1504
9 # 1504
10 # 1504
11 # 1504
12 # 1504
12 + 1504
13 # 1504
13 - 1504 1
14 # 1504
"""


def test_logs_are_byte_exact(tmp_path: Path) -> None:
    # A window of 3 packets meets a queue of one: two are dropped. The first leaves at the opportunity after its
    # arrival and arrives 5 ms later; its acknowledgement takes as long and releases the next packet.
    path = NetworkPath.from_mahimahi(
        "mm-delay 5 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail --uplink-queue-args=packets=1"
    )
    flow = {"scheme": "fixed_window:cwnd=3", "handshake": False}
    run = simulate(path, [flow], "14ms", record=Record(link_events=True))
    run.native.write_tunnel_log(tmp_path / "data", "data", 1.7e12)
    run.native.write_mm_log(tmp_path / "mm", "up", "# header")
    assert (tmp_path / "data").read_text() == TINY_DATALINK
    assert (tmp_path / "mm").read_text() == TINY_MM_LOG


def test_written_mm_logs_have_mahimahis_header(tmp_path: Path) -> None:
    sweep(tmp_path, experiment(runs=1), logs="all")
    lines = (tmp_path / "cubic_mm_datalink_run1.log").read_text().splitlines()
    assert lines[0] == "# mahimahi mm-link (Uplink) [12mbps.trace] > cubic_mm_datalink_run1.log"
    assert lines[2] == "# queue: droptail [packets=20]"
    assert lines[5] == "# mahimahi config: [delay 10 ms] [loss up=0.01] "
    assert all(re.fullmatch(r"\d+ (# \d+|\+ \d+|- \d+ \d+)|# \d+ d 1 1504", line) for line in lines[6:])


# --- Resumption ----------------------------------------------------------------------------------------------------


def test_only_what_is_missing_or_damaged_is_run_again(tmp_path: Path) -> None:
    first, _ = sweep(tmp_path)
    run_file(tmp_path, first, "bbr", 1).unlink()
    damaged = run_file(tmp_path, first, "cubic", 2)
    damaged.write_bytes(damaged.read_bytes()[:100])
    for left in ("runs/.0123.json.partial", ".x_datalink_run1.log.partial"):
        (tmp_path / left).write_text("half a fi")
    again, watcher = sweep(tmp_path)
    assert sorted(watcher.names) == ["bbr_run1", "cubic_run2"]
    assert len(watcher.notices) == 1
    assert f"cubic_run2: {damaged.name} does not match its checksum" in watcher.notices[0]
    assert numbers(again) == numbers(first)
    assert not list(tmp_path.rglob("*.partial"))


def test_logs_that_are_wanted_later_are_written_later(tmp_path: Path) -> None:
    sweep(tmp_path, logs="none")
    assert not (tmp_path / "cubic_datalink_run1.log").exists()
    _, watcher = sweep(tmp_path, logs="first")
    assert sorted(watcher.names) == ["bbr_run1", "cubic_run1"]


def test_an_edited_log_is_reported_and_written_again(tmp_path: Path) -> None:
    sweep(tmp_path, logs="first")
    log = tmp_path / "cubic_datalink_run1.log"
    written = log.read_bytes()
    log.write_bytes(written.replace(b" + 1500 1\n", b" + 1400 1\n", 1))
    results, watcher = sweep(tmp_path, logs="first")
    assert (watcher.names, watcher.notices) == (
        ["cubic_run1"],
        [f"cubic_run1: {log.name} was edited; running it again"],
    )
    lines = log.read_bytes().split(b"\n")
    assert lines[1:] == written.split(b"\n")[1:]
    begun = next(cell.started_epoch_s for cell in results.cells if (cell.scheme, cell.run) == ("cubic", 1))
    assert lines[0] == f"# init timestamp: {begun * 1e3:.3f}".encode()


def times(results: ResultSet) -> list[tuple[float, float]]:
    return sorted((cell.started_epoch_s, cell.started_epoch_s + cell.record.duration_s) for cell in results.cells)


def test_runs_in_virtual_time_follow_one_another(tmp_path: Path) -> None:
    before = time.time()
    results, _ = sweep(tmp_path, jobs=4, logs="first")
    spans = times(results)
    assert spans[0][0] >= before
    assert all(start == pytest.approx(end, abs=1e-6) for (_, end), (start, _) in zip(spans, spans[1:]))
    # In the order in which Pantheon would run them: run by run, within a run scheme by scheme.
    in_order = sorted(results.cells, key=lambda cell: cell.started_epoch_s)
    assert [(cell.run, cell.scheme) for cell in in_order] == [(1, "cubic"), (1, "bbr"), (2, "cubic"), (2, "bbr")]
    stats = (tmp_path / "bbr_stats_run1.log").read_text().splitlines()[:2]
    before_it = (tmp_path / "cubic_stats_run1.log").read_text().splitlines()[1]
    assert stats[0].removeprefix("Start at: ") == before_it.removeprefix("End at: ")
    generated = (tmp_path / "cubic_stats_run1.log").read_text().splitlines()[3].split(" plot.py at ")[1]
    assert generated >= max(file.read_text().splitlines()[1][8:] for file in tmp_path.glob("*_stats_run*.log"))
    # What is run later comes after what is there, although hardly any time has passed.
    run_file(tmp_path, results, "cubic", 1).unlink()
    again, _ = sweep(tmp_path)
    spans = times(again)
    assert all(start >= end - 1e-6 for (_, end), (start, _) in zip(spans, spans[1:]))
    assert max(again.cells, key=lambda cell: cell.started_epoch_s).scheme == "cubic"


def test_an_ignored_run_has_no_statistics_in_its_file(tmp_path: Path) -> None:
    # The second flow starts when its packets cannot arrive before the end.
    path = NetworkPath(rate="12mbps", rtt="200ms")
    made = experiment(path=path, schemes=parse_contenders("cubic"), runs=1, flows=2, interval_ns=1_950_000_000)
    results, _ = sweep(tmp_path, made, logs="first")
    assert results.cells[0].invalid is not None
    lines = (tmp_path / "cubic_stats_run1.log").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["Start at", "End at"]
    assert json.loads((tmp_path / "pantheon_perf.json").read_text()) == {"cubic": {}}


@pytest.mark.parametrize("rate", ["50mbps", "512kbps", "77.72mbps"])
def test_the_log_of_a_rate_has_its_capacity_and_the_numbers_of_its_flows(rate: str, tmp_path: Path) -> None:
    path = NetworkPath(rate=rate, rtt="20ms")
    made = experiment(path=path, schemes=parse_contenders("cubic"), runs=1, flows=2, interval_ns=5 * 10**8)
    results, _ = sweep(tmp_path, made, logs="all")
    from_log = run_metrics(read_log(tmp_path / "cubic_datalink_run1.log"))
    assert from_log.capacity_mbps == pytest.approx(results.cells[0].record.link.capacity_mbps, rel=1e-6)
    text = (tmp_path / "cubic_stats_run1.log").read_text()
    assert statistics_text(from_log) == text.split("# Datalink statistics\n")[1]


def test_results_do_not_depend_on_jobs_order_or_company(tmp_path: Path) -> None:
    together, _ = sweep(tmp_path / "a", jobs=4)
    one, _ = sweep(tmp_path / "b", jobs=1)
    turned, _ = sweep(tmp_path / "c", experiment(schemes=parse_contenders("bbr,cubic")))
    alone, _ = sweep(tmp_path / "d", experiment(schemes=parse_contenders("bbr")))
    assert numbers(together) == numbers(one)
    assert sorted(numbers(turned)) == sorted(numbers(one))
    assert numbers(alone) == [entry for entry in numbers(one) if entry[0] == "bbr"]
    assert together.trajectory_hash == one.trajectory_hash


# --- Failing runs --------------------------------------------------------------------------------------------------


def test_a_failing_run_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class NativePanic(BaseException):
        """What a panic of the native core looks like in Python."""

    def flaky(prepared: Any, halt: Any) -> Any:
        if prepared.flows[0].scheme == "bbr":
            raise NativePanic("assertion failed: inflight <= cwnd")
        return simulate_prepared(prepared, halt)

    monkeypatch.setattr(simulated, "simulate_prepared", flaky)
    words = ["--trace", "12mbps", "--schemes", "cubic,bbr", "--runs", "2", "--runtime", "2", "--out", str(tmp_path)]
    assert main([*words, "--no-figures"]) == 1
    output = capfd.readouterr().out
    assert "failed: bbr, run 1 (seed " in output
    assert "assertion failed: inflight <= cwnd" in output
    assert "TCP Cubic" in output
    results = ResultSet.load(tmp_path)
    assert [(cell.scheme, cell.run) for cell in results.cells] == [("cubic", 1), ("cubic", 2)]
    assert [(failure.scheme, failure.run) for failure in results.failures] == [("bbr", 1), ("bbr", 2)]
    assert json.loads((tmp_path / "pantheon_perf.json").read_text())["bbr"] == {}
    # Mended, the same command runs just the failed ones.
    monkeypatch.setattr(simulated, "simulate_prepared", simulate_prepared)
    assert main([*words, "--no-figures"]) == 0
    assert "2 of 4 runs are there already" in capfd.readouterr().out


# --- The command ---------------------------------------------------------------------------------------------------


def test_the_command_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--mahimahi", "mm-delay 10 mm-link 12mbps.trace 12mbps.trace", "--schemes", "cubic,fixed_window:cwnd=20"]
    assert main([*words, "--runs", "1", "--runtime", "2", "--jobs", "1"]) == 0
    output, error = capfd.readouterr()
    assert error == ""
    assert "mm-delay 10 mm-link 12mbps.trace 12mbps.trace" in output
    assert re.search(r"TCP Cubic +1 ", output)
    assert "single-run" in output
    assert re.search(r"trajectory [0-9a-f]{16}", output)
    (out,) = (tmp_path / "results").iterdir()
    for name in ("pantheon_report.html", "pantheon_report.pdf", "pantheon_summary_mean.svg", "pantheon_table.md"):
        assert (out / name).stat().st_size > 0
        assert str(Path("results", out.name, name)) in output or name == "pantheon_table.csv"
    on_demand = [
        f"fixed_window_cwnd_20_datalink_{name}run1{kind}" for name, kind in (("throughput_", ".png"), ("", ".log"))
    ]
    assert [(out / name).exists() for name in on_demand] == [False, False]
    assert main([*words, "--runs", "1", "--runtime", "2", "--figures", "all", "--logs", "first"]) == 0
    assert [(out / name).exists() for name in on_demand] == [True, True]
    # Other parameters leave this directory alone.
    assert main([*words, "--runs", "2", "--runtime", "2", "--no-figures"]) == 0
    assert len(list((tmp_path / "results").iterdir())) == 2
    with refused(ResultsError, "directory-taken at results/mahimahi-88eceed6"):
        run_experiment(experiment(), out)
