"""``ccgym watch``: what the driver leaves, read while it works, after it ended, and after it was killed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ccgym.cli import watch
from ccgym.cli.evaluate import main as evaluate
from ccgym.cli.main import main
from ccgym.cli.progress_file import ProgressFile
from ccgym.evaluation.directory import LOCK_FILE, PROGRESS_FILE
from ccgym.evaluation.engine import Silent
from ccgym.files import atomic_write


def wait_for(file: Path, words: str) -> None:
    give_up = time.monotonic() + 20
    while not (file.exists() and words in file.read_text()):
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_work_under_way_and_at_its_end(tmp_path: Path) -> None:
    with ProgressFile(tmp_path, Silent()) as progress:
        progress.begin("simulating", 10, 2)
        for number in range(3):
            progress.began(f"cubic {number}")
        progress.ended("cubic 0", None)
        progress.advance("simulating", 1, "cubic 0")
        progress.ended("cubic 1", "the simulation was stopped\n  hint: less")
        progress.advance("simulating", 1, "cubic 1")
        wait_for(tmp_path / PROGRESS_FILE, "the simulation was stopped")
        (seen,) = watch.states(tmp_path)
        assert (seen.state, seen.running_count, seen.failed) == ("running", 1, 1)
        assert [name for name, _ in seen.running] == ["cubic 2"]
        assert seen.failures == ["cubic 1: the simulation was stopped"]
        (stage,) = seen.stages
        assert (stage.done, stage.total, stage.kept) == (4, 10, 2)
        assert stage.per_s > 0
        assert "4/10" in seen.line
        assert "left" in seen.line
    assert watch.states(tmp_path)[0].state == "done"


def test_an_interruption_is_said() -> None:
    file = Path("nowhere")
    with pytest.raises(KeyboardInterrupt), ProgressFile(file, Silent()):
        raise KeyboardInterrupt
    assert not file.exists(), "the directory is made by what fills it"


def test_a_killed_process_is_noticed(tmp_path: Path) -> None:
    with ProgressFile(tmp_path, Silent()) as progress:
        progress.begin("simulating", 10)
        wait_for(tmp_path / PROGRESS_FILE, "simulating")
        left = json.loads((tmp_path / PROGRESS_FILE).read_text())
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    atomic_write(tmp_path / PROGRESS_FILE, json.dumps({**left, "pid": gone}))
    assert watch.states(tmp_path)[0].state == "killed"
    # On another machine only its silence tells.
    atomic_write(tmp_path / PROGRESS_FILE, json.dumps({**left, "host": "elsewhere", "written": time.time()}))
    assert watch.states(tmp_path)[0].state == "running"
    long_ago = time.time() - 2 * watch.SILENT_S
    atomic_write(tmp_path / PROGRESS_FILE, json.dumps({**left, "host": "elsewhere", "written": long_ago}))
    assert watch.states(tmp_path)[0].state == "killed"


def test_an_evaluation_is_seen_below_its_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results" / "12mbps"
    words = [
        "--trace",
        "12mbps",
        "--schemes",
        "cubic",
        "--runs",
        "2",
        "--runtime",
        "1",
        "--no-figures",
        "--logs",
        "none",
    ]
    assert evaluate([*words, "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["watch", str(tmp_path)]) == 0
    line = capsys.readouterr().out
    assert line.count("\n") == 1, "one plain line where there is no terminal"
    assert "done" in line
    assert "simulating 2/2" in line


def test_a_training_is_read_from_its_run_directory(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "config.yaml").write_text("training: {steps: 1000}\n")
    (tmp_path / "progress.csv").write_text("step,sys/steps_per_second\n100,50\n200,40\n")
    (tmp_path / LOCK_FILE).write_text(f"{os.getpid()}\n")
    (seen,) = watch.states(tmp_path)
    assert (seen.state, seen.stages[0].done, seen.stages[0].total) == ("running", 200, 1000)
    assert "40/s, 0:20 left" in seen.line
    (tmp_path / LOCK_FILE).unlink()
    assert watch.states(tmp_path)[0].state == "stopped"


def test_it_ends_when_the_work_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    screen = (tmp_path / "screen").open("w")
    monkeypatch.setattr(watch, "console", lambda: Console(file=screen, force_terminal=True, width=100))
    looks = iter(["running", "running", "done"])
    stage = watch.Stage("simulating", 5, 10, 2.0)

    def look() -> list[watch.State]:
        return [watch.State(tmp_path, next(looks), 3.0, [stage], [("bbr run 1", 1.0)], 1)]

    assert watch.show(look, every_s=0.01) == 0
    screen.close()
    shown = (tmp_path / "screen").read_text()
    assert "bbr run 1" in shown
    assert "done" in shown


def test_nothing_to_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "no such directory" in capsys.readouterr().err
    assert main(["watch", str(tmp_path)]) == 2
    assert "nothing that could be watched" in capsys.readouterr().err
    (tmp_path / PROGRESS_FILE).write_text("{")
    assert main(["watch", str(tmp_path)]) == 2
    assert "damaged" in capsys.readouterr().err
