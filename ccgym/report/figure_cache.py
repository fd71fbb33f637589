"""Record of the figures that are up to date: if its inputs have not changed, a figure is not drawn again.

``ccgym_figures.json`` in the results directory contains a digest for the figures of each run, each summary and the PDF.
The digest covers their inputs, the code of this package, and the contents of their files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from ccgym.files import atomic_write

DRAWN_FILE: Final = "ccgym_figures.json"


class FigureCache:
    """The digests of a results directory.

    Args:
        directory: The results directory. If the file in it cannot be read, everything is drawn again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, str] = {}
        try:
            known = json.loads((directory / DRAWN_FILE).read_text(encoding="utf-8"))
            self._known = {str(name): str(mark) for name, mark in known.items()}
        except (OSError, ValueError, AttributeError, RecursionError):
            pass

    def is_current(self, name: str, inputs: str, files: Iterable[Path]) -> bool:
        """Return whether a figure is up to date.

        Args:
            name: Its name.
            inputs: Digest of its inputs.
            files: Its files.
        """
        known = self._known.get(name)
        return known is not None and known == self._mark(inputs, files)

    def note(self, name: str, inputs: str, files: Iterable[Path]) -> None:
        """Record that a figure has been drawn; see :meth:`is_current`."""
        mark = self._mark(inputs, files)
        if mark is not None:
            self._known[name] = mark

    def renew(self, name: str, inputs: str, files: Sequence[Path], draw: Callable[[], object]) -> None:
        """Draw a figure unless it is up to date; see :meth:`is_current`."""
        if not self.is_current(name, inputs, files):
            draw()
            self.note(name, inputs, files)

    def write(self) -> None:
        """Write the digests."""
        atomic_write(self._directory / DRAWN_FILE, json.dumps(self._known, indent=1) + "\n")

    def _mark(self, inputs: str, files: Iterable[Path]) -> str | None:
        """Return the digest of inputs and files; None if a file is missing."""
        try:
            return digest(inputs, *(file.read_bytes() for file in files))
        except OSError:
            return None


def digest(*parts: str | bytes) -> str:
    """Return the SHA-256 of the parts and of the code that draws."""
    found = hashlib.sha256(_code().encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(f"{len(data)} ".encode() + data)
    return found.hexdigest()


@cache
def _code() -> str:
    """Return the digest of this package's code, and of the versions of the drawing packages."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        found.update(file.read_bytes())
    for package in ("matplotlib", "numpy", "pillow"):
        found.update(version(package).encode())
    return found.hexdigest()
