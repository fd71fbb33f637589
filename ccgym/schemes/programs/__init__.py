"""External programs as schemes: ``program:NAME``, ``program:FILE.yaml``, ``program:PATH/TO/wrapper.py``
(``docs/guides/external-programs.md``). External programs run only on real paths.

===============  ==============================================================================
``declaration``  sender and receiver as YAML; declarations included in ccgym: ``schemes/programs/``
``wrapper``      Pantheon's wrapper scripts, unchanged
===============  ==============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ccgym.emulation.doctor import Finding
from ccgym.emulation.programs import ProgramWords
from ccgym.errors import SchemeNotFoundError, did_you_mean, shown
from ccgym.schemes.programs import declaration
from ccgym.schemes.programs.declaration import DeclaredProgram
from ccgym.schemes.programs.wrapper import Wrapper
from ccgym.schemes.scheme import ExternalScheme
from ccgym.schemes.style import Described


class Program(Described, Protocol):
    """An external sender and receiver."""

    @property
    def name(self) -> str:
        """Text after the prefix in a checked scheme: a name or an absolute path."""

    def check(self, params: Mapping[str, Any], where: str) -> None:
        """Raise :class:`~ccgym.errors.ConfigError` if the program does not accept these parameters."""

    def why_unavailable(self) -> str | None:
        """Return what is missing on this machine; ``None`` if nothing is missing."""

    def words(self, params: Mapping[str, Any]) -> ProgramWords:
        """Prepare the program and return the commands to start.

        Raises:
            RealPathError: The preparation failed.
        """


def find(name: str, where: str = "") -> Program:
    """Find the program of a name or a path.

    Raises:
        SchemeNotFoundError: The program does not exist.
        ConfigError: The file of the program cannot be used.
    """
    if "/" not in name and not name.endswith((".yaml", ".py")):
        file = declaration.packaged().get(name)
        if file is not None:
            return declaration.load(file, name)
    else:
        path = Path(name).expanduser()
        if path.suffix == ".yaml":
            return declaration.load(path, str(path.absolute()))
        if path.is_file():
            return Wrapper.load(path.absolute(), where)
    known = [ExternalProgram.PREFIX + one for one in declaration.packaged()]
    raise SchemeNotFoundError(
        "unknown-scheme",
        f"there is no program {shown(name)}",
        where=where,
        expected=f"{', '.join(known)}, or the path (with a slash) of a YAML file or of a Pantheon wrapper",
        hint=did_you_mean(ExternalProgram.PREFIX + name, known, "see docs/guides/external-programs.md"),
    )


class ExternalProgram(ExternalScheme):
    """An external program as a scheme."""

    PREFIX = "program:"
    TYPED = "program:NAME"
    MEANING = "an external program, on real backends; also FILE.yaml, wrapper.py (docs/guides/external-programs.md)"
    WHAT = "an external program"
    WINDOW_KNOWN = False

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        # A path can contain a colon.
        if not cls.claims(text):
            return None
        name, *settings = re.split(r":(?=[^:=/]+=)", text)
        return [name, *settings]

    def _check(self, where: str) -> ExternalProgram:
        program = find(self.name.removeprefix(self.PREFIX), where)
        program.check(self.params, where)
        return replace(self, name=self.PREFIX + program.name)

    @property
    def program(self) -> Program:
        """Sender and receiver of the program."""
        return find(self.name.removeprefix(self.PREFIX))

    def why_unavailable(self) -> str | None:
        return self.program.why_unavailable()

    def program_words(self) -> ProgramWords:
        return self.program.words(self.params)

    @property
    def algorithm(self) -> str:
        return self.program.title

    @property
    def title(self) -> str:
        return self.PREFIX + self.program.title

    @property
    def drawn(self) -> tuple[str, str, str]:
        program = self.program
        return program.label, program.color, program.marker

    @property
    def identity(self) -> dict[str, Any]:
        return {"scheme": self.title, "program": self.version}

    @property
    def version(self) -> str | None:
        return self.program.digest

    @property
    def provenance(self) -> Mapping[str, Any] | None:
        return self.program.provenance()


def packaged() -> list[DeclaredProgram]:
    """Return the programs that are declared in ccgym."""
    return [declaration.load(file, name) for name, file in declaration.packaged().items()]


def descriptions() -> list[dict[str, Any]]:
    """Describe the programs that are declared in ccgym as in :func:`ccgym.schemes.groups.descriptions`."""
    rows = []
    for program in packaged():
        scheme, declared = ExternalProgram(ExternalProgram.PREFIX + program.name), program.declared
        parameters = [{"name": name, "unit": "", **one.model_dump()} for name, one in declared.parameters.items()]
        described = scheme.described("program", program.why_unavailable(), declared.reference, declared.summary)
        rows.append({**described, "parameters": parameters})
    return rows


def findings() -> list[Finding]:
    """Check which of the programs declared in ccgym are available on this machine."""
    found = []
    for program in packaged():
        version, name = program.version(), ExternalProgram.PREFIX + program.name
        if version is None:
            found.append(Finding(name, "warn", f"not available: {program.declared.summary}", program.declared.install))
        else:
            found.append(Finding(name, "ok", version))
    return found
