"""Options that several commands have, and what they name."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Options
from ccgym.cli.common import error_console, say
from ccgym.errors import ConfigError, located, shown
from ccgym.units import parse_positive_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.cluster import Cluster
    from ccgym.schemes.policies import LearnedPolicy

UNNAMED: Final = "mahimahi path"
"""Name of a path that is given as a command line of mahimahi and that the catalog does not have."""


def seconds(text: str) -> float:
    """Reads a length of time, in seconds."""
    return parse_positive_time(text) / 1e9


AS_JSON: Final = {"--json": "as JSON"}
CONFIG: Final = "a YAML file, or the name of one in ./configs, or of one that comes with ccgym: aurora, indigo …"
DEVICE: Final = {"--device NAME = auto": "auto, cpu, cuda, cuda:1 …"}
FIGURE: Final = {"-o, --out FIGURE required": "a .png, .svg or .pdf file"}
JOBS: Final = {"--jobs N in 1..1024": "runs at a time (default: as many as processors)"}
NO_FIGURES: Final = {"--no-figures": "no figures and no report, only numbers"}
POLICY: Final = {"POLICY": "a pretrained policy, a run directory, or a .onnx file"}
QUICK: Final = {"--quick": "a smoke run: one repetition, fewer conditions"}
REPEAT_LIMITED: Final = {
    "--repeat-limited N in 0..1000 = 0": "with real packets: run again, up to N times, what was emulator-limited: "
    "the machine could not hold "
    "the schedule; earlier runs, too (default: 0, such runs are marked)"
}
RUNTIME: Final = {"--runtime LENGTH = 30 as runtime_ns": "length of a run: seconds, or with a unit"}
SEED: Final = {"--seed N = 1": "root of every random stream"}
SET: Final = {
    "--set KEY=VALUE... as overrides": "any setting of the configuration, such as algorithm.gamma=0.95; may be repeated"
}
PATH: Final = {
    "--trace NAME|FILE": "a named path, such as 77.72mbps, with all that belongs to it; a YAML file that describes a "
    "path; or a delivery trace, played in both directions without delay",
    '--mahimahi "COMMAND LINE"': "a chain of mahimahi shells, the outermost first",
}
"""Both name a path; :func:`chosen_path` reads them."""


def cluster(what: str) -> Options:
    """The option ``--cluster``; ``what`` runs there."""
    return {
        "--cluster auto|ADDRESS": f"{what} on a Ray cluster: the one at this address, or auto, the one that runs on "
        "this machine or else one that is started for this command (docs/guides/cluster.md; needs the extra `ray`)"
    }


def output(what: str, out: str) -> Options:
    """The options of all commands that write results into a directory.

    Args:
        what: What ``--json`` prints.
        out: The default of ``--out``, in words.
    """
    return {
        "-o, --out DIRECTORY": f"results directory (default: {out})",
        **NO_FIGURES,
        "--json": f"print {what} as JSON on standard output, all else on standard error",
    }


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
    with located("--trace" if arguments.trace is not None else "--mahimahi"):
        if arguments.trace is not None:
            return NetworkPath.from_any(arguments.trace)
        return NetworkPath.from_mahimahi(arguments.mahimahi, name=UNNAMED).known()
    raise AssertionError


def chosen_policy(text: str) -> LearnedPolicy:
    """The policy that the argument POLICY names.

    Raises:
        ConfigError: There is none.
    """
    from ccgym.schemes import policies

    found = policies.find(text, "POLICY")
    if found is None:
        raise ConfigError(
            "unknown-policy",
            shown(text),
            where="POLICY",
            expected=f"{', '.join(policies.pretrained())}, a run directory or a .onnx file",
        )
    return found


def connected(arguments: argparse.Namespace) -> AbstractContextManager[Cluster | None]:
    """The cluster that ``--cluster`` names, to be entered; nothing without the option, which not every command has."""
    if (chosen := getattr(arguments, "cluster", None)) is None:
        return nullcontext()
    from ccgym.evaluation.cluster import Cluster

    return Cluster(chosen, getattr(arguments, "jobs", None), error_console().print)


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The options of these names that were given."""
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def directory_name(path: str | None) -> str:
    """The name of a path as that of a directory."""
    return re.sub(r"[^\w.+-]+", "-", path or "unnamed path").strip("-.") or "path"


def draw(figure: Callable[[], Figure], arguments: argparse.Namespace) -> None:
    """Draw a figure into the file of ``--out``, in folders that are made, and say so."""
    from ccgym.report.style import house_style, save

    with house_style():
        save(figure(), arguments.out, parents=True)
    say(f"figure    {arguments.out}")
