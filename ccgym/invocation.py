"""The way in which the user started ccgym. Help, hints and records show commands that the user can type again.

Texts in the code name the installed program, such as ``ccgym evaluate``. If ccgym was started as ``python -m ccgym`` or
by the scripts of a checkout, :func:`as_typed` replaces these names. Reports that are written through the Python API
name ``ccgym evaluate``.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Final, Literal, TypeAlias

COMMANDS: Final = {
    "evaluate": ("ccgym.cli.evaluate:COMMAND", "run schemes over a path, or an experiment, and report"),
    "train": ("ccgym.cli.train:COMMAND", "train a policy from a YAML file; train several seeds; export a policy"),
    "compare": ("ccgym.cli.compare:COMMAND", "compare trainings, or results of the simulator and of real packets"),
    "describe": ("ccgym.cli.describe:COMMAND", "show an agent's observation, action and reward; schemas of YAML files"),
    "plot": ("ccgym.cli.plot:COMMAND", "draw a scheme's behavior, a decision tree or learning curves"),
    "paths": ("ccgym.cli.paths:COMMAND", "list, show, make, check and convert paths and traces"),
    "schemes": ("ccgym.cli.schemes:COMMAND", "list the congestion-control schemes; show one; prove bounds of a policy"),
    "shell": ("ccgym.cli.shell:COMMAND", "run a command inside an emulated path"),
    "pantheon": ("ccgym.cli.pantheon:COMMAND", "Pantheon's test, plot, report and analyze, with their options"),
    "report": ("ccgym.cli.report:COMMAND", "write a static site, other formats or reports; show a run's progress"),
    "logs": ("ccgym.cli.logs:LOGS", "write the packet logs of an evaluation, from its seeds"),
    "clean": ("ccgym.cli.logs:CLEAN", "remove files of an evaluation that can be generated again"),
    "rfc9743": ("ccgym.cli.experiments:RFC9743", "evaluate a scheme by RFC 9743, and write the report"),
    "benchmark": ("ccgym.cli.benchmark:COMMAND", "run the catalogue of published experiments"),
    "adversary": ("ccgym.cli.experiments:ADVERSARY", "find paths on which a scheme is far from the oracle"),
    "doctor": ("ccgym.cli.doctor:COMMAND", "check what this machine supports for real packets"),
    "sender": ("ccgym.cli.endpoint:SENDER", "send a flow over UDP by any scheme or policy"),
    "receiver": ("ccgym.cli.endpoint:RECEIVER", "receive flows over UDP"),
}
"""Commands of the program ``ccgym``: the place of the declaration, and a short description."""

Way: TypeAlias = Literal["program", "module", "script"]

_SCRIPTS: Final = {"evaluate": "python evaluate.py", "train": "python train.py"}
_COMMAND: Final = re.compile(rf"(?<![\w./-])(?<!-m )ccgym ({'|'.join(COMMANDS)})\b(?!-)")

_way: Way = "program"


def called_as(way: Way) -> None:
    """Record how this process was started: ``ccgym``, ``python -m ccgym``, or as ``python evaluate.py`` or similar."""
    global _way
    _way = way


def start(way: Way, *before: str) -> int:
    """Run the command line, with ``before`` in front of the typed arguments, and return the exit status.

    Ctrl-C prints one line and no traceback, also during imports.
    """
    called_as(way)
    try:
        return int(import_module("ccgym.cli.main").main([*before, *sys.argv[1:]]))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def main() -> int:
    """Run the program ``ccgym``."""
    return start("program")


def program() -> str:
    """Return what the user types before the name of a command: ``ccgym`` or ``python -m ccgym``."""
    return "python -m ccgym" if _way == "module" else "ccgym"


def command(name: str) -> str:
    """Return a command as typed: ``ccgym evaluate``, ``python -m ccgym evaluate`` or ``python evaluate.py``."""
    if _way == "script" and name in _SCRIPTS:
        return _SCRIPTS[name]
    return f"{program()} {name}"


def as_typed(text: str) -> str:
    """Return a text in which all commands are written as the user types them."""
    return text if _way == "program" else _COMMAND.sub(lambda match: command(match[1]), text)
