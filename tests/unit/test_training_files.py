"""Files of a training run: whole or not at all, on a full disk too; tables; checkpoints; the run directory."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ccgym import files
from ccgym.errors import ConfigError, PlatformError, ResultsError
from ccgym.training import streams
from ccgym.training.checkpoint import Checkpoint, latest_checkpoint, read_checkpoint, write_checkpoint
from ccgym.training.logs import Table
from ccgym.training.run_directory import RunDirectory, new_run_directory, open_run
from tests.refusals import refused


def full_disk(monkeypatch: pytest.MonkeyPatch, after: int = 0) -> None:
    """Let every write fail as on a full disk, after so many bytes."""
    left = after
    real = os.write

    def write(descriptor: int, data: Any) -> int:
        nonlocal left
        if len(data) > left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= len(data)
        return real(descriptor, data)

    monkeypatch.setattr(files.os, "write", write)


# --- Files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", ["before", "between", "after"])
def test_a_directory_survives_a_kill_while_it_is_replaced(tmp_path: Path, killed: str) -> None:
    target, old, partial = tmp_path / "best", tmp_path / ".best.old", tmp_path / ".best.partial"
    files.write_directory(target, {"a": b"old"})
    if killed == "before":
        partial.mkdir()
    elif killed == "between":
        target.rename(old)
        partial.mkdir()
        (partial / "a").write_bytes(b"new")
    else:
        shutil.copytree(target, old)
    files.settle_directory(target)
    assert (target / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["best"]


# --- Tables ----------------------------------------------------------------------------------------------------------


def test_a_table_grows_and_is_cut_back(tmp_path: Path) -> None:
    file = tmp_path / "progress.csv"
    table = Table(file)
    table.add(10, {"a": 1.5})
    table.add(20, {"a": float("nan"), "b": np.float32(0.1), "text": object()})
    table.add(30, {"b": 7})
    assert file.read_text().splitlines() == ["step,a,b", "10,1.5,", "20,,0.10000000149011612", "30,,7"]
    before = file.read_bytes()
    resumed = Table(file, resume_at=20)
    assert file.read_text().splitlines()[-1].startswith("20,")
    resumed.add(30, {"b": 7})
    assert file.read_bytes() == before


def test_a_row_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "progress.csv"
    Table(file).add(10, {"a": 1})
    with file.open("a") as tail:
        tail.write("2")
    Table(file, resume_at=10)
    assert file.read_text() == "step,a\n10,1\n"


# --- Checkpoints -----------------------------------------------------------------------------------------------------


def some(step: int) -> Checkpoint:
    return Checkpoint(step, b"model" * 100, {"n": step, "t": torch.arange(step % 7), "nested": [{"x": 2**100}]})


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path, some(5), keep=1)
    back = read_checkpoint(directory)
    assert (back.step, back.model, back.state["n"]) == (5, some(5).model, 5)
    assert torch.equal(back.state["t"], torch.arange(5))
    assert back.state["nested"] == [{"x": 2**100}]
    assert (tmp_path / "latest").read_text() == f"{directory.name}\n"


def test_the_last_few_are_kept(tmp_path: Path) -> None:
    for step in (100, 9, 1000):  # by number, not by name
        write_checkpoint(tmp_path, some(step), keep=2)
    assert sorted(path.name for path in tmp_path.glob("step_*")) == ["step_100", "step_1000"]


@pytest.mark.parametrize("file", ["rl_model.zip", "state.pt", "checkpoint.json"])
@pytest.mark.parametrize("how", ["cut", "flipped", "missing", "emptied"])
def test_damage_is_found_and_the_previous_one_used(tmp_path: Path, file: str, how: str) -> None:
    write_checkpoint(tmp_path, some(1), keep=3)
    target = write_checkpoint(tmp_path, some(2), keep=3) / file
    content = bytearray(target.read_bytes())
    if how == "missing":
        target.unlink()
    else:
        content[len(content) // 2] ^= 0xFF
        target.write_bytes(b"" if how == "emptied" else content if how == "flipped" else content[: len(content) // 2])
    checkpoint, damages = latest_checkpoint(tmp_path)
    assert checkpoint.step == 1
    assert [str(tmp_path / "step_2") in damage for damage in damages] == [True]


def test_a_checkpoint_is_not_a_program(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    directory = write_checkpoint(tmp_path, some(1), keep=1)

    class Evil:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(marker),))

    torch.save({"a": Evil()}, directory / "state.pt")
    manifest = json.loads((directory / "checkpoint.json").read_text())
    manifest["sha256"]["state.pt"] = hashlib.sha256((directory / "state.pt").read_bytes()).hexdigest()
    (directory / "checkpoint.json").write_text(json.dumps(manifest))
    with refused(ResultsError, "checkpoint-damaged at step_1"):
        read_checkpoint(directory)
    assert not marker.exists()


def test_a_full_disk_leaves_earlier_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, some(1), keep=1)
    full_disk(monkeypatch, after=600)
    with refused(PlatformError, "file-unwritable at step_2"):
        write_checkpoint(tmp_path, some(2), keep=1)
    checkpoint, damages = latest_checkpoint(tmp_path)
    assert checkpoint.step == 1
    assert damages == []


# --- The run directory -----------------------------------------------------------------------------------------------


def test_a_run_directory_is_claimed_once(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run") as run:
        run.claim("name: x\n", {"root": 1}, ["python", "train.py", "a b"])
        assert json.loads((run.path / "seeds.json").read_text()) == {"root": 1}
        written = json.loads((run.path / "versions.json").read_text())
        assert {"ccgym", "torch", "stable_baselines3", "python"} <= set(written["versions"])
        assert (run.path / "command.txt").read_text() == "python train.py 'a b'\n"
        with refused(ResultsError, "directory-taken at run"):
            run.claim("name: y\n", {}, [])
    assert open_run(tmp_path / "run").config.read_text() == "name: x\n"


def test_two_trainers_do_not_share_a_directory(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from ccgym.training.run_directory import RunDirectory
with RunDirectory(Path({str(tmp_path)!r})):
    print("locked", flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "locked\n"
    try:
        with refused(ResultsError, "directory-locked"):
            RunDirectory(tmp_path).__enter__()
    finally:
        other.kill()  # no clean-up there: the lock must not outlive it all the same
        other.communicate()
    with RunDirectory(tmp_path):
        pass


def test_names_of_new_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert new_run_directory("a.b", 3) == Path("runs/a.b-3-1")
    for name in ("a.b-3-1", "a.b-3-9", "a.b-3-10", "a.b-3-x", "aXb-3-99"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert new_run_directory("a.b", 3) == Path("runs/a.b-3-11")


def test_a_missing_run_and_a_damaged_file_are_explained(tmp_path: Path) -> None:
    with refused(ConfigError, "run-missing at no"):
        open_run(tmp_path / "no")
    with refused(ConfigError, "run-missing"):
        open_run(tmp_path)
    (tmp_path / "x.json").write_text("[1")
    with refused(ResultsError, "results-damaged at x.json"):
        RunDirectory(tmp_path).read_json(tmp_path / "x.json")


# --- Random streams --------------------------------------------------------------------------------------------------


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))  # noqa: NPY002


def test_generators_come_back() -> None:
    kept = streams.capture_generators()
    try:
        streams.restore_generators(kept)
        first = draws()
        streams.restore_generators(kept)
        assert draws() == first
    finally:
        streams.restore_generators(kept)


def test_streams_differ_by_name_and_root() -> None:
    seeds = [streams.stream_seed(root, name) for root in (1, 2) for name in ("model", "environment", "a", "ab")]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert streams.stream_seed(1, "model") == streams.stream_seed(1, "model")
