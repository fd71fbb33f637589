"""External programs as YAML: the commands that start sender and receiver, and facts about the program."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator

from ccgym.config.declared import Strict
from ccgym.config.yaml_loader import load_model
from ccgym.emulation.programs import End, ProgramWords, ask
from ccgym.errors import ConfigError, RealPathError, did_you_mean, shown
from ccgym.files import UnreadableError, read_bytes
from ccgym.schemes.style import check_color, check_label, check_marker, check_text

FILLED_BY_RUN: Final = frozenset({"port", "address", "seconds"})
"""Placeholders that a run fills in."""
FILLED_HERE: Final = frozenset({"here", "python"})
"""Placeholders that are known before a run: the folder of the file, and the Python that runs ccgym."""

VERSION_TIMEOUT_S: Final = 10.0
"""Max time for a program to print its version, seconds."""
MAX_FILE_BYTES: Final = 2**24
"""Max size of the files of a program that are hashed, bytes."""

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_VALUE: Final = re.compile(r"[\w.,%+-]+")


class Parameter(Strict):
    """A word of the command lines that users can choose."""

    default: str
    """Default value."""
    help: Annotated[str, AfterValidator(check_text)]
    """Description."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty: any word."""


class Declaration(Strict):
    """A sender and a receiver.

    The words of a command can contain placeholders: ``{port}`` and ``{address}`` of the end that listens, ``{seconds}``
    (a whole number, longer than the flow), ``{here}`` (the folder of this file), ``{python}`` (the Python that runs
    ccgym), and parameters.
    """

    label: Annotated[str, AfterValidator(check_label)]
    """Name in tables and legends."""
    summary: Annotated[str, AfterValidator(check_text)]
    """Description in a few words."""
    reference: Annotated[str, AfterValidator(check_text)] = ""
    """Source and license; empty for a user's own program."""
    color: Annotated[str, AfterValidator(check_color)] = "dimgray"
    """Color in figures."""
    marker: Annotated[str, AfterValidator(check_marker)] = "1"
    """Marker in figures."""
    parameters: Mapping[str, Parameter] = Field(default_factory=dict)
    """Parameters of the program, by name."""
    listens: End = "receiver"
    """The end that starts first and listens."""
    sender: tuple[str, ...] = Field(min_length=1)
    """The command that sends without pause until it is terminated."""
    receiver: tuple[str, ...] = Field(min_length=1)
    """The command that receives until it is terminated."""
    version: tuple[str, ...] = Field(min_length=1)
    """The command that prints the version; it fails if the program is not installed."""
    install: Annotated[str, AfterValidator(check_text)] = ""
    """Instructions for the installation; empty for a user's own program."""

    @model_validator(mode="after")
    def _placeholders(self) -> Declaration:
        connects = "sender" if self.listens == "receiver" else "receiver"
        own = set(self.parameters)
        if taken := own & (FILLED_BY_RUN | FILLED_HERE):
            raise ConfigError(
                "duplicate",
                f"parameters {', '.join(sorted(taken))}",
                where="parameters",
                expected="names that are not placeholders",
            )
        everything = FILLED_BY_RUN | FILLED_HERE | own
        for key, allowed, needed in (
            (self.listens, everything, {"port"}),
            (connects, everything, {"port", "address"}),
            ("version", FILLED_HERE, set()),
        ):
            there = {name for word in getattr(self, key) for name in _PLACEHOLDER.findall(word)}
            if unknown := sorted(there - allowed):
                raise ConfigError(
                    "unknown-name",
                    f"the placeholder {{{unknown[0]}}}",
                    where=key,
                    expected=", ".join(f"{{{name}}}" for name in sorted(allowed)),
                    hint=did_you_mean(unknown[0], allowed),
                )
            if missing := sorted(needed - there):
                raise ConfigError(
                    "key-missing",
                    f"no {{{missing[0]}}} in the command",
                    where=key,
                    expected="port and address of the other end"
                    if key == connects
                    else "the port at which the program listens",
                )
        for name, parameter in self.parameters.items():
            _check_value(name, parameter, parameter.default, f"parameters.{name}.default")
        return self


