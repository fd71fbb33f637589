"""Options of several commands, and functions that read their values."""

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
"""Name of a path that is given as a mahimahi command line and is not in the catalog."""


def seconds(text: str) -> float:
    """Read a length of time and return seconds."""
    return parse_positive_time(text) / 1e9


AS_JSON: Final = {"--json": "as JSON"}
CONFIG: Final = "a YAML file, or the name of a file in ./configs, or of one that comes with ccgym: aurora, indigo …"
DEVICE: Final = {"--device NAME = auto": "auto, cpu, cuda, cuda:1 …"}
FIGURE: Final = {"-o, --out FIGURE required": "a .png, .svg or .pdf file"}
JOBS: Final = {"--jobs N in 1..1024": "runs at the same time (default: one per processor)"}
NO_FIGURES: Final = {"--no-figures": "write only numbers, no figures and no report"}
POLICY: Final = {"POLICY": "a pretrained policy, a run directory, or a .onnx file"}
QUICK: Final = {"--quick": "a quick check: one repetition, fewer conditions"}
REPEAT_LIMITED: Final = {
    "--repeat-limited N in 0..1000 = 0": "with real packets: repeat emulator-limited runs up to N times: "
    "the machine could not hold "
    "the schedule; also earlier runs (default: 0, such runs are marked)"
}
RUNTIME: Final = {"--runtime LENGTH = 30 as runtime_ns": "length of a run: seconds, or with a unit"}
SEED: Final = {"--seed N = 1": "root of every random stream"}
SET: Final = {
    "--set KEY=VALUE... as overrides": "any setting of the configuration, such as algorithm.gamma=0.95; may be repeated"
}
PATH: Final = {
    "--trace NAME|FILE": "a named path with all its elements, such as 77.72mbps; a YAML file that describes a "
    "path; or a delivery trace, played in both directions without delay",
    '--mahimahi "COMMAND LINE"': "a chain of mahimahi shells, the outermost first",
}
"""Options that name a path; :func:`chosen_path` reads them."""


def cluster(what: str) -> Options:
    """Return the option ``--cluster``; ``what`` describes its effect, as in "make the runs"."""
    return {
        "--cluster auto|ADDRESS": f"{what} on a Ray cluster: the cluster at this address; or auto, the cluster on "
        "this machine, or a new one for this command (docs/guides/cluster.md; needs the extra `ray`)"
    }


def output(what: str, out: str) -> Options:
    """Return the options of commands that write results to a directory.

    Args:
        what: Description of the output of ``--json``.
        out: Description of the default of ``--out``.
    """
    return {
        "-o, --out DIRECTORY": f"results directory (default: {out})",
        **NO_FIGURES,
        "--json": f"print {what} as JSON on standard output, and all other output on standard error",
    }


def chosen_path(arguments: argparse.Namespace, others: str = "") -> NetworkPath:
    """Return the path that the options name.

    Args:
        arguments: The command line.
        others: Alternative options, for the error.

    Raises:
        CcgymError: There is not exactly one path, or it is wrong.
    """
    from ccgym.config.path import NetworkPath

    if (arguments.trace is None) == (arguments.mahimahi is None):
        choices = f'--trace NAME|FILE, --mahimahi "COMMAND LINE" or {others}'
        raise ConfigError(
            "exactly-one",
            "--trace and --mahimahi together" if arguments.trace is not None else "no path",
            expected=f"either {choices}" if others else 'either --trace NAME|FILE or --mahimahi "COMMAND LINE"',
            hint="name one path, for example --trace 77.72mbps",
        )
    with located("--trace" if arguments.trace is not None else "--mahimahi"):
        if arguments.trace is not None:
            return NetworkPath.from_any(arguments.trace)
        return NetworkPath.from_mahimahi(arguments.mahimahi, name=UNNAMED).known()
    raise AssertionError


def chosen_policy(text: str) -> LearnedPolicy:
    """Return the policy that the argument POLICY names.

    Raises:
        ConfigError: There is no such policy.
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
    """Return the context manager of the cluster of ``--cluster``; without this option, one that gives None."""
    if (chosen := getattr(arguments, "cluster", None)) is None:
        return nullcontext()
    from ccgym.evaluation.cluster import Cluster

    return Cluster(chosen, getattr(arguments, "jobs", None), error_console().print)


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the given options among these names."""
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def directory_name(path: str | None) -> str:
    """Return a directory name for the name of a path."""
    return re.sub(r"[^\w.+-]+", "-", path or "unnamed path").strip("-.") or "path"


def draw(figure: Callable[[], Figure], arguments: argparse.Namespace) -> None:
    """Draw a figure to the file of ``--out``, create its folders, and print its name."""
    from ccgym.report.style import house_style, save

    with house_style():
        save(figure(), arguments.out, parents=True)
    say(f"figure    {arguments.out}")
