"""Programs of others as schemes: ``program:NAME``, ``program:FILE.yaml``, ``program:PATH/TO/wrapper.py``
(``docs/programs.md``). They run on real paths only.

===============  ==============================================================================
``declaration``  sender and receiver as YAML; those that come with ccgym: ``schemes/programs/``
``wrapper``      Pantheon's wrapper scripts, unchanged
===============  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from ccgym.emulation.doctor import Finding
from ccgym.emulation.programs import ProgramWords
from ccgym.errors import SchemeNotFoundError, did_you_mean, shown
from ccgym.schemes.programs import declaration
from ccgym.schemes.programs.declaration import DeclaredProgram
from ccgym.schemes.programs.wrapper import Wrapper
from ccgym.schemes.style import Described

PREFIX: Final = "program:"
"""Beginning of their names."""


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
    known = [PREFIX + one for one in declaration.packaged()]
    raise SchemeNotFoundError(
        "unknown-scheme",
        f"there is no program {shown(name)}",
        where=where,
        expected=f"{', '.join(known)}, or the path of a YAML file or of one of Pantheon's wrappers, with a slash",
        hint=did_you_mean(PREFIX + name, known, "docs/programs.md says how to declare one"),
    )


def algorithm_of(text: str) -> str | None:
    """The title of the program that a text asks for; None if it asks for something else."""
    if not text.startswith(PREFIX):
        return None
    name = text.removeprefix(PREFIX).partition("=")[0]
    name = name.rpartition(":")[0] if "=" in text else name
    return Path(name).stem


def packaged() -> list[DeclaredProgram]:
    """Those that come with ccgym."""
    return [declaration.load(file, name) for name, file in declaration.packaged().items()]


def descriptions() -> list[dict[str, Any]]:
    """Those that come with ccgym, as :func:`ccgym.schemes.groups.descriptions` has ours."""
    rows = []
    for program in packaged():
        reason = program.why_unavailable()
        rows.append(
            {
                "name": PREFIX + program.name,
                "label": program.label,
                "reference": program.declared.reference,
                "summary": program.declared.summary if reason is None else f"unavailable: {reason}",
                "color": program.color,
                "marker": program.marker,
                "parameters": [
                    {"name": name, "unit": "", **one.model_dump()} for name, one in program.declared.parameters.items()
                ],
                "program": True,
                "available": reason is None,
            }
        )
    return rows


def findings() -> list[Finding]:
    """Which of those that come with ccgym work here."""
    found = []
    for program in packaged():
        version, name = program.version(), PREFIX + program.name
        if version is None:
            found.append(Finding(name, "warn", f"not here: {program.declared.summary}", program.declared.install))
        else:
            found.append(Finding(name, "ok", version))
    return found
