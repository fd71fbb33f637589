"""Packet logs that are written later, and what `ccgym clean` removes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccgym.cli.main import main
from ccgym.evaluation.results import ResultSet
from tests.refusals import explained

SHORT = ("--trace", "12mbps", "--schemes", "cubic,bbr", "--runs", "2", "--runtime", "1")


def files(out: Path, pattern: str = "*link_run*.log") -> dict[str, list[str]]:
    """The lines of logs but for the first, which says when the run began."""
    return {one.name: one.read_text().splitlines()[1:] for one in out.glob(pattern) if "_mm_" not in one.name}


def numbers(out: Path) -> list[object]:
    return [(one.name, one.record, one.invalid) for one in ResultSet.load(out).cells]


def test_logs_are_written_later_and_removed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at_once, out = tmp_path / "at once", tmp_path / "later"
    assert main(["evaluate", *SHORT, "--no-figures", "--logs", "all", "--out", str(at_once)]) == 0
    assert main(["evaluate", *SHORT, "--no-figures", "--out", str(out)]) == 0
    before, held = numbers(out), {file.name for file in out.iterdir()}
    said = capsys.readouterr().out
    assert f"ccgym logs {out} writes" in said
    assert " MB in 14 files are in " in said.splitlines()[-1]
    assert main(["logs", str(out), "--scheme", "cubic", "--run", "2"]) == 0
    assert set(files(out)) == {"cubic_datalink_run2.log", "cubic_acklink_run2.log"}
    assert [one.name for pattern in ("*_stats_run*", "*_run*.csv") for one in out.glob(pattern)] == [
        "cubic_stats_run2.log",
        "cubic_run2.csv",
    ]
    assert main(["logs", str(out)]) == 0
    assert files(out) == files(at_once), "packet by packet the same"
    assert numbers(out) == before == numbers(at_once)
    assert ResultSet.load(out).provenance["command"].startswith("ccgym evaluate"), "still what made it"

    edited = out / "bbr_datalink_run1.log"
    edited.write_text(edited.read_text() + "# mine\n")
    (out / "bbr_datalink_delay_run2.png").write_bytes(b"a figure of a run")
    (out / "mine_datalink_run1.log").write_text("of somebody else")
    capsys.readouterr()
    assert main(["clean", str(out)]) == 0
    said = capsys.readouterr().out
    assert " MB in 24 files removed" in said, "4 logs, statistics and series of each run, 1 edited, 1 figure"
    assert held <= {file.name for file in out.iterdir()}
    assert set(files(out)) == {edited.name, "mine_datalink_run1.log"}
    assert numbers(out) == before
    assert main(["evaluate", *SHORT, "--no-figures", "--out", str(out)]) == 0


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--scheme", "copa"], "unknown-scheme at --scheme"),
        (["--run", "9"], "out-of-range at --run"),
    ],
)
def test_runs_that_are_not_there(
    words: list[str], refusal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *SHORT, "--no-figures", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["logs", str(tmp_path), *words]) == 2
    explained(capsys.readouterr().err, refusal)
    document = json.loads((tmp_path / "results.json").read_text())
    document["provenance"]["command"] = ""
    (tmp_path / "results.json").write_text(json.dumps(document))
    assert main(["logs", str(tmp_path)]) == 2
    explained(capsys.readouterr().err, "backend-unsuitable")
