"""How the user called ccgym, so that help, hints and records name a command that works when it is typed again.

Texts are written with the installed program, ``ccgym evaluate``. Started as ``python -m ccgym``, or by the scripts of a
checkout, :func:`as_typed` says the same in those words. Reports that are written through the Python API name
``ccgym evaluate``.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import Final, Literal

COMMANDS: Final = (
    "adversary", "analyze", "benchmark", "certificate", "compare", "convert", "describe", "doctor", "evaluate",
    "export", "gap", "pantheon", "path", "paths", "portrait", "receiver", "record", "rfc9743", "schema", "schemes",
    "sender", "shell", "site", "trace", "train", "tree", "version", "watch", "windows",
)  # fmt: skip
"""Of the program ``ccgym``."""

_SCRIPTS: Final = {"evaluate": "python evaluate.py", "train": "python train.py"}
_COMMAND: Final = re.compile(rf"(?<![\w./-])(?<!-m )ccgym ({'|'.join(COMMANDS)})\b(?!-)")

_way: Literal["program", "module", "script"] = "program"


def called_as(way: Literal["program", "module", "script"]) -> None:
    """Note how this process was started: ``ccgym``, ``python -m ccgym``, or ``python evaluate.py`` and the like."""
    global _way
    _way = way


def start(place: str, way: Literal["program", "module", "script"]) -> int:
    """Import the command ``module:function``, run it, and return its exit status; Ctrl-C during imports is a line."""
    called_as(way)
    module, _, function = place.partition(":")
    try:
        return int(getattr(importlib.import_module(module), function)())
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def main() -> int:
    """The program ``ccgym``."""
    return start("ccgym.cli.main:main", "program")


def program() -> str:
    """What the user types before the name of a command: ``ccgym`` or ``python -m ccgym``."""
    return "python -m ccgym" if _way == "module" else "ccgym"


def command(name: str) -> str:
    """What the user types for a command: ``ccgym evaluate``, ``python -m ccgym evaluate`` or ``python evaluate.py``."""
    if _way == "script" and name in _SCRIPTS:
        return _SCRIPTS[name]
    return f"{program()} {name}"


def as_typed(text: str) -> str:
    """A text with the commands in it as the user types them."""
    return text if _way == "program" else _COMMAND.sub(lambda match: command(match[1]), text)
