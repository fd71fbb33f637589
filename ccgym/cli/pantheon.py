"""``ccgym pantheon``: Pantheon's programs by their own words.

``test`` becomes a command line of ``ccgym evaluate``, which is printed and run; ``plot``, ``report`` and
``analyze`` are ``ccgym analyze`` on a directory in place. Options: StanfordSNR/pantheon @23e738c,
``src/experiments/arg_parser.py`` and ``src/analysis/arg_parser.py``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ccgym.cli.common import HelpFormatter, Parser, console, run
from ccgym.cli.remote import OWN, PANTHEON, add_remote_options
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.invocation import command

DESCRIPTION: Final = """\
Pantheon's programs by their own words: test.py, plot.py, report.py and analyze.py, with their
options. docs/pantheon.md says what is different.
"""

EXAMPLES: Final = """\
examples:
  ccgym pantheon test local --schemes "cubic bbr" --run-times 3 -t 30 --data-dir data \\
      --uplink-trace 77.72mbps.trace --downlink-trace 77.72mbps.trace \\
      --prepend-mm-cmds "mm-delay 51 mm-loss uplink 0.0006" \\
      --extra-mm-link-args "--uplink-queue=droptail --uplink-queue-args=packets=94"
  ccgym pantheon test -c mixed.yml local --backend sim
      flows of several schemes in one run, simulated
  ccgym pantheon test remote me@far.example.org:ccgym --schemes "cubic bbr" --ntp-addr pool.ntp.org \\
      --local-desc "AWS California 1" --remote-desc "Stanford cellular" --remote-if ppp0
  ccgym pantheon analyze --data-dir data
"""

_EMULATED: Final = ("uplink_trace", "downlink_trace", "prepend_mm_cmds", "append_mm_cmds", "extra_mm_link_args")
_KEYS: Final = (
    "runtime", "interval", "run_times", "start_run_id", "random_order", "data_dir", "pkill_cleanup", *_EMULATED,
    *PANTHEON,
)  # fmt: skip
"""Options that a test's configuration file may give, too."""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym pantheon``."""
    made = Parser(
        prog="ccgym pantheon",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    programs = made.add_subparsers(title="programs", dest="program", metavar="PROGRAM", required=True)
    _add_test(programs)
    for name, text in (
        ("plot", "figures and statistics of a directory, in place"),
        ("report", "the report of a directory, in place"),
        ("analyze", "both"),
    ):
        one = programs.add_parser(name, help=text, formatter_class=HelpFormatter, allow_abbrev=False)
        one.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="what test wrote")
        one.add_argument("--schemes", metavar='"A B C"', help="the schemes to read (default: all)")
        one.add_argument("--include-acklink", action="store_true", help="figures of the acknowledgements, too")
        if name == "plot":
            one.add_argument("--no-graphs", action="store_true", help="numbers only")
    return made


def _add_test(programs: Any) -> None:
    test = programs.add_parser(
        "test", help="run schemes over a path", formatter_class=HelpFormatter, allow_abbrev=False
    )
    test.add_argument("-c", "--config_file", "--config-file", dest="config_file", type=Path, metavar="FILE",
                      help="flows of several schemes in one run, and options, as YAML")  # fmt: skip
    modes = test.add_subparsers(title="modes", dest="mode", metavar="MODE", required=True)
    local = modes.add_parser(
        "local", help="over a path of mahimahi's shells", formatter_class=HelpFormatter, allow_abbrev=False
    )
    remote = modes.add_parser(
        "remote", help="between this machine and another one", formatter_class=HelpFormatter, allow_abbrev=False
    )
    remote.add_argument("remote", metavar="HOST:DIR", help="the other machine, and the checkout of ccgym there")
    for mode in (local, remote):
        _add_flows(mode)
    local.add_argument("--uplink-trace", metavar="TRACE", help="trace of the data direction (default: 12mbps.trace)")
    local.add_argument("--downlink-trace", metavar="TRACE", help="trace of the way back (default: 12mbps.trace)")
    local.add_argument("--prepend-mm-cmds", metavar='"COMMANDS"', help="shells outside mm-link")
    local.add_argument("--append-mm-cmds", metavar='"COMMANDS"', help="shells inside mm-link")
    local.add_argument("--extra-mm-link-args", metavar='"OPTIONS"', help="further options of mm-link")
    add_remote_options(remote, PANTHEON)
    ours = local.add_argument_group("ccgym's own")
    ours.add_argument("--backend", default="emulated", metavar="sim|emulated|mahimahi",
                      help="where packets travel (default: emulated, real packets over the emulated path; sim takes a "
                      "second per run)")  # fmt: skip
    between = remote.add_argument_group("ccgym's own")
    add_remote_options(between, OWN)
    for group in (ours, between):
        group.add_argument("--seed", metavar="N", help="root of every random stream")


