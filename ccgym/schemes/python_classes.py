"""Search and loading of schemes written in Python, ``FILE.py:CLASS`` (``docs/guides/write-a-cca.md``)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ccgym.emulation import python_schemes
from ccgym.emulation.python_schemes import PythonSource
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.files import UnreadableError, read_bytes
from ccgym.schemes.registry import color_by_hash
from ccgym.schemes.scheme import FileScheme, Venue

MAX_SOURCE_BYTES: Final = 2**20
"""Max size of a file, bytes."""

VERSION_DIGITS: Final = 8
"""Hex digits of a version."""

_TEXT: Final = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[^:=]*))?(?P<settings>(?::[^:=]+=[^:]*)*)", re.DOTALL)
_KEY: Final = re.compile(r"[A-Za-z_]\w*\.py@[0-9a-f]{8}")


@dataclass(frozen=True)
class PythonClass:
    """A loaded class."""

    source: PythonSource
    made: type = field(repr=False, compare=False)

    @property
    def key(self) -> str:
        """Name in specifications of runs: ``AIMD.py@1f0c22d9``. The version is a hash of the file's content."""
        return _key(self.source)

    @property
    def given(self) -> str:
        """File and class as typed by the user."""
        return f"{self.source.file}:{self.source.name}"

    @property
    def title(self) -> str:
        """Name of the class."""
        return self.source.name

    @property
    def label(self) -> str:
        """Name in tables and legends."""
        return f"{self.source.name} ({Path(self.source.file).name})"

    @property
    def file_key(self) -> str:
        """Name in file names."""
        return self.key.replace(".py@", "_")

    @property
    def color(self) -> str:
        """Color in figures, derived from file and class."""
        return color_by_hash(self.given)

    @property
    def marker(self) -> str:
        """Marker in figures."""
        return "p"

    @property
    def digest(self) -> str:
        """Hash of the file's content."""
        return self.source.sha256

    def provenance(self) -> dict[str, Any]:
        """Return the facts about the class that results record."""
        return {"class": self.source.name, "file": self.source.file, "sha256": self.digest}

    def check(self, params: Mapping[str, Any], where: str = "") -> None:
        """Create an instance, to check the constructor.

        Raises:
            ConfigError: The constructor has other parameters.
            SimulationError: The constructor raises an exception.
        """
        try:
            signature = inspect.signature(self.made)
            names = [name for name in signature.parameters if name != "self"]
        except (TypeError, ValueError):  # a constructor without signature
            signature, names = None, []
        if signature is not None:
            try:
                signature.bind(**params)
            except TypeError as error:
                unknown = next((name for name in params if name not in names), "")
                raise ConfigError(
                    "unknown-parameter" if unknown else "parameter-invalid",
                    f"{self.title}: {error}",
                    where=where,
                    expected=f"parameters of its constructor: {', '.join(names)}" if names else "no parameters",
                    hint=did_you_mean(unknown, names) if unknown else "",
                ) from None
        try:
            self.made(**params)
        except Exception as error:
            raise python_schemes.exception_in(self.source, self.made, "__init__", error).at(where) from error


class PythonScheme(FileScheme):
    """A scheme that is a class in a Python file."""

    TYPED = "FILE.py:CLASS"
    MEANING = "a scheme written in Python (docs/guides/write-a-cca.md)"

    @classmethod
    def claims(cls, name: str) -> bool:
        return is_key(name) or cls.parts(name) is not None

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        name = found["file"] if found["name"] is None else f"{found['file']}:{found['name'].strip()}"
        return [name, *found["settings"].split(":")[1:]]

    def _check(self, where: str) -> PythonScheme:
        found = find(self.name, where)
        found.check(self.params, where)
        return replace(self, name=found.key)

    def _refusal(self, place: Venue) -> ConfigError | None:
        if place in ("simulator", "real path"):
            return None
        return ConfigError(
            "scheme-unsuitable",
            f"{self.given} is a scheme in Python",
            expected="a scheme of ccgym, or a policy",
            hint="run schemes in Python with `ccgym evaluate`, simulated or with --backend emulated",
        )

    @property
    def loaded(self) -> PythonClass:
        return find(self.name)

    @property
    def identity(self) -> dict[str, Any]:
        return {"scheme": self.title, "python": self.version}


_LOADED: Final[dict[str, PythonClass]] = {}
"""Classes of this process by key."""


def _key(source: PythonSource) -> str:
    return f"{source.name}.py@{source.sha256[:VERSION_DIGITS]}"


def is_key(name: str) -> bool:
    """Return whether a name is a :attr:`PythonClass.key`."""
    return name in _LOADED or _KEY.fullmatch(name) is not None


def find(text: str, where: str = "") -> PythonClass:
    """Find and load the class of ``FILE.py:CLASS`` or of a key.

    Raises:
        ConfigError: The file or class does not exist or cannot be used.
    """
    if text in _LOADED:
        return _LOADED[text]
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ConfigError(
            "argument-missing",
            f"{shown(text)} without a class",
            where=where,
            expected="FILE.py:CLASS, as in examples/aimd.py:AIMD",
        )
    path = Path(file).expanduser()
    try:
        content = read_bytes(path, MAX_SOURCE_BYTES).decode()
    except (FileNotFoundError, UnreadableError, UnicodeDecodeError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise ConfigError(
            "file-unreadable", f"{file} cannot be read: {reason}", where=where, expected="a Python file with a class"
        ) from None
    try:
        return receive(PythonSource(file, name, content))
    except ConfigError as error:
        raise error.at(where) from None


def receive(source: PythonSource) -> PythonClass:
    """Load the class of a source text that this or another process has read.

    Raises:
        ConfigError: The class cannot be used.
    """
    scheme = PythonClass(source, python_schemes.make(_key(source), source))
    return _LOADED.setdefault(scheme.key, scheme)
