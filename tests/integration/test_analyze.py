"""Directories of Pantheon's as results of ours: the same numbers, whatever of a directory is left."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from ccgym.evaluation.pantheon.analysis import analyze
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.results import ResultSet
from tests.commands import analyze as main
from tests.commands import pantheon
from tests.differential.pantheon_cases import CASES, PARAMETERS, statistics
from tests.refusals import explained

PANTHEONS = ("*_datalink_*.log", "*_acklink_*.log", "*_stats_*.log", "pantheon_metadata.json", "config.yml")
"""What Pantheon has, too, of what an evaluation writes."""


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[ResultSet, Path]:
    """Three flows in each of four runs, and a directory of Pantheon's with them."""
    return _evaluated("rate", tmp_path_factory)


def _evaluated(case: str, factory: pytest.TempPathFactory) -> tuple[ResultSet, Path]:
    ours, theirs = factory.mktemp("ours"), factory.mktemp("theirs")
    results = CASES[case].run(ours)
    for pattern in PANTHEONS:
        for file in ours.glob(pattern):
            shutil.copy(file, theirs)
    return results, theirs


def _copy(directory: Path, target: Path, *patterns: str) -> Path:
    target.mkdir()
    for pattern in patterns:
        for file in directory.glob(pattern):
            shutil.copy(file, target)
    return target


@pytest.mark.parametrize("case", PARAMETERS)
def test_from_its_logs_a_directory_has_the_numbers_of_its_evaluation(
    case: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    results, directory = _evaluated(case, tmp_path_factory)
    found = analyze(PantheonDirectory.open(directory), tmp_path)
    assert [(cell.scheme, cell.run) for cell in found.cells] == sorted((c.scheme, c.run) for c in results.cells)
    assert {style.key: style for style in found.styles} == {style.key: style for style in results.styles}
    for ours in results.cells:
        read = next(cell for cell in found.cells if (cell.scheme, cell.run) == (ours.scheme, ours.run))
        assert read.invalid == ours.invalid
        assert len(read.record.flows) == len(ours.record.flows)
        assert read.record.total.throughput_mbps == pytest.approx(ours.record.total.throughput_mbps, rel=1e-6)
        assert read.record.total.delay_p95_ms == pytest.approx(ours.record.total.delay_p95_ms, abs=5.01e-4)
        assert read.record.total.loss == pytest.approx(ours.record.total.loss, rel=1e-6)
    # A link without a trace has no delivery opportunities in Pantheon's logs, and so no capacity.
    known = all(cell.record.link.capacity_mbps is not None for cell in found.cells)
    assert statistics(tmp_path) == (statistics(directory) if known else _without_capacity(statistics(directory)))
    assert ResultSet.load(tmp_path) == found


def _without_capacity(files: dict[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    return {
        name: [line.split(" (")[0] if "utilization" in line else line for line in lines if "capacity" not in line]
        for name, lines in files.items()
    }


def test_without_logs_the_numbers_are_those_of_the_statistics(
    evaluated: tuple[ResultSet, Path], tmp_path: Path
) -> None:
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "*_stats_*.log")
    found = analyze(PantheonDirectory.open(kept), tmp_path / "out")
    for file in kept.glob("*_stats_*.log"):
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes(), "what was read stays as it was"
    assert all(cell.invalid is None and not cell.curves and len(cell.record.flows) == 3 for cell in found.cells)


def test_runs_keep_their_numbers_and_metadata_may_be_missing(evaluated: tuple[ResultSet, Path], tmp_path: Path) -> None:
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "bbr_datalink_run2.log")
    found = analyze(PantheonDirectory.open(kept), tmp_path / "out")
    assert [(cell.scheme, cell.run) for cell in found.cells] == [("bbr", 2)]
    assert found.styles[0].label == "TCP BBR"
    assert found.cells[0].started_epoch_s is None
    assert (tmp_path / "out" / "bbr_stats_run2.log").read_text().startswith("\n# Below"), "nothing says when it ran"


def test_offsets_of_clocks_are_kept(evaluated: tuple[ResultSet, Path], tmp_path: Path) -> None:
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "bbr_*_run1.log")
    file = kept / "bbr_stats_run1.log"
    lines = file.read_text().splitlines(keepends=True)
    offsets = ["Local clock offset: -1.25 ms\n", "Remote clock offset: 0.4 ms\n"]
    file.write_text("".join([*lines[:2], *offsets, *lines[2:]]))
    analyze(PantheonDirectory.open(kept), tmp_path / "out")
    assert (tmp_path / "out" / "bbr_stats_run1.log").read_text().splitlines(keepends=True)[2:4] == offsets


@pytest.mark.long
def test_the_command_reports(evaluated: tuple[ResultSet, Path], tmp_path: Path) -> None:
    _, directory = evaluated
    out = tmp_path / "out"
    assert main([str(directory), "--schemes", "vegas", "--out", str(out)]) == 0
    assert (out / "pantheon_report.pdf").stat().st_size > 10_000
    assert "Vegas" in (out / "pantheon_report.html").read_text()
    assert not (directory / "results.json").exists()


