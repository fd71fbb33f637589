"""The command ``ccgym``."""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

from ccgym.cli import (
    adversary,
    benchmark,
    best_cwnd,
    certificate,
    describe,
    doctor,
    gap,
    portrait,
    rfc9743,
    schema,
    trace,
    tree,
)
from ccgym.cli.common import HelpFormatter, Parser, print_table, run, say, set_up_logging
from ccgym.invocation import program

_DELEGATED: Final = {
    "analyze": ("ccgym.cli.analyze:main", "tables, figures and report of a directory of Pantheon's, or of ours"),
    "compare": ("ccgym.cli.compare:main", "compare trainings by the agent's reward on fresh draws"),
    "convert": ("ccgym.cli.convert:main", "results as Parquet, Arrow, pcap, qlog or flent's"),
    "evaluate": ("ccgym.cli.evaluate:main", "run schemes over a path and report as Pantheon does"),
    "export": ("ccgym.cli.export:main", "make a scheme of a training run's policy"),
    "pantheon": ("ccgym.cli.pantheon:main", "Pantheon's test, plot, report and analyze, with their options"),
    "receiver": ("ccgym.cli.endpoint:receiver", "receive flows over UDP"),
    "record": ("ccgym.cli.record:main", "train several seeds, confirm each, export the median one"),
    "sender": ("ccgym.cli.endpoint:sender", "send a flow over UDP by any scheme or policy"),
    "shell": ("ccgym.cli.shell:main", "run a command inside an emulated path"),
    "site": ("ccgym.cli.site:main", "results of experiments as a static site, with a database"),
    "train": ("ccgym.cli.train:main", "train a policy from a YAML file"),
    "watch": ("ccgym.cli.watch:main", "how far the runs in another terminal are"),
}
"""Commands that are programs of their own: ``module:function``, called with the words after the command, and help."""

_INTERNAL: Final = {"tunnel-end": "ccgym.cli.tunnel_end:main"}
"""Commands that ccgym starts on other machines, which no help lists."""

_KINDS: Final = {
    "": "",
    "card": "",
    "kernel": "kernel TCP, on real paths (--backend emulated or mahimahi):",
    "quic": "QUIC by the library quinn, on real paths:",
    "program": "programs of others, on real paths:",
}
"""Kinds of schemes in the order of `ccgym schemes`, by the field that only they have, with the text above them."""

_EXAMPLES: Final = """\
examples:
  ccgym paths                                  the paths that have a name
  ccgym path show 77.72mbps                    one of them in detail
  ccgym schemes                                the congestion-control schemes
  ccgym evaluate --trace 77.72mbps             Pantheon's table, plots and report
  ccgym shell --path 77.72mbps                 your shell inside that path, with real packets
  ccgym gap --trace 77.72mbps --schemes bbr    the simulator against real packets
  ccgym rfc9743 cubic --quick                  what RFC 9743 asks of a scheme, as a report
  ccgym adversary cubic                        paths on which a scheme is far from the oracle
  ccgym describe configs/aurora.yaml           what an agent sees, does and is rewarded for
  ccgym schema config                          JSON Schema of a training file, for editors
  ccgym train --config aurora.yaml             a policy that learns
  ccgym trace show Verizon-LTE-short.up --plot verizon.png
  ccgym trace make constant --rate 50mbps -o 50mbps.trace
"""

