"""Files that are parameters of schemes, such as the rule table of ``taova``.

A user gives a path. The check of the scheme reads the file and replaces the path by *name@version*. The version is the
beginning of a hash over the content, so a changed file is another scheme in names, seeds and digests of runs. The
native core gets the content, because it opens no files for schemes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ccgym.errors import ConfigError, shown
from ccgym.files import UnreadableError, read_bytes

MAX_FILE_BYTES: Final = 2**20
"""Max size of a file, bytes."""

VERSION_DIGITS: Final = 8
"""Hex digits of a version."""


@dataclass(frozen=True)
class ParameterFile:
    """A loaded file."""

    given: str
    """Path as typed by the user."""
    content: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def key(self) -> str:
        """Key of the file in the parameters of a checked scheme: ``rules.dna@1f0c22d9``."""
        return f"{Path(self.given).name}@{self.digest[:VERSION_DIGITS]}"


def load(given: object, where: str) -> ParameterFile:
    """Load the file at a path, or return the file already loaded under a key.

    Args:
        given: Path or key.
        where: Scheme and parameter, for errors.

    Raises:
        ConfigError: The file cannot be read.
    """
    if not isinstance(given, str) or not given:
        raise ConfigError("wrong-type", shown(given), where=where, expected="the path of a file")
    known = loaded(given)
    if known is not None:
        return known
    try:
        content = read_bytes(Path(given), MAX_FILE_BYTES)
    except (FileNotFoundError, UnreadableError) as error:
        raise ConfigError(
            "file-unreadable",
            f"the file {shown(given)} cannot be read: {error.strerror if isinstance(error, OSError) else error}",
            where=where,
            expected="the path of a file, absolute or from the current directory",
            hint="omit the parameter to use its default",
        ) from None
    file = ParameterFile(given, content)
    _LOADED[file.key] = file
    return file


def loaded(key: object) -> ParameterFile | None:
    """Return the file of a parameter of a checked scheme; ``None`` if the parameter is not a file."""
    return _LOADED.get(key) if isinstance(key, str) else None


def receive(file: ParameterFile) -> None:
    """Add a file that another process has read."""
    _LOADED[file.key] = file


_LOADED: Final[dict[str, ParameterFile]] = {}
