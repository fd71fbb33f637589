"""``ccgym report watch``, and the file that it reads."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from ccgym.cli.watch import line, newest, progress_of, view
from ccgym.config.path import NetworkPath
from ccgym.errors import ResultsError
from ccgym.evaluation.directory import LOCK_FILE
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.progress_file import PROGRESS_FILE, ProgressFile, RunProgress
from ccgym.evaluation.run import contenders
from ccgym.evaluation.runner import run_experiment
from tests.commands import watch as main
from tests.refusals import explained, refused


def test_runs_tell_how_far_they_are(tmp_path: Path) -> None:
    with ProgressFile(tmp_path) as progress:
        progress.begin("simulating", 5, 2)
        progress.run_begins("a")
        progress.run_begins("b")
        now = RunProgress.load(tmp_path)
        assert (now.total, now.kept, now.done, now.left, now.state) == (5, 2, 0, 3, "running")
        time.sleep(0.6)
        progress.run_ends("a")
        progress.run_begins("c")
        time.sleep(0.6)
        progress.run_ends("b", "it broke")
        now = RunProgress.load(tmp_path)
        assert (now.done, now.failed, list(now.running), now.failures) == (2, 1, ["c"], ["b: it broke"])
        assert now.rate is not None
        assert now.eta_s == pytest.approx(1 / now.rate)
        assert 1 < now.run_s < 3
        text = line(tmp_path, now)
        assert "4 of 5 runs, 1 running" in text and "1 failed" in text and "left" in text  # noqa: PT018
        console = Console(file=io.StringIO(), width=100)
        console.print(view(tmp_path, now))
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert "4 of 5 runs" in shown and "failed: b: it broke" in shown and "s  c" in shown  # noqa: PT018
    now = RunProgress.load(tmp_path)
    assert (now.state, now.running) == ("ended", {})
    assert "ended, 1 left" in line(tmp_path, now)


def test_an_interrupted_call_and_a_killed_one_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        with ProgressFile(tmp_path) as progress:
            progress.begin("simulating", 2, 0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert main([str(tmp_path), "--once"]) == 1
    assert "interrupted: the same command continues" in capsys.readouterr().out
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    file = tmp_path / PROGRESS_FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), "state": "running", "pid": gone.pid}))
    now = RunProgress.load(tmp_path)
    assert now.state == "interrupted"


def test_an_evaluation_can_be_watched_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = Experiment(
        NetworkPath(rate="12mbps", rtt="20ms"), contenders(["cubic", "bbr"]), runs=2, runtime_ns=10**9
    )
    run_experiment(experiment, tmp_path / "one")
    run_experiment(experiment, tmp_path / "one")  # all of it is there
    directory, now = newest(tmp_path)
    assert directory == tmp_path / "one"
    assert (now.total, now.kept, now.done, now.state) == (4, 4, 0, "ended")
    assert main([str(tmp_path)]) == 0
    assert "4 of 4 runs, ended" in capsys.readouterr().out


def test_nothing_to_watch_and_a_damaged_file_are_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    explained(capsys.readouterr().err, "results-missing")
    for text in ("{", "[]", '{"surprise": 1}'):
        (tmp_path / PROGRESS_FILE).write_text(text)
        with refused(ResultsError, "results-damaged at .ccgym_progress.json"):
            RunProgress.load(tmp_path)


def test_a_training_is_read_from_its_run_directory(tmp_path: Path) -> None:
    directory = tmp_path / "tiny-1"
    (directory / "checkpoints").mkdir(parents=True)
    (directory / "config.yaml").write_text("training: {steps: 1000}\n")
    lock = directory / LOCK_FILE
    lock.write_text(f"{os.getpid()}\n")
    assert newest(tmp_path)[1].done == 0
    (directory / "progress.csv").write_text("step,sys/steps_per_second\n100,50\n200,40\n")
    found, now = newest(tmp_path)
    assert (found, now.state, now.done, now.total) == (directory, "running", 200, 1000)
    assert "200 of 1000 steps, 1 running" in line(found, now)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    lock.write_text(f"{gone.pid}\n")
    stopped = progress_of(directory)
    assert stopped.state == "interrupted"
    assert main([str(tmp_path), "--once"]) == 1