def _add_flows(mode: argparse.ArgumentParser) -> None:
    """The options of both modes."""
    mode.add_argument("-f", "--flows", type=int, metavar="N", help="flows of each scheme (default: 1)")
    mode.add_argument("-t", "--runtime", metavar="SECONDS", help="length of a run (default: 30)")
    mode.add_argument("--interval", metavar="SECONDS", help="time between the starts of flows (default: 0)")
    which = mode.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all schemes of Pantheon's report that ccgym has")
    which.add_argument("--schemes", metavar='"A B C"', help="schemes, separated by blanks")
    mode.add_argument("--run-times", type=int, metavar="N", help="runs of each scheme (default: 1)")
    mode.add_argument("--start-run-id", type=int, metavar="N", help="number of the first run (default: 1); those "
                      "before it are run, too, unless the directory has them")  # fmt: skip
    mode.add_argument("--random-order", action="store_true", default=None, help="run the schemes in random order")
    mode.add_argument("--data-dir", metavar="DIR", help="where to (default: as ccgym evaluate)")
    mode.add_argument("--pkill-cleanup", action="store_true", default=None, help="refused")


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym pantheon`` and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments: list[argparse.Namespace] = []

    def read() -> int:
        arguments.append(parser().parse_args(words))
        return _analyze(arguments[0], words) if arguments[0].program != "test" else 0

    status = run(read)
    if status or arguments[0].program != "test":
        return status
    line: list[str] = []

    def translate() -> int:
        line.extend(evaluate_words(arguments[0]))
        console().print(f"this is: {command('evaluate')} {shlex.join(line)}\n", soft_wrap=True, markup=False)
        return 0

    from ccgym.cli import evaluate

    return run(translate) or evaluate.main(line)


def _analyze(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    from ccgym.cli.analyze import analyzed, include_acklinks
    from ccgym.cli.evaluation_output import show_results, write_report

    directory: Path = arguments.data_dir
    schemes = None if arguments.schemes is None else arguments.schemes.split()
    line = shlex.join([*command("pantheon").split(), *words])
    results, out = analyzed(directory, directory, console(), schemes=schemes, command=line)
    if arguments.include_acklink:
        results = include_acklinks(results, directory, out, console())
    figures = not getattr(arguments, "no_graphs", False)
    write_report(results, out, console(), figures=figures)
    show_results(results, out, console(), figures=figures)
    return 0


def evaluate_words(arguments: argparse.Namespace) -> list[str]:
    """The command line of ``ccgym evaluate`` that means the same as one of ``test.py``.

    Raises:
        ConfigError: An option, or the configuration file, asks for what there is not.
    """
    configured, flows = ({}, []) if arguments.config_file is None else _configuration(arguments.config_file)
    typed = {key: getattr(arguments, key, None) for key in _KEYS}
    given = {key: configured.get(key) if value is None else value for key, value in typed.items()}
    if given["pkill_cleanup"]:
        raise ConfigError(
            "unsupported",
            "an option that kills programs by their names",
            where="--pkill-cleanup",
            expected="the command without it",
            hint="processes and namespaces of a run end with it, however it ends",
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
        words += ["--seed", arguments.seed]
    return words


def _path(arguments: argparse.Namespace, given: Mapping[str, Any]) -> list[str]:
    """Over what packets travel."""
    if arguments.mode == "local":
        return ["--mahimahi", _chain(given), "--backend", arguments.backend]
    chosen = {name: given[name] for name in PANTHEON} | {name: getattr(arguments, name) for name in OWN}
    words = ["--remote", arguments.remote]
    for name, value in chosen.items():
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
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
    """The schemes as ``--schemes`` of ``ccgym evaluate`` takes them."""
    if arguments.flows == 0:
        raise ConfigError(
            "out-of-range",
            "0",
            where="--flows",
            expected="1 flow or more",
            hint="Pantheon's 0 leaves out its tunnel; there is none here, and nothing is added to the packets",
        )
    if flows:
        if arguments.flows is not None or arguments.all or arguments.schemes is not None:
            raise ConfigError(
                "options-conflict",
                "--flows, --all or --schemes with a configuration file",
                where=str(arguments.config_file),
                expected="its flows alone",
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
    """Options and flows of a test's configuration file."""
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
