"""What every command shares: consoles, logging, and how errors leave the program.

========  ==============================================================
status    meaning
========  ==============================================================
0         done
1         done, and the answer is no (a check that found errors)
2         a mistake of the caller or the machine, explained on stderr
3         time was up: runs are left, and the same command goes on
130       interrupted from the keyboard
141       the reader of the output went away
========  ==============================================================
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from ccgym.errors import CcgymError, ConfigError, PlatformError, did_you_mean, located
from ccgym.files import DISK_ERRORS, disk_error
from ccgym.invocation import as_typed

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.cluster import Cluster

_T = TypeVar("_T")

STATUS_FAILED_RUN: Final = 1
"""Exit status when a run failed."""
STATUS_ERROR: Final = 2
"""Exit status of an explained mistake."""
STATUS_LEFT: Final = 3
"""Exit status where ``--budget`` left runs."""
STATUS_INTERRUPTED: Final = 130
"""Exit status after control-C."""
STATUS_BROKEN_PIPE: Final = 141
"""Exit status when the output was closed."""

UNNAMED: Final = "mahimahi path"
"""Name of a path that is given as a command line of mahimahi and that the catalog does not have."""

PIPE_WIDTH: Final = 160
"""Columns of tables when the output is not a terminal."""


@lru_cache(maxsize=1)
def console() -> Console:
    """The console for results, on standard output."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to :func:`run`: rich would end the program with status 1."""
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, markup=False, emoji=False)


@lru_cache(maxsize=1)
def error_console() -> Console:
    """The console for errors, warnings and progress, on standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str = "") -> None:
    """Write a line of results, unwrapped."""
    console().print(text, soft_wrap=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str] | None], right: Collection[str] = ()) -> None:
    """Print a table of texts.

    Args:
        headings: Names of the columns.
        rows: Texts in that order; None draws a rule above the next row.
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
    """Run a command and turn what goes wrong into an exit status and a message.

    Args:
        body: The command; it returns its status, ``None`` being 0.

    Returns:
        The exit status; see the table above. What is neither a :class:`CcgymError`, nor a refusal of the disk, nor a
        package that is not installed, is a bug and keeps its traceback.
    """
    _mend_streams()
    try:
        status = body()
        sys.stdout.flush()
    except CcgymError as error:
        return _explain(error)
    except BrokenPipeError:
        # The reader went away: keep the interpreter from complaining when it flushes at exit.
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
                "this process may have no more memory",
                expected="more free memory, or a higher limit (ulimit -v)",
            )
        )
    except ImportError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        return _explain(missing)
    except UnicodeEncodeError as error:
        # Names of files may hold any bytes; ours, and what stands in files, are UTF-8.
        return _explain(ConfigError("not-utf8", f"{error.object[error.start : error.end]!a}", expected="text in UTF-8"))
    except KeyboardInterrupt:
        error_console().print("interrupted")
        return STATUS_INTERRUPTED
    return status or 0


