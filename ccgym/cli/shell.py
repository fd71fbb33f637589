"""``ccgym shell``: any command inside an emulated path, as mahimahi's shells have it, in one process.

The options are read here and the path is turned into elements; then this process becomes the one that emulates the
path, so that exit status, signals and terminal are its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.common import HelpFormatter, Parser, run
from ccgym.emulation import shell_path
from ccgym.emulation.job import become
from ccgym.errors import ConfigError, shown

if TYPE_CHECKING:
    from ccgym.config.declared import Direction

_USAGE: Final = """\
ccgym shell --path NAME|FILE [options] [-- COMMAND…]
       ccgym shell [options] -- MAHIMAHI-TOOLS… [-- COMMAND…]
       ccgym shell [options] --spec FILE [-- COMMAND…]"""

_DESCRIPTION: Final = """\
Run COMMAND (by default your shell) inside an emulated path: one that has a name (`ccgym paths`) or a
YAML file, or one made of mahimahi's tools, with their options, the left-most outermost:

  mm-delay MS                            one-way delay in whole milliseconds, both directions
  mm-loss uplink|downlink RATE           independent random loss, 0 to 1
  mm-onoff uplink|downlink ON OFF        exponential on and off periods, their means in seconds
  mm-intermittent uplink|downlink ON OFF fixed on and off periods in seconds
  mm-link UP-TRACE DOWN-TRACE [options]  a bottleneck; traces are files, or names of the catalog
                                         (`ccgym trace list`); for each direction
      --uplink-queue=KIND                droptail, drophead, codel, pie or infinite
      --uplink-queue-args=packets=N,…    its arguments: bytes, packets, target, interval, qdelay_ref,
                                         max_burst
      --uplink-log=FILE                  mahimahi's log
      --once                             end with the traces

It takes one process, no setuid programs and no firewall rules. Uplink is from COMMAND outwards. As
root, the other end is this machine: servers on it are reached at $MAHIMAHI_BASE. As an ordinary user
both ends are apart from the machine, and --outside starts what COMMAND is to reach. The exit status
is COMMAND's, 128 + N if signal N ended it. Nothing is left behind, however the shell ends.
"""

_EXAMPLES: Final = """\
examples:
  ccgym shell --path 77.72mbps -- ping 100.64.0.1
  ccgym shell -- mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace \\
      --uplink-queue=droptail --uplink-queue-args=packets=94 --uplink-log=up.log
  ccgym shell --outside 'iperf3 -s -1' --outside-port 5201 -- mm-delay 20 -- \\
      sh -c 'iperf3 -c $MAHIMAHI_BASE'
  ccgym shell --seed 7 --summary -- mm-loss uplink 0.01 mm-delay 10 -- \\
      sh -c 'ping -c 10 $MAHIMAHI_BASE'
"""

_MAX_PACKET_MEMORY_MIB: Final = 1 << 20
_MAX_FLOWS: Final = 60_000


class _Once(argparse.Action):
    """An option that may be given once."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, name: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise _wrong("duplicate", f"{name} a second time", "each option once")
        setattr(namespace, self.dest, values)


def parser() -> argparse.ArgumentParser:
    """The options of ``ccgym shell``, without the tools and the command."""
    made = Parser(
        prog="ccgym shell",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )

    def add(group: argparse._ArgumentGroup, name: str, metavar: str, text: str) -> None:
        group.add_argument(name, metavar=metavar, action=_Once, help=text)

    path = made.add_argument_group("path")
    add(path, "--path", "NAME|FILE", "a path by its name, or a YAML file")
    add(path, "--spec", "FILE", 'the path as JSON {"uplink": […], "downlink": […], "traces": {name: file}}')
    add(path, "--name", "TEXT", "with --path or --spec: what the prompt shows")
    add(path, "--seed", "N", "seed of losses and everything else that is random; by default a new one each time")
    path.add_argument(
        "--trace", metavar="NAME=FILE", action="append", default=[],
        help="read the trace NAME from FILE; may be repeated",
    )  # fmt: skip
    add(
        path, "--packet-memory", "MIB",
        "memory for the packets under way in each direction, by default 512; a packet that comes when it is full is "
        "dropped, and a warning at the end says how many were; mahimahi's queues have no such bound",
    )  # fmt: skip
    ends = made.add_argument_group("ends")
    add(ends, "--outside", "COMMAND", "run COMMAND (words for /bin/sh) at the other end; it ends with the shell")
    add(ends, "--outside-log", "FILE", "where its output goes, by default to standard error")
    add(ends, "--outside-port", "PORT", "wait until it listens on that TCP or UDP port before COMMAND starts")
    where = ends.add_mutually_exclusive_group()
    where.add_argument("--isolated", action="store_true", help="as root: both ends apart from the machine")
    where.add_argument("--host", action="store_true", help="the other end is this machine (the default as root)")
    add(
        ends, "--user", "NAME",
        "as root: run COMMAND and the one outside as that user; by default as the user that called sudo, else as root",
    )  # fmt: skip
    records = made.add_argument_group("records")
    add(records, "--uplink-log", "FILE", "with --path or --spec: mahimahi's log of the first link of that direction")
    add(records, "--downlink-log", "FILE", "the same of the downlink")
    add(records, "--datalink-log", "FILE", "every packet of the uplink with its one-way delay, as Pantheon reads it")
    add(records, "--acklink-log", "FILE", "the same of the downlink")
    add(records, "--tunnel-log", "PREFIX", "both: PREFIX_datalink.log and PREFIX_acklink.log")
    add(records, "--flows", "N", "tell N flows apart in them, by the ports 5001 to 5000+N of one end; by default none")
    records.add_argument(
        "--summary", action="store_true",
        help="one line on standard error at the end: packets, drops, how exactly the schedule was kept",
    )  # fmt: skip
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym shell``; returns only for help and errors."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _shell(words))


