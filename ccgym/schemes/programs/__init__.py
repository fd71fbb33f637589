"""External programs as schemes: ``program:NAME``, ``program:FILE.yaml``, ``program:PATH/TO/wrapper.py``
(``docs/guides/external-programs.md``). They run on real paths only.

===============  ==============================================================================
``declaration``  sender and receiver as YAML; those that come with ccgym: ``schemes/programs/``
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
    """A sender and a receiver that did not come from ccgym."""

    @property
    def name(self) -> str:
        """What stands after the prefix once it was checked: its name, or an absolute path."""

    def check(self, params: Mapping[str, Any], where: str) -> None:
        """Raise :class:`~ccgym.errors.ConfigError` unless it takes these parameters."""

    def why_unavailable(self) -> str | None:
        """What this machine lacks; None if nothing."""

    def words(self, params: Mapping[str, Any]) -> ProgramWords:
        """What to start, after everything that has to be done before.

        Raises:
            RealPathError: That failed.
        """


def find(name: str, where: str = "") -> Program:
    """The program of a name or a path.

    Raises:
        SchemeNotFoundError: There is none.
        ConfigError: Its file cannot be used.
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
        expected=f"{', '.join(known)}, or the path of a YAML file or of one of Pantheon's wrappers, with a slash",
        hint=did_you_mean(ExternalProgram.PREFIX + name, known, "see docs/guides/external-programs.md"),
    )


class ExternalProgram(ExternalScheme):
    """A program that did not come from ccgym."""

    PREFIX = "program:"
    TYPED = "program:NAME"
    MEANING = "an external program, on real backends; also FILE.yaml, wrapper.py (docs/guides/external-programs.md)"
    WHAT = "an external program"
    WINDOW_KNOWN = False

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        # A path may hold a colon.
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
        """Its sender and receiver."""
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
    """Those that come with ccgym."""
    return [declaration.load(file, name) for name, file in declaration.packaged().items()]


def descriptions() -> list[dict[str, Any]]:
    """Those that come with ccgym, as :func:`ccgym.schemes.groups.descriptions` has ours."""
    rows = []
    for program in packaged():
        scheme, declared = ExternalProgram(ExternalProgram.PREFIX + program.name), program.declared
        parameters = [{"name": name, "unit": "", **one.model_dump()} for name, one in declared.parameters.items()]
        described = scheme.described("program", program.why_unavailable(), declared.reference, declared.summary)
        rows.append({**described, "parameters": parameters})
    return rows


def findings() -> list[Finding]:
    """Which of those that come with ccgym work here."""
    found = []
    for program in packaged():
        version, name = program.version(), ExternalProgram.PREFIX + program.name
        if version is None:
            found.append(Finding(name, "warn", f"not here: {program.declared.summary}", program.declared.install))
        else:
            found.append(Finding(name, "ok", version))
    return found
