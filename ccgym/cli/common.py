"""What every command shares: consoles, logging, and how errors leave the program.

========  ==============================================================
status    meaning
========  ==============================================================
0         done
1         done, and the answer is no (a check that found errors)
2         a mistake of the caller or the machine, explained on stderr
130       interrupted from the keyboard
141       the reader of the output went away
========  ==============================================================
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from ccgym.errors import CcgymError, ConfigError

if TYPE_CHECKING:
    from rich.console import Console

_T = TypeVar("_T")

STATUS_ERROR: Final = 2
"""Exit status of an explained mistake."""
STATUS_INTERRUPTED: Final = 130
"""Exit status after control-C."""
STATUS_BROKEN_PIPE: Final = 141
"""Exit status when the output was closed."""

PIPE_WIDTH: Final = 160
"""Columns of tables when the output is no terminal."""


@lru_cache(maxsize=1)
def console() -> Console:
    """The console for results, on standard output."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, markup=False, emoji=False)


@lru_cache(maxsize=1)
def error_console() -> Console:
    """The console for errors, warnings and progress, on standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str = "") -> None:
    """Write a line of results, unwrapped."""
    console().print(text, soft_wrap=True)


def run(body: Callable[[], int | None]) -> int:
    """Run a command and turn what goes wrong into an exit status and a message.

    Args:
        body: The command; it returns its status, ``None`` being 0.

    Returns:
        The exit status; see the table above. What is not a :class:`CcgymError` is a bug and keeps its traceback.
    """
    try:
        status = body()
        sys.stdout.flush()
    except CcgymError as error:
        error_console().print(f"error: {error}", style="red" if error_console().is_terminal else None)
        return STATUS_ERROR
    except KeyboardInterrupt:
        error_console().print("interrupted")
        return STATUS_INTERRUPTED
    except BrokenPipeError:
        # Nobody reads: keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STATUS_BROKEN_PIPE
    return status or 0


def option(name: str, parse: Callable[[str], _T], text: str) -> _T:
    """Parse the value of an option so that an error names the option.

    Raises:
        ConfigError: Whatever ``parse`` raised, with ``name`` in front.
    """
    try:
        return parse(text)
    except ConfigError as error:
        raise error.at(name) from None


def set_up_logging(verbose: int) -> None:
    """Send the log to standard error through rich: warnings, with -v information, with -vv everything."""
    from rich.logging import RichHandler

    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = RichHandler(console=error_console(), show_path=verbose > 1, show_time=False)
    logging.basicConfig(level=level, format="%(message)s", handlers=[handler], force=True)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with descriptions and examples as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def add_repeat_limited(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """The option of all commands that run real packets."""
    group.add_argument(
        "--repeat-limited",
        type=int,
        default=0,
        metavar="N",
        help="with real packets: run what the machine could not hold the schedule of (emulator-limited) again, up to N "
        "times, also runs that are there from before (default: 0, such runs are marked)",
    )


def check_repeat_limited(times: int) -> None:
    """Raise if a run cannot be repeated that often."""
    if not 0 <= times <= 1000:
        raise ConfigError(str(times), where="--repeat-limited", expected="a whole number from 0 to 1000")