def _shell(words: list[str]) -> int:
    fields, notes = job(words)
    for note in notes:
        sys.stderr.write(f"note: {note}\n")
    become("shell", fields)


def job(words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The job of the shell, and notes for the user.

    Raises:
        CcgymError: A wrong option, tool or name.
    """
    made = parser()
    own, rest = _split(made, words)
    given = made.parse_args(own)
    for option, value in vars(given).items():
        if value == "":
            raise _wrong("argument-missing", f"--{option.replace('_', '-')} with nothing", "a value")
    path = _path(given, own, rest)
    fields: dict[str, Any] = {
        **path.fields(),
        "command": list(path.command or ()),
        "packet_memory": _whole(given.packet_memory, "--packet-memory", 1, _MAX_PACKET_MEMORY_MIB, " MiB", 512) << 20,
        "flows": _whole(given.flows, "--flows", 0, _MAX_FLOWS, "", 0),
        "summary": given.summary,
        "user": given.user,
    }
    if given.seed is not None:
        fields["seed"] = _whole(given.seed, "--seed", 0, 2**64 - 1)
    for option in ("outside_log", "outside_port"):
        if getattr(given, option) is not None and given.outside is None:
            raise _wrong("option-needed", f"--{option.replace('_', '-')} without --outside", "--outside COMMAND too")
    if given.outside is not None:
        port = None if given.outside_port is None else _whole(given.outside_port, "--outside-port", 0, 65_535)
        fields["outside"] = {"command": given.outside, "log": given.outside_log, "port": port or None}
    if given.isolated or given.host:
        fields["placement"] = "isolated" if given.isolated else "host_outside"
    for kind in ("datalink", "acklink"):
        tunnel = None if given.tunnel_log is None else f"{given.tunnel_log}_{kind}.log"
        fields[f"{kind}_log"] = getattr(given, f"{kind}_log") or tunnel
    return fields, path.notes


def _path(given: argparse.Namespace, own: Sequence[str], rest: Sequence[str]) -> shell_path.ShellPath:
    from ccgym.config.mahimahi import TOOLS, quoted

    traces: dict[str, Path] = {}
    for text in given.trace:
        name, _, file = text.partition("=")
        if not name or not file:
            raise _wrong("text-malformed", f"--trace {shown(text)}", "--trace NAME=FILE")
        traces[name] = Path(file)
    logs: dict[Direction, str] = {}
    if given.uplink_log is not None:
        logs["uplink"] = given.uplink_log
    if given.downlink_log is not None:
        logs["downlink"] = given.downlink_log
    if given.path is None and given.spec is None:
        if logs:
            raise _wrong(
                "option-needed",
                "--uplink-log or --downlink-log without --path or --spec",
                "it behind mm-link",
                "mm-link UP DOWN --uplink-log=FILE",
            )
        if not rest:
            raise _wrong(
                "argument-missing",
                "no path",
                "--path NAME|FILE, or mahimahi's tools, like `mm-delay 20`",
                "`ccgym shell --path 12mbps` starts your shell in that path; --help has more examples",
            )
        return shell_path.from_mahimahi(rest, traces)
    if given.path is not None and given.spec is not None:
        raise _wrong("options-conflict", "--path and --spec", "the path once")
    if rest and rest[0] in TOOLS:
        raise _wrong(
            "options-conflict", f"--{'path' if given.spec is None else 'spec'} together with {rest[0]}", "the path once"
        )
    command_line = " ".join(quoted(word) for word in ("ccgym", "shell", *own))
    if given.spec is not None:
        path = shell_path.from_json(Path(given.spec), given.name or "path", traces, logs, command_line)
    else:
        path = shell_path.from_name(given.path, logs, command_line)
        if given.name is not None:
            path.label = f"[{given.name}] "
        path.traces.update(traces)
    path.command = tuple(rest)
    return path


def _split(made: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options, and what follows them: tools, or the command."""
    valued = {option for action in made._actions if action.nargs != 0 for option in action.option_strings}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            return list(words[:at]), list(words[at + 1 :])
        at += 2 if words[at] in valued else 1
    return list(words[:at]), list(words[at:])


def _whole(text: str | None, option: str, low: int, high: int, unit: str = "", default: int = 0) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal():
        raise _wrong("out-of-range", f"{option} {shown(text)}", "a whole number, not negative")
    value = int(text[:25])
    if not low <= value <= high:
        raise _wrong("out-of-range", f"{option} {text[:25]}", f"{low} to {high}{unit}")
    return value


def _wrong(code: str, found: str, expected: str, hint: str = "") -> ConfigError:
    return ConfigError(code, found, expected=expected, hint=hint, where="ccgym shell")
