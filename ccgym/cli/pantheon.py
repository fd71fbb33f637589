"""``ccgym pantheon``: Pantheon's programs with their own names and options.

``test`` is converted to a command line of ``ccgym evaluate``, which is printed and run. ``plot``, ``report`` and
``analyze`` run ``ccgym report analyze`` in place on a directory. Options: StanfordSNR/pantheon @23e738c,
``src/experiments/arg_parser.py`` and ``src/analysis/arg_parser.py``.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ccgym.cli.command import Command, attributes
from ccgym.cli.common import console
from ccgym.cli.remote import NEXT_TO_REMOTE, OWN, PANTHEON
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.invocation import command

_EMULATED: Final = ("uplink_trace", "downlink_trace", "prepend_mm_cmds", "append_mm_cmds", "extra_mm_link_args")
_KEYS: Final = (
    "runtime", "interval", "run_times", "start_run_id", "random_order", "data_dir", "pkill_cleanup", *_EMULATED,
    *attributes(PANTHEON),
)  # fmt: skip
"""Options that can also be in a test's configuration file."""


def _test(arguments: argparse.Namespace) -> int | None:
    from ccgym.cli.main import execute

    line = evaluate_words(arguments)
    console().print(f"equivalent command: {command('evaluate')} {shlex.join(line)}\n", soft_wrap=True)
    return execute(["evaluate", *line])


def _analyze(arguments: argparse.Namespace) -> int:
    """Run ``ccgym report analyze`` in place."""
    from ccgym.cli.report import analyze

    plain = {"config": None, "json": False, "jobs": None, "no_figures": False, "out": arguments.directory}
    return analyze(argparse.Namespace(**{**plain, **vars(arguments)}))


def evaluate_words(arguments: argparse.Namespace) -> list[str]:
    """Return the command line of ``ccgym evaluate`` that is equivalent to a command line of ``test.py``.

    Raises:
        ConfigError: An option, or the configuration file, requires a feature that ccgym does not have.
    """
    configured, flows = ({}, []) if arguments.config_file is None else _configuration(arguments.config_file)
    typed = {key: getattr(arguments, key) for key in _KEYS}
    given = {key: configured.get(key) if value in (None, False) else value for key, value in typed.items()}
    if given["pkill_cleanup"]:
        raise ConfigError(
            "unsupported",
            "an option that kills programs by their names",
            where="--pkill-cleanup",
            expected="the command without this option",
            hint="leave it out: all processes and namespaces of a run end with the run",
        )
    schemes = _schemes(arguments, flows, given["interval"])
    first, times = int(given["start_run_id"] or 1), int(given["run_times"] or 1)
    words = [
        *_path(arguments, given),
        *("--schemes", schemes),
        *("--runs", str(first + times - 1)),
        *("--runtime", str(given["runtime"] or 30)),
        *("--logs", "all"),
    ]
    if not flows:
        words += ["--flows", str(arguments.flows or 1), "--interval", str(given["interval"] or 0)]
    if given["random_order"]:
        words += ["--random-order"]
    if given["data_dir"] is not None:
        words += ["--out", str(given["data_dir"]), "--grow"]
    if arguments.seed is not None:
        words += ["--seed", str(arguments.seed)]
    return words


def _path(arguments: argparse.Namespace, given: Mapping[str, Any]) -> list[str]:
    """Return the options for the path."""
    local = arguments.mode == "local"
    if local != (arguments.remote is None):
        found = f"local with {arguments.remote}" if local else "remote without HOST:DIR"
        raise ConfigError("command-line", found, expected="test local, or test remote HOST:DIR")
    for name in NEXT_TO_REMOTE if local else (*_EMULATED, "backend"):
        if getattr(arguments, name) is not None:
            raise ConfigError(
                "options-conflict",
                f"{arguments.places[name]} with test {arguments.mode}",
                expected=f"this option with test {'remote' if local else 'local'}",
            )
    if local:
        return ["--mahimahi", _chain(given), "--backend", arguments.backend or "emulated"]
    words = ["--remote", arguments.remote]
    for name in NEXT_TO_REMOTE:
        value = given[name] if name in given else getattr(arguments, name)
        words += [] if value is None else [arguments.places[name], str(value)]
    return words


def _chain(given: Mapping[str, Any]) -> str:
    traces = [str(given[name] or "12mbps.trace") for name in ("uplink_trace", "downlink_trace")]
    parts = [
        given["prepend_mm_cmds"],
        f"mm-link {shlex.join(traces)}",
        given["extra_mm_link_args"],
        given["append_mm_cmds"],
    ]
    return " ".join(str(part) for part in parts if part)