@dataclass(frozen=True)
class DeclaredProgram:
    """A program of a YAML file."""

    name: str
    file: Path
    declared: Declaration

    @property
    def title(self) -> str:
        """Name without folders and suffix."""
        return Path(self.name).stem

    @property
    def label(self) -> str:
        """Name in tables and legends."""
        return self.declared.label

    @property
    def color(self) -> str:
        """Color in figures."""
        return self.declared.color

    @property
    def marker(self) -> str:
        """Marker in figures."""
        return self.declared.marker

    @property
    def digest(self) -> str:
        """Hash of the file, of the files ``{here}…`` in its commands, and of the version."""
        words = [*self.declared.sender, *self.declared.receiver]
        files = {self.file, *(Path(self._fill(word)) for word in words if word.startswith("{here}"))}
        hashed = hashlib.sha256((self.version() or "").encode())
        for file in sorted(files):
            try:
                content = read_bytes(file, MAX_FILE_BYTES)
            except (OSError, UnreadableError):
                content = b""
            hashed.update(hashlib.sha256(content).digest())
        return hashed.hexdigest()

    def provenance(self) -> dict[str, Any]:
        """Return the facts about the program that results record."""
        words = {"sender": list(self.declared.sender), "receiver": list(self.declared.receiver)}
        return {
            "program": self.title,
            "file": str(self.file),
            "sha256": self.digest,
            "version": self.version(),
            **words,
        }

    def check(self, params: Mapping[str, Any], where: str) -> None:
        """See :meth:`ccgym.schemes.programs.Program.check`."""
        known = self.declared.parameters
        for name, value in params.items():
            if name not in known:
                raise ConfigError(
                    "unknown-parameter",
                    f"program:{self.title} has no parameter {shown(name)}",
                    where=where,
                    expected=", ".join(known) or "no parameters",
                    hint=did_you_mean(name, known),
                )
            _check_value(name, known[name], str(value), where)

    def version(self) -> str | None:
        """Return the first line of the program's version; ``None`` if the program is not installed."""
        return _version(self._filled(self.declared.version), os.environ.get("PATH", ""))

    def why_unavailable(self) -> str | None:
        """Return what is missing on this machine; ``None`` if nothing is missing."""
        if self.version() is not None:
            return None
        how = self.declared.install or f"`{' '.join(self._filled(self.declared.version))}` must succeed"
        return f"there is no {self.title} here ({how})"

    def words(self, params: Mapping[str, Any]) -> ProgramWords:
        """Return the commands, with parameters."""
        chosen = {name: parameter.default for name, parameter in self.declared.parameters.items()}
        chosen.update((name, str(value)) for name, value in params.items())
        sender, receiver = (self._filled(words, chosen) for words in (self.declared.sender, self.declared.receiver))
        return ProgramWords(self.declared.listens, sender, receiver)

    def _filled(self, words: Iterable[str], chosen: Mapping[str, str] | None = None) -> tuple[str, ...]:
        return tuple(self._fill(word, chosen) for word in words)

    def _fill(self, word: str, chosen: Mapping[str, str] | None = None) -> str:
        known = {"here": str(self.file.parent), "python": sys.executable, **(chosen or {})}
        return _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), word)


def packaged() -> dict[str, Path]:
    """Return the files of the programs declared in ccgym, by name."""
    folder = (Path(__file__).parents[2] / "_data" / "programs").resolve()
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def load(file: Path, name: str) -> DeclaredProgram:
    """Load the program of a YAML file.

    Raises:
        ConfigError: The file cannot be read or is invalid.
    """
    return DeclaredProgram(name, file.absolute(), load_model(file, Declaration))


def _check_value(name: str, parameter: Parameter, value: str, where: str) -> None:
    if parameter.choices and value not in parameter.choices:
        raise ConfigError(
            "unknown-choice",
            f"{name} is {shown(value)}",
            where=where,
            expected=f"one of {', '.join(parameter.choices)}",
            hint=did_you_mean(value, parameter.choices),
        )
    if not _VALUE.fullmatch(value):
        raise ConfigError(
            "text-malformed",
            f"{name} is {shown(value)}",
            where=where,
            expected="letters, digits and the characters _ . , % + -",
        )


@lru_cache(maxsize=64)
def _version(words: Sequence[str], search_path: str) -> str | None:
    """Return the version, cached per search path, because programs do not change while a command runs."""
    try:
        answer = ask(words, VERSION_TIMEOUT_S, "asking for a version")
    except RealPathError:
        return None
    if answer.status != 0:
        return None
    lines = [line.strip() for line in f"{answer.output}\n{answer.errors}".splitlines()]
    return next((line for line in lines if line), "no version")
