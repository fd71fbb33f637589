"""Reading files that may hold anything: one clear reason, whatever is there, and never more than allowed."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from ccgym.errors import PlatformError
from ccgym.files import MAX_JSON_DEPTH, UnreadableError, atomic_write, parse_json, read_bytes, read_json
from tests.refusals import refused


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": [1, -2.5, "x"]}')
    assert read_json(file) == {"a": [1, -2.5, "x"]}
    assert read_bytes(file, 21) == file.read_bytes()


def test_reading_takes_the_memory_of_the_file_and_not_of_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    tracemalloc.start()
    try:
        assert read_bytes(file, 2**31) == b"{}"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_no_more_is_read_than_allowed(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as sparse:
        sparse.truncate(2**40)
    with pytest.raises(UnreadableError, match="larger than 100 bytes"):
        read_bytes(file, 100)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/stdin", "pipe", "socket"])
def test_only_regular_files_are_read(place: str, tmp_path: Path) -> None:
    import socket

    file = tmp_path / place  # an absolute one stays as it is
    if place == "pipe":
        os.mkfifo(file)
    with socket.socket(socket.AF_UNIX) as listener:
        if place == "socket":
            listener.bind(str(file))
        with pytest.raises(UnreadableError):
            read_bytes(file, 100)


def test_a_directory_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="is a directory"):
        read_bytes(tmp_path, 100)


def test_what_is_missing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("none", "file/below"):
        with pytest.raises(FileNotFoundError):
            read_bytes(tmp_path / place, 100)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "levels deep"),
        ("[" * 100_000 + "]" * 100_000, "levels deep"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "levels deep"),
        ("[" * (MAX_JSON_DEPTH + 1) + "]" * (MAX_JSON_DEPTH + 1), "levels deep"),
        ("9" * 5001, "a number of 5001 digits"),
        ('{"a": -' + "9" * 21 + "}", "a number of"),
        ('{"a"', "not JSON"),
        ("", "not JSON"),
        (b"\xff\xfe\xfd", "not UTF-8"),
    ],
)
def test_json_has_bounds(text: str | bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        parse_json(text)


def test_json_within_the_bounds_is_read() -> None:
    assert parse_json(f"[{2**64 - 1}, {-(2**63)}]") == [2**64 - 1, -(2**63)]
    deep = parse_json("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)
    for _ in range(MAX_JSON_DEPTH - 1):
        (deep,) = deep
    assert deep == []


def test_a_directory_in_a_results_place_is_explained(tmp_path: Path) -> None:
    (tmp_path / "table.csv").mkdir()
    with refused(PlatformError, "file-unwritable at table.csv"):
        atomic_write(tmp_path / "table.csv", "1")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Path, data: bytes) -> int:
        file.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "table.csv").write_text("old")
    monkeypatch.setattr(Path, "write_bytes", full)
    with refused(PlatformError, "file-unwritable at table.csv"):
        atomic_write(tmp_path / "table.csv", "new")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "old"


def test_writers_of_one_file_on_several_machines_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []

    def replace(self: Path, target: Path) -> None:
        names.append(self.name)
        self.rename(target)

    monkeypatch.setattr(Path, "replace", replace)
    for _ in range(2):  # one process and one thread have the same numbers on every machine
        atomic_write(tmp_path / "file", "text")
    assert len(set(names)) == 2
    assert all(name.startswith(".") and name.endswith(".partial") for name in names)