@pytest.mark.long
def test_acknowledgements_have_figures_where_they_were_logged(
    evaluated: tuple[ResultSet, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "bbr_*_run?.log")
    (kept / "bbr_acklink_run2.log").unlink()
    assert main([str(kept), "--include-acklink", "--out", str(tmp_path / "out")]) == 0
    assert "1 of 2 runs have no log" in capsys.readouterr().out
    names = {file.name for file in (tmp_path / "out").glob("*_acklink_*")}
    assert names == {"bbr_acklink_throughput_run1.png", "bbr_acklink_delay_run1.png"}


@pytest.mark.long
def test_without_packets_the_report_has_no_figures_of_runs(evaluated: tuple[ResultSet, Path], tmp_path: Path) -> None:
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "*_stats_*.log")
    assert main([str(kept), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "pantheon_report.html").read_text()
    assert "Average throughput" in page
    assert "missing" not in page


@pytest.mark.long
def test_in_place_the_statistics_that_were_read_stay(evaluated: tuple[ResultSet, Path], tmp_path: Path) -> None:
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "*_stats_*.log")
    before = {file.name: file.read_bytes() for file in kept.iterdir()}
    assert pantheon(["analyze", "--data-dir", str(kept)]) == 0
    assert {name: (kept / name).read_bytes() for name in before} == before


def test_a_directory_of_ours_is_reported_in_place(tmp_path: Path) -> None:
    CASES["ignored"].run(tmp_path)
    assert main([str(tmp_path), "--no-figures"]) == 0
    assert (tmp_path / "pantheon_table.md").exists()
    assert main([str(tmp_path), "--out", str(tmp_path / "other")]) == 2


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("pantheon_metadata.json", "{", "file-malformed at kept/pantheon_metadata.json"),
        ("pantheon_metadata.json", '["cubic"]', "file-malformed at kept/pantheon_metadata.json"),
        ("config.yml", "schemes: {bbr: {name: BBR, color: reddish, marker: x}}", "unknown-choice at kept/config.yml"),
        ("config.yml", "schemes: [bbr]", "file-malformed at kept/config.yml"),
        ("bbr_datalink_run1.log", "# init timestamp: 1\n1.0 - 15", "log-malformed at kept/bbr_datalink_run1.log:2"),
        ("bbr_datalink_run1.log", "1.0 + many 1\n", "log-malformed at kept/bbr_datalink_run1.log:1"),
    ],
)  # fmt: skip
def test_damage_is_named(
    file: str, text: str, said: str, evaluated: tuple[ResultSet, Path], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    _, directory = evaluated
    kept = _copy(directory, tmp_path / "kept", "bbr_*_run1.log", "pantheon_metadata.json")
    (kept / file).write_text(text)
    assert main([str(kept), "--out", str(tmp_path / "out"), "--no-figures"]) == 2
    explained(capsys.readouterr().err, said)


def test_what_is_not_there_is_named(
    evaluated: tuple[ResultSet, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, directory = evaluated
    for words, what in (
        ([str(tmp_path / "nowhere")], f"results-missing at {tmp_path / 'nowhere'}"),
        ([str(tmp_path)], f"results-missing at {tmp_path}"),
        ([str(directory), "--schemes", "bbbr", "--out", str(tmp_path / "out")], "unknown-scheme at --schemes"),
    ):
        assert main(words) == 2
        explained(capsys.readouterr().err, what)


def test_json_is_what_was_written(
    evaluated: tuple[ResultSet, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, directory = evaluated
    assert main([str(directory), "--out", str(tmp_path), "--no-figures", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "results.json").read_text())


# --- Hostile logs ----------------------------------------------------------------------------------------------------

LOG = "# init timestamp: 1.0\n0.000 + 1500 1\n20.000 - 1500 20.000 1\n"


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_file_is_refused_at_once(
    kind: str, alone: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    log = given / "cubic_datalink_run1.log"
    if kind == "fifo":
        os.mkfifo(log)
    else:
        log.symlink_to("/dev/zero")
    assert main([str(log if alone else given), "--no-figures", "--out", str(tmp_path / "out")]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pantheon_metadata.json", '{"runtime": NaN}'),
        ("pantheon_metadata.json", '{"runtime": 1e300}'),
        ("pantheon_metadata.json", '{"runtime": "long"}'),
        ("pantheon_metadata.json", '{"flows": -1}'),
        ("pantheon_metadata.json", '{"test_config": [1]}'),
        ("cubic_stats_run1.log", "Start at: 2019-13-45 00:00:00\n"),
        ("cubic_stats_run1.log", "-- Total of 1 flow:\nAverage throughput: 1.2.3 Mbit/s\n"),
        (os.fsdecode(b"cubic\xff_datalink_run1.log"), LOG),
    ],
)
def test_hostile_files_are_one_error(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "cubic_datalink_run1.log").write_text(LOG)
    (given / name).write_text(text)
    assert main([str(given), "--no-figures", "--out", str(tmp_path / "out")]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.long
def test_a_thousand_flows_are_read(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    events = [(t := i * 0.5, f"{t:.3f} + 1500 {i % 1000 + 1}\n") for i in range(20_000)]
    events += [(t + 20, f"{t + 20:.3f} - 1500 20.000 {i % 1000 + 1}\n") for i, (t, _) in enumerate(list(events))]
    (given / "cubic_datalink_run1.log").write_text("".join(line for _, line in sorted(events)))
    assert main([str(given), "--out", str(tmp_path / "out")]) == 0
