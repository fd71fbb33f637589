"""The directory of a suite: runs that are finished, found again by what decided them.

``cells/<test>_<scheme>.jsonl`` gets a line per run as it ends. A line is found by the digest of everything that decided
its outcome. So an interrupted suite goes on where it stopped, a further scheme or more repetitions only add to what is
there, and a test that changed is run again by itself.
"""

from __future__ import annotations

import hashlib
import json
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from ccgym.evaluation.directory import RUNS_DIRECTORY, lock_directory
from ccgym.evaluation.weaknesses.runs import Cell, RunResult
from ccgym.files import parse_json


class RunStore:
    """The runs of a directory. Use it as a context manager: it holds a lock. Not for several threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.damaged: Final[list[str]] = []
        """Files with lines that cannot be used, and how many; those runs are made again."""
        self._cells = directory / RUNS_DIRECTORY
        self._lock: TextIOWrapper | None = None
        self._known: dict[Path, dict[str, RunResult]] = {}
        self._open: dict[Path, TextIOWrapper] = {}

    def __enter__(self) -> RunStore:
        self._lock = lock_directory(self.directory, "suite")
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read(self, cell: Cell) -> RunResult | None:
        """A finished run; None where it has to be run."""
        file = self._file(cell)
        if file not in self._known:
            self._known[file] = self._load(file)
        return self._known[file].get(cell.digest)

    def write(self, cell: Cell, result: RunResult) -> None:
        """Keep a finished run."""
        file = self._file(cell)
        if file not in self._open:
            cut_off = file.exists() and file.stat().st_size > 0 and not file.read_bytes().endswith(b"\n")
            self._open[file] = file.open("a", encoding="utf-8")
            if cut_off:
                self._open[file].write("\n")
        body = json.dumps(result.as_dict(), separators=(",", ":"))
        line = {"digest": cell.digest, "sha256": _sha256(body), "body": body}
        self._open[file].write(json.dumps(line, separators=(",", ":")) + "\n")
        self._open[file].flush()
        self._known.setdefault(file, {})[cell.digest] = result

    def _file(self, cell: Cell) -> Path:
        return self._cells / f"{cell.test.name}_{cell.choice.key}.jsonl"

    def _load(self, file: Path) -> dict[str, RunResult]:
        """The lines of a file that can be used; of equal digests the last."""
        found: dict[str, RunResult] = {}
        bad = 0
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return found
        for line in lines:
            try:
                entry = parse_json(line)
                if _sha256(entry["body"]) != entry["sha256"]:
                    raise ValueError("checksum")
                found[entry["digest"]] = RunResult.from_dict(parse_json(entry["body"]))
            except (ValueError, KeyError, TypeError, AttributeError):
                bad += bool(line.strip())
        if bad:
            self.damaged.append(f"{file.name}: {bad} damaged line{'s' if bad != 1 else ''}; running those again")
        return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
