"""The program ``ccgym``: find the command, read its options, run it."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Final, NoReturn

from ccgym.cli.command import Command, HelpFormatter, Parser
from ccgym.cli.common import run, set_up_logging
from ccgym.errors import CcgymError, ConfigError
from ccgym.invocation import COMMANDS, command, program

_INTERNAL: Final = {"tunnel-end": "ccgym.cli.tunnel_end:main"}
"""Commands that ccgym starts on other machines: not listed in help, and called without arguments."""

FORMER: Final = {
    "analyze": "report analyze",
    "certificate": "schemes certificate",
    "compare RUN": "compare trainings RUN",
    "convert": "report convert",
    "evaluate --suite": "evaluate --experiment",
    "export": "train export",
    "gap": "compare backends",
    "path": "paths",
    "portrait": "plot portrait",
    "record --figure": "plot curves POLICY -o FILE",
    "record --search-figure": "plot searches RUN… -o FILE",
    "record": "train seeds",
    "schema": "describe --schema",
    "schemes NAME": "schemes show NAME",
    "site": "report site",
    "trace list": "paths --traces",
    "trace": "paths",
    "tree": "plot tree",
    "version": "--version",
    "watch": "report watch",
    "windows": "paths best-cwnd",
}
"""Commands of the last release and their new names. An option or argument is included if only this form has
changed."""

_EXAMPLES: Final = """\
examples:
  ccgym paths                                  the named paths
  ccgym paths show 77.72mbps                   one of them in detail
  ccgym schemes                                the congestion-control schemes
  ccgym evaluate --trace 77.72mbps             Pantheon's table, plots and report
  ccgym shell --path 77.72mbps                 your shell inside that path, with real packets
  ccgym compare backends --trace 77.72mbps     the simulator against real packets
  ccgym rfc9743 cubic --quick                  a scheme tested by RFC 9743, with a report
  ccgym adversary cubic                        paths on which a scheme is far from the oracle
  ccgym describe configs/aurora.yaml           observation, action and reward of an agent
  ccgym train --config aurora.yaml             train a policy
  ccgym paths make constant --rate 50mbps -o 50mbps.trace
  eval "$(ccgym --completion bash)"            completion in this shell
"""


def load(name: str) -> Command:
    """Return a command by its name."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found: Command = getattr(import_module(module), attribute)
    return found


def build_parser(*, whole: bool = False) -> Parser:
    """Return the parser of ``ccgym`` itself.

    Args:
        whole: Whether to include the options of all commands, for completion.
    """
    import platform

    import shtab

    import ccgym

    made = Parser(
        prog=program(),
        description="Congestion-control simulator, environments and evaluation.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("-v", "--verbose", action="count", default=0, help="more messages; twice: all messages")
    versions = f"ccgym {ccgym.__version__} (Python {platform.python_version()}, {platform.platform()})"
    made.add_argument("--version", action="version", version=versions, help="print versions")
    shtab.add_argument_to(made, "--completion", help="print a script that completes commands, options and files")
    actions = made.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, (_, text) in COMMANDS.items():
        if whole:
            load(name).add_to(actions, made.prog, text)
        else:
            actions.add_parser(name, help=text)
    _complete_files(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    flags = list(takewhile(re.compile("-v+|--verbose").fullmatch, words))
    words = words[len(flags) :]
    if words and words[0] in _INTERNAL:
        module, _, function = _INTERNAL[words[0]].partition(":")
        return int(getattr(import_module(module), function)())
    verbose = sum(1 if flag == "--verbose" else len(flag) - 1 for flag in flags)
    return run(lambda: execute(words, verbose) if words and words[0] in COMMANDS else _program(words))


def execute(words: Sequence[str], verbose: int = 0) -> int | None:
    """Run a command of the table and return its exit status.

    Args:
        words: Name of the command and its arguments.
        verbose: Level of further messages.

    Raises:
        CcgymError: It is a former command, an option is wrong, or the command failed.
    """
    _refuse_former(words)
    found, name, left = load(words[0]).find(words[1:])
    arguments = found.parse(f"ccgym {name}", left)
    arguments.typed = (*command(words[0]).split(), *words[1:])
    if verbose + arguments.verbose:
        set_up_logging(verbose + arguments.verbose)
    assert found.run is not None, "a group needs one of its commands"
    try:
        return found.run(arguments)
    except CcgymError as error:
        error.where = arguments.places.get(error.where, error.where)
        raise


def _refuse_former(words: Sequence[str]) -> None:
    for former, now in FORMER.items():
        name, *more = former.split()
        if list(words[:1]) != [name]:
            continue
        rest, told = list(words[1:]), ""
        if not more or rest[: len(more)] == more:
            told = shlex.join([*now.split(), *rest[len(more) :]])
        elif more[0].startswith("--"):
            told = now if more[0] in (word.partition("=")[0] for word in rest) else ""
        elif more[0].isupper() and rest and not rest[0].startswith("-"):
            known = [one.name for one in load(name).commands]
            told = "" if rest[0] in known else shlex.join([*now.split()[:-1], *rest])
        if told:
            raise ConfigError("command-line", f"ccgym {shlex.join(words)}", hint=f"now: ccgym {told}")


def _program(words: Sequence[str]) -> NoReturn:
    """Handle ``ccgym`` without a command."""
    _refuse_former(words)
    made = build_parser(whole="--completion" in shlex.join(words))
    made.parse_args(words)
    made.error("no command")


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Enable completion of file names for values that are files."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _complete_files(below)
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]


if __name__ == "__main__":
    raise SystemExit(main())