_PATHS: Final = """\
A path is all that lies between sender and receiver: delay, loss, a queue, and a link with its rate.
A trace is one part of it, when the link may send a packet, and has no delay and no queue of its own
(ccgym trace list). Options called --trace take a path by name or file, and a trace as a path with
nothing else in it. In an agent's YAML file, paths: is a distribution from which episodes draw theirs.
"""


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; its namespace has ``run``, a function of the namespace."""
    parser = Parser(
        prog=program(),
        description="Congestion-control simulator, environments and evaluation.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice for everything")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, (_, text) in _DELEGATED.items():
        commands.add_parser(name, help=text, add_help=False)
    paths = commands.add_parser(
        "paths", help="list the paths that have a name", description=_PATHS, formatter_class=HelpFormatter
    )
    paths.add_argument("--json", action="store_true", help="as JSON")
    paths.set_defaults(run=_paths)
    _add_path(commands)
    schemes = commands.add_parser("schemes", help="list the congestion-control schemes, learned ones too")
    schemes.add_argument("name", nargs="?", help="one scheme, with its parameters")
    schemes.add_argument("--json", action="store_true", help="as JSON")
    schemes.set_defaults(run=_schemes)
    for module in (
        trace, describe, schema, gap, rfc9743, benchmark, adversary, portrait, tree, best_cwnd, certificate, doctor,
    ):  # fmt: skip
        module.add_parser(commands)
    version = commands.add_parser("version", help="print versions")
    version.set_defaults(run=_version)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; see :mod:`ccgym.cli.common`."""
    import sys

    words = list(sys.argv[1:] if argv is None else argv)
    commands = _INTERNAL | {name: place for name, (place, _) in _DELEGATED.items()}
    flags = list(takewhile(re.compile("-v+|--verbose").fullmatch, words))
    command, *rest = words[len(flags) :] or [""]
    if command in commands:
        module, _, function = commands[command].partition(":")
        if command == "train":  # it has this option itself
            rest = [*flags, *rest]
        elif flags:
            set_up_logging(sum(1 if flag == "--verbose" else len(flag) - 1 for flag in flags))
        return int(getattr(importlib.import_module(module), function)(rest))

    def body() -> int:
        args = build_parser().parse_args(words)
        args.words = words[words.index(args.command) + 1 :]
        set_up_logging(args.verbose)
        return int(args.run(args))

    return run(body)


def _add_path(commands: argparse._SubParsersAction[Parser]) -> None:
    path = commands.add_parser(
        "path", help="show one path, however it is given", description=_PATHS, formatter_class=HelpFormatter
    )
    actions = path.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show",
        help="describe a path, and what is wrong with it",
        epilog="example:\n  ccgym path show 'mm-delay 20 mm-link 12mbps.trace 12mbps.trace'\n",
        formatter_class=HelpFormatter,
    )
    show.add_argument("path", help="a name, a mahimahi command line, or a YAML or trace file")
    how = show.add_mutually_exclusive_group()
    how.add_argument("--spec", action="store_true", help="what the native core is given, as JSON")
    how.add_argument("--mahimahi", action="store_true", help="as a mahimahi command line with real trace files")
    show.set_defaults(run=_path_show)


def _paths(args: argparse.Namespace) -> int:
    from ccgym.config.catalog import catalog

    entries = catalog().paths
    if args.json:
        described = {name: {"title": e.title, "aliases": e.aliases, "source": e.source} for name, e in entries.items()}
        say(json.dumps(described, indent=1, ensure_ascii=False))
        return 0
    rows = [(name, entry.title, ", ".join(entry.aliases)) for name, entry in entries.items()]
    print_table(("name", "what it is", "also called"), rows)
    return 0