def _mend_streams() -> None:
    """Have output that can be written to: it may be closed, or of an encoding without our characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.encoding.replace("-", "").lower() != "utf8":
            stream.reconfigure(errors="replace")


def option(name: str, parse: Callable[[str], _T], text: str) -> _T:
    """Parse the value of an option so that an error names the option.

    Raises:
        ConfigError: What ``parse`` raised, with ``name`` in front.
    """
    with located(name):
        value = parse(text)
    return value


def set_up_logging(verbose: int) -> None:
    """Send the log to standard error through rich: warnings, with -v information, with -vv everything."""
    from rich.logging import RichHandler

    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = RichHandler(console=error_console(), show_path=verbose > 1, show_time=False)
    logging.basicConfig(level=level, format="%(message)s", handlers=[handler], force=True)


def _explain(error: CcgymError) -> int:
    """Show an error and return its status. Where rich is what is missing, plain text does."""
    text = as_typed(f"error[{error.code}]: {error}")
    try:
        error_console().print(text, style="red" if error_console().is_terminal else None)
    except ImportError:
        sys.stderr.write(f"{text}\n")
    return STATUS_ERROR


_EXTRAS: Final = {
    "arrow": ("pyarrow",),
    "pandas": ("pandas",),
    "ray": ("cloudpickle", "ray"),
    "report": ("jinja2", "matplotlib"),
    "train": ("onnx", "pettingzoo", "sb3_contrib", "sklearn", "stable_baselines3", "tensorboard", "torch"),
}
"""Packages that only some commands need, by the extra that brings them."""


def missing_package(error: ImportError) -> PlatformError | None:
    """The error that says what to install; None where an import failed for another reason.

    Args:
        error: What the import system said.
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
        expected=f"the packages of the extra `{extra}`" if extra else "what ccgym depends on",
        hint=install if extra == "ray" else enter or install,
    )


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with descriptions and examples as they are written, and with the commands as the user types them."""

    def __init__(self, prog: str) -> None:
        super().__init__(as_typed(prog), max_help_position=30)

    def format_help(self) -> str:
        """The whole text."""
        return as_typed(super().format_help())


class Parser(argparse.ArgumentParser):
    """Raises our own errors, with a suggestion for mistyped options. To be used within :func:`run`."""

    def error(self, message: str) -> NoReturn:
        """Raise :class:`ConfigError` instead of ending the program."""
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        options = [option for action in self._actions for option in action.option_strings]
        hint = did_you_mean(unknown[1], options) if unknown else ""
        if choice := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            hint = did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        raise ConfigError("command-line", message, hint=hint or f"{self.prog} --help explains the options")


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
        raise ConfigError(
            "out-of-range", str(times), where="--repeat-limited", expected="a whole number from 0 to 1000"
        )


def add_overrides(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """The option ``--set`` of all commands that read a configuration; its values are ``overrides``."""
    group.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY=VALUE",
        help="any setting of the configuration, such as algorithm.gamma=0.95; may be repeated",
    )


def add_device(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """The option ``--device`` of all commands that train."""
    group.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:1 … (default: auto)")


def add_path(group: argparse._ArgumentGroup) -> None:
    """The options that name a path; :func:`chosen_path` reads them."""
    group.add_argument(
        "--trace",
        metavar="NAME|FILE",
        help="a named path, such as 77.72mbps, with all that belongs to it; a YAML file that describes a path; or a "
        "delivery trace, played in both directions without delay",
    )
    group.add_argument("--mahimahi", metavar='"COMMAND LINE"', help="a chain of mahimahi shells, the outermost first")


def chosen_path(arguments: argparse.Namespace, others: str = "") -> NetworkPath:
    """The path that the options name.

    Args:
        arguments: The command line.
        others: Further options that could have been given instead, for the error.

    Raises:
        CcgymError: There is not exactly one, or it is wrong.
    """
    from ccgym.config.path import NetworkPath

    if (arguments.trace is None) == (arguments.mahimahi is None):
        choices = f'--trace NAME|FILE, --mahimahi "COMMAND LINE" or {others}'
        raise ConfigError(
            "exactly-one",
            "--trace and --mahimahi together" if arguments.trace is not None else "no path",
            expected=f"either {choices}" if others else 'either --trace NAME|FILE or --mahimahi "COMMAND LINE"',
            hint="for example --trace 77.72mbps",
        )
    if arguments.trace is not None:
        return option("--trace", NetworkPath.from_any, arguments.trace)
    return option("--mahimahi", lambda text: NetworkPath.from_mahimahi(text, name=UNNAMED).known(), arguments.mahimahi)


def has_errors(paths: Iterable[NetworkPath], shown_on: Console) -> bool:
    """Show what the detector finds about paths and their traces, each finding once; whether any of it forbids to run.

    Args:
        paths: What is to be run over.
        shown_on: Where people read warnings; errors go to standard error.
    """
    findings = {str(finding): finding for path in paths for finding in path.check()}
    errors = [finding for finding in findings.values() if finding.severity == "error"]
    for text, finding in findings.items():
        (error_console() if finding in errors else shown_on).print(
            text, style="red" if finding in errors else "yellow", soft_wrap=True
        )
    if errors:
        error_console().print("error: nothing was run: results on this path would mean nothing", style="bold red")
    return bool(errors)


def directory_name(path: NetworkPath) -> str:
    """The name of a path as that of a directory."""
    return re.sub(r"[^\w.+-]+", "-", path.name or "unnamed path").strip("-.") or "path"


def add_seed(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """The option of all commands that draw at random."""
    group.add_argument("--seed", type=int, default=1, metavar="N", help="root of every random stream (default: 1)")


def add_runtime(group: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """The option of all commands that make runs of one length."""
    group.add_argument(
        "--runtime", default="30", metavar="TIME", help="length of a run: seconds, or with a unit (default: 30)"
    )


def add_cluster(group: argparse._ArgumentGroup | argparse.ArgumentParser, what: str) -> None:
    """The option ``--cluster``; ``what`` runs there."""
    group.add_argument(
        "--cluster",
        metavar="auto|ADDRESS",
        help=f"{what} on a Ray cluster: the one at this address, or auto, the one that runs on this machine or else "
        "one that is started for this command (docs/cluster.md; needs the extra `ray`)",
    )


def connected(arguments: argparse.Namespace) -> AbstractContextManager[Cluster | None]:
    """The cluster that ``--cluster`` names, to be entered; nothing without the option, which not every command has."""
    if (chosen := getattr(arguments, "cluster", None)) is None:
        return nullcontext()
    from ccgym.evaluation.cluster import Cluster

    return Cluster(chosen, getattr(arguments, "jobs", None), error_console().print)


def add_output(group: argparse._ArgumentGroup | argparse.ArgumentParser, what: str, out: str) -> None:
    """The options of all commands that write results into a directory.

    Args:
        group: Where to add them.
        what: What ``--json`` prints.
        out: The default of ``--out``, in words.
    """
    group.add_argument("--out", metavar="DIRECTORY", help=f"results directory (default: {out})")
    group.add_argument("--no-figures", action="store_true", help="no figures and no report, only numbers")
    group.add_argument(
        "--json",
        action="store_true",
        help=f"print {what} as JSON on standard output, all else on standard error",
    )


def named_as_typed(error: ConfigError, **options: str) -> ConfigError:
    """The same error with the name of the option in place of that of the argument.

    Args:
        error: What a function of the package raised.
        options: Names of options that are not those of their arguments.
    """
    where = options.get(error.where, error.where).replace("_", "-")
    where = f"--{where}" if where and not where.startswith("-") else where
    return ConfigError(error.code, error.found, expected=error.expected, hint=error.hint, where=where)