def _schemes(arguments: argparse.Namespace, flows: Sequence[str], interval: Any) -> str:
    """Return the schemes in the form of ``ccgym evaluate --schemes``."""
    if arguments.flows == 0:
        raise ConfigError(
            "out-of-range",
            "0",
            where="--flows",
            expected="at least 1 flow",
            hint="leave it out: Pantheon's 0 leaves out its tunnel, and ccgym has no tunnel that adds bytes to packets",
        )
    if flows:
        if arguments.flows is not None or arguments.all or arguments.schemes is not None:
            raise ConfigError(
                "options-conflict",
                "--flows, --all or --schemes with a configuration file",
                where=str(arguments.config_file),
                expected="only the flows of the file",
            )
        step = float(interval or 0)
        return "+".join(f"{flow}@{place * step:g}s" if place * step else flow for place, flow in enumerate(flows))
    if arguments.all:
        return "pantheon"
    if not (arguments.schemes or "").split():
        raise ConfigError(
            "argument-missing",
            "no scheme",
            where=f"test {arguments.mode}",
            expected='--all, --schemes "A B C" or -c FILE',
        )
    return ",".join(arguments.schemes.split())


def _configuration(file: Path) -> tuple[Mapping[str, Any], list[str]]:
    """Return options and flows of a test's configuration file."""
    import yaml

    expected = "'flows:' as a list of '- scheme: NAME', and options of test.py such as 'runtime: 30'"
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
        flows = [str(flow["scheme"]) for flow in found["flows"]]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            "file-malformed", f"{type(error).__name__}: {reason}", where=str(file), expected=expected
        ) from None
    options = {str(key).replace("-", "_"): value for key, value in found.items() if key not in ("flows", "test-name")}
    for key in options:
        if key not in _KEYS:
            raise ConfigError(
                "unknown-key", shown(key), where=str(file), expected=expected, hint=did_you_mean(key, _KEYS)
            )
    if not flows:
        raise ConfigError("argument-missing", "no flow", where=str(file), expected=expected)
    return options, flows


_READ: Final = {
    "--data-dir DIR as directory required": "a directory of test",
    '--schemes "A B C"': "the schemes to read (default: all)",
    "--include-acklink": "also draw figures of the ACKs",
}

COMMAND: Final = Command(
    "pantheon",
    description="""\
Pantheon's programs under their names: test.py, plot.py, report.py and analyze.py, with their
options. docs/guides/from-pantheon.md lists what differs.
""",
    examples="""\
  ccgym pantheon test local --schemes "cubic bbr" --run-times 3 -t 30 --data-dir data \\
      --uplink-trace 77.72mbps.trace --downlink-trace 77.72mbps.trace \\
      --prepend-mm-cmds "mm-delay 51 mm-loss uplink 0.0006" \\
      --extra-mm-link-args "--uplink-queue=droptail --uplink-queue-args=packets=94"
  ccgym pantheon test -c mixed.yml local --backend sim
      flows of several schemes in one run, simulated
  ccgym pantheon test remote me@far.example.org:ccgym --schemes "cubic bbr" --ntp-addr pool.ntp.org \\
      --local-desc "AWS California 1" --remote-desc "Stanford cellular" --remote-if ppp0
  ccgym pantheon analyze --data-dir data
""",
    commands=(
        Command(
            "test",
            "run schemes over a path",
            _test,
            options={
                "local|remote as mode": "local, over a path of mahimahi's shells, or remote, to another machine",
                "[HOST:DIR] as remote": "for remote: the other machine, and the checkout of ccgym there",
                "-c, --config-file, --config_file FILE": "flows of several schemes in one run, and options, as YAML",
                "-f, --flows N": "flows of each scheme (default: 1)",
                "-t, --runtime SECONDS": "length of a run (default: 30)",
                "--interval SECONDS": "time between the starts of flows (default: 0)",
                "| --all": "all schemes of Pantheon's report that ccgym has",
                '| --schemes "A B C"': "schemes, separated by spaces",
                "--run-times N": "runs of each scheme (default: 1)",
                "--start-run-id N": "number of the first run (default: 1); earlier numbers are run, too, unless the "
                "directory contains them",
                "--random-order": "run the schemes in random order",
                "--data-dir DIR": "results directory (default: as for ccgym evaluate)",
                "--pkill-cleanup": "refused",
                "# local": "",
                "--uplink-trace TRACE": "trace of the data direction (default: 12mbps.trace)",
                "--downlink-trace TRACE": "trace of the reverse direction (default: 12mbps.trace)",
                '--prepend-mm-cmds "COMMANDS"': "shells outside mm-link",
                '--append-mm-cmds "COMMANDS"': "shells inside mm-link",
                '--extra-mm-link-args "OPTIONS"': "further options of mm-link",
                "# remote": "",
                **PANTHEON,
                "# ccgym's own": "",
                "--backend sim|emulated|mahimahi": "for local: where packets travel (default: emulated, real packets "
                "over the emulated path; sim takes a second per run)",
                **OWN,
                "--seed N": "root of every random stream",
            },
            reads={"data_dir": str, "backend": str},
        ),
        Command(
            "plot",
            "draw figures and write statistics of a directory, in place",
            _analyze,
            {**_READ, "--no-graphs as no_figures": "numbers only"},
            {"schemes": str.split},
        ),
        Command("report", "write the report of a directory, in place", _analyze, _READ, {"schemes": str.split}),
        Command("analyze", "both", _analyze, _READ, {"schemes": str.split}),
    ),
)