def _path_show(args: argparse.Namespace) -> int:
    from ccgym.config.path import NetworkPath

    path = NetworkPath.from_any(args.path)
    if args.spec:
        say(json.dumps(path.compile().as_dict(), indent=1))
        return 0
    if args.mahimahi:
        say(path.to_mahimahi(materialize=True))
        return 0
    say(path.describe())
    findings = path.check()
    for finding in findings:
        say(str(finding))
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _schemes(args: argparse.Namespace) -> int:
    from ccgym.errors import SchemeNotFoundError, did_you_mean, shown
    from ccgym.schemes import kernel, programs, quic
    from ccgym.schemes.groups import GROUPS, descriptions
    from ccgym.schemes.reading import KINDS

    rows = [*descriptions(), *kernel.descriptions(), *quic.descriptions(), *programs.descriptions()]
    if args.name is not None:
        names = [row["name"] for row in rows]
        rows = [row for row in rows if row["name"] == args.name]
        if not rows:
            raise SchemeNotFoundError(
                "unknown-scheme",
                f"there is no scheme {shown(args.name)}",
                expected=", ".join(names),
                hint=did_you_mean(args.name, names),
            )
    if args.json:
        say(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    if args.name is not None:
        _one_scheme(rows[0])
        return 0
    lines: list[tuple[str, ...] | None] = []
    for kind, title in _KINDS.items():
        lines.append(None)
        if title:
            lines.append(("", "", "", title, ""))
        for row in rows:
            if kind == next((one for one in _KINDS if one in row), ""):
                parameters = ", ".join(p["name"] for p in row["parameters"])
                lines.append((row["name"], row["label"], _compared(row), row["summary"], parameters))
    print_table(("name", "label", "compared, over", "what it is", "parameters"), lines)
    say("")
    words = [(word, f"{group.meaning}: {', '.join(group.members())}") for word, group in GROUPS.items()]
    print_table(("word", "several schemes"), words)
    say("")
    print_table(("also", "what it is"), [(one.TYPED, one.MEANING) for one in KINDS])
    return 0


def _compared(row: dict[str, Any]) -> str:
    """In which comparisons a scheme takes part, its transport, and its status where that is not the usual one."""
    if "quic" in row or "program" in row:
        return "on request"
    if "role" not in row:
        return f"default, {row['card']['profile']}" if "card" in row else "default, tcp"
    status = "" if row["status"] == "native" else f", {row['status']}"
    return f"{row['role'].replace('_', ' ')}, {row['transport']['profile']}{status}"


def _one_scheme(row: dict[str, Any]) -> None:
    """A scheme with its parameters; of a learned one also how it was trained."""
    say(f"{row['name']}: {row['label']}")
    say(f"  {row['summary']}")
    say(f"  reference: {row['reference']}")
    say(f"  compared, over: {_compared(row)}")
    if row.get("implementation"):
        say(f"  checked against: {row['implementation']}")
    if "transport" in row:
        carried = row["transport"]
        size = f"{carried['mss']} + {carried['header']} bytes"
        source = carried["source"]["kind"]
        fed = "" if source == "greedy" else f"; source: {source}"
        say(f"  packets: {size}; initial window: {carried['initial_window']}{fed}")
    card = row.get("card")
    if card is not None:
        training = card["training"]
        facts = [f"seed {training['seed']}"] if "seed" in training else []
        facts += [f"{training['steps']:,} decisions"] if "steps" in training else []
        facts += [f"{training['wall_s'] / 60:.0f} min"] if "wall_s" in training else []
        if facts:
            say(f"  trained: {', '.join(facts)}")
        if "fraction_of_oracle" in training:
            say(f"  reward on held-out paths: {100 * training['fraction_of_oracle']:.0f} % of the oracle's")
        shape = card["policy"]
        say(f"  network: {shape['kind']}, {shape['observation_size']} features; over {card['profile']}")
    parameters = [
        (one["name"], str(one["default"]), _range(one), str(one.get("unit") or ""), one["help"])
        for one in row["parameters"]
    ]
    if parameters:
        print_table(("parameter", "default", "range", "unit", "meaning"), parameters)


def _range(parameter: dict[str, object]) -> str:
    choices, low, high = parameter.get("choices"), parameter.get("min"), parameter.get("max")
    if isinstance(choices, list) and choices:
        return ", ".join(str(choice) for choice in choices)
    if parameter.get("file"):
        return "path of a file"
    if low is None and high is None:
        return ""
    return f"{'' if low is None else low} … {'' if high is None else high}"


def _version(args: argparse.Namespace) -> int:
    import platform

    import ccgym

    say(f"ccgym {ccgym.__version__} (Python {platform.python_version()}, {platform.platform()})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
