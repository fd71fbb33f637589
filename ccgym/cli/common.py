"""Common parts of all commands: consoles, logging, errors and exit status.

========  ==============================================================
status    meaning
========  ==============================================================
0         done
1         done, with a negative result (a check that found errors)
2         an error of the user or the machine, explained on stderr
3         time budget used up with runs left; the same command continues
130       interrupted from the keyboard
141       the reader of the output closed it
========  ==============================================================
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.errors import CcgymError, ConfigError, PlatformError
from ccgym.files import DISK_ERRORS, disk_error
from ccgym.invocation import as_typed

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.config.path import NetworkPath

STATUS_FAILED_RUN: Final = 1
"""Exit status when a run failed."""
STATUS_ERROR: Final = 2
"""Exit status after an explained error."""
STATUS_LEFT: Final = 3
"""Exit status if ``--budget`` left runs."""
STATUS_INTERRUPTED: Final = 130
"""Exit status after Ctrl-C."""
STATUS_BROKEN_PIPE: Final = 141
"""Exit status if the output was closed."""

PIPE_WIDTH: Final = 160
"""Width of tables in characters if the output is no terminal: 80 characters would cut digits."""


@lru_cache(maxsize=1)
def console() -> Console:
    """Return the console for results, on standard output."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            """Let :func:`run` handle it: rich would end the program with status 1."""
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, markup=False, emoji=False)


@lru_cache(maxsize=1)
def error_console() -> Console:
    """Return the console for errors, warnings and progress, on standard error."""
    from rich.console import Console

    width = None if sys.stderr.isatty() else PIPE_WIDTH
    return Console(stderr=True, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str = "") -> None:
    """Write a line of results, without line breaks."""
    console().print(text, soft_wrap=True)


def say_json(data: object, indent: int | None = 1) -> None:
    """Write results as JSON; without indentation, on one line, for programs."""
    json.dump(data, sys.stdout, indent=indent, ensure_ascii=False)
    sys.stdout.write("\n")


def console_for(arguments: argparse.Namespace) -> Console:
    """Return the console for the user; with --json, standard output contains only JSON."""
    return error_console() if arguments.json else console()


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str] | None], right: Collection[str] = ()) -> None:
    """Print a table of texts.

    Args:
        headings: Names of the columns.
        rows: Texts in the order of the columns; None draws a line above the next row.
        right: Columns that are aligned to the right.
    """
    from ccgym.report.table import Column, Row, Table

    columns = [
        Column(name, name, align="right" if name in right else "left", max_width=PIPE_WIDTH) for name in headings
    ]
    made, rule = [], False
    for row in rows:
        if row is not None:
            made.append(Row(dict(zip(headings, row, strict=True)), first=rule))
        rule = row is None
    console().print(Table(columns, made))


def run(body: Callable[[], int | None]) -> int:
    """Run a command, and convert errors into a message and an exit status.

    Args:
        body: The command; it returns its status, or ``None`` for 0.

    Returns:
        The exit status; see the table above. An error that is neither a :class:`CcgymError`, nor from the disk, nor a
        missing package, is a bug and keeps its traceback.
    """
    _mend_streams()
    try:
        status = body()
        sys.stdout.flush()
    except CcgymError as error:
        return _explain(error)
    except BrokenPipeError:
        # The reader has closed the output: prevent an error of the interpreter when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STATUS_BROKEN_PIPE
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        return _explain(disk_error(error, error.filename2 or error.filename or "a file"))
    except MemoryError:
        return _explain(
            PlatformError(
                "memory-exceeded",
                "this process cannot get more memory",
                expected="more free memory, or a higher limit (ulimit -v)",
            )
        )
    except ImportError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        return _explain(missing)
    except UnicodeEncodeError as error:
        # File names may contain any bytes; ccgym's file names and the content of files are UTF-8.
        return _explain(ConfigError("not-utf8", f"{error.object[error.start : error.end]!a}", expected="text in UTF-8"))
    except KeyboardInterrupt:
        error_console().print("interrupted")
        return STATUS_INTERRUPTED
    return status or 0


def _mend_streams() -> None:
    """Make standard output and error writable: they may be closed, or have an encoding without ccgym's characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.encoding.replace("-", "").lower() != "utf8":
            stream.reconfigure(errors="replace")


def set_up_logging(verbose: int) -> None:
    """Send the log to standard error through rich: warnings; with -v, information; with -vv, all messages."""
    from rich.logging import RichHandler

    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = RichHandler(console=error_console(), show_path=verbose > 1, show_time=False)
    logging.basicConfig(level=level, format="%(message)s", handlers=[handler], force=True)
    # Each font of a PDF writes a page of messages.
    logging.getLogger("fontTools").setLevel(logging.WARNING if verbose < 2 else level)


def _explain(error: CcgymError) -> int:
    """Show an error and return its status. If rich is missing, print plain text."""
    text = as_typed(f"error[{error.code}]: {error}")
    try:
        error_console().print(text, style="red" if error_console().is_terminal else None)
    except ImportError:
        sys.stderr.write(f"{text}\n")
    return STATUS_ERROR


_EXTRAS: Final = {
    "ray": ("cloudpickle", "ray"),
    "report": ("fpdf", "jinja2", "matplotlib", "pandas", "pyarrow"),
    "train": ("onnx", "pettingzoo", "sb3_contrib", "sklearn", "stable_baselines3", "tensorboard", "torch"),
}
"""Packages that only some commands need, by the extra that installs them."""


def missing_package(error: ImportError) -> PlatformError | None:
    """Return an error that names the package to install; None if an import failed for another reason.

    Args:
        error: The error of the import system.
    """
    name = (error.name or "").partition(".")[0]
    checkout = Path(__file__).resolve().parents[2]
    in_checkout = (checkout / "Makefile").is_file() and (checkout / "tools" / "setup.sh").is_file()
    enter = "run `make setup`, then `. .venv/ccgym.env`" if in_checkout else ""
    if name == "ccgym":
        if "_core" not in str(error):
            return None
        hint = enter or "install ccgym again"
        return PlatformError(
            "installation-broken", "the native module ccgym._core is missing", expected="a built ccgym", hint=hint
        )
    if not isinstance(error, ModuleNotFoundError):
        return None
    extra = next((extra for extra, packages in _EXTRAS.items() if name in packages), None)
    install = f"pip install 'ccgym[{extra}]'" if extra else "pip install ccgym"
    if extra == "train" and in_checkout:
        enter = "run `make train` once, or `make setup`; then `. .venv/ccgym.env`"
    return PlatformError(
        "package-missing",
        f"the package {name} is not installed for {sys.executable}",
        expected=f"the packages of the extra `{extra}`" if extra else "the dependencies of ccgym",
        hint=install if extra == "ray" else enter or install,
    )


def has_errors(paths: Iterable[NetworkPath], shown_on: Console) -> bool:
    """Show the problems that the detector finds in paths and their traces, each once. Return whether one is an error.

    Args:
        paths: The paths of the planned runs.
        shown_on: Console for warnings; errors are written to standard error.
    """
    findings = {str(finding): finding for path in paths for finding in path.check()}
    errors = [finding for finding in findings.values() if finding.severity == "error"]
    for text, finding in findings.items():
        (error_console() if finding in errors else shown_on).print(
            text, style="red" if finding in errors else "yellow", soft_wrap=True
        )
    if errors:
        error_console().print("error: nothing was run: results on this path would be meaningless", style="bold red")
    return bool(errors)
