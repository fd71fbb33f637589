"""``ccgym shell``: run any command inside an emulated path, like mahimahi's shells, in one process.

This module reads the options and converts the path to elements. Then the process is replaced by the program that
emulates the path, so that this program has the exit status, the signals and the terminal.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Command, Rule
from ccgym.emulation import shell_path
from ccgym.emulation.job import become
from ccgym.errors import ConfigError, shown

if TYPE_CHECKING:
    from ccgym.config.declared import Direction

_DESCRIPTION: Final = """\
Run COMMAND (by default your shell) inside an emulated path: a named path (`ccgym paths`), a
YAML file, or a chain of mahimahi's tools with their options, the left-most outermost:

  mm-delay MS                            one-way delay in whole milliseconds, both directions
  mm-loss uplink|downlink RATE           independent random loss, 0 to 1
  mm-onoff uplink|downlink ON OFF        exponential on and off periods, their means in seconds
  mm-intermittent uplink|downlink ON OFF fixed on and off periods in seconds
  mm-link UP-TRACE DOWN-TRACE [options]  a bottleneck; traces are files, or names of the catalog
                                         (`ccgym paths --traces`); for each direction
      --uplink-queue=KIND                droptail, drophead, codel, pie or infinite
      --uplink-queue-args=packets=N,…    its arguments: bytes, packets, target, interval, qdelay_ref,
                                         max_burst
      --uplink-log=FILE                  mahimahi's log
      --once                             end with the traces

It needs one process, no setuid programs and no firewall rules. The uplink direction starts at COMMAND.
As root, the other end is this machine: its servers have the address $MAHIMAHI_BASE. As an ordinary
user, both ends are separate from the machine, and --outside starts a server for COMMAND. The exit
status is COMMAND's, or 128 + N if signal N ended it. The shell always removes what it created.
"""

_EXAMPLES: Final = """\
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


def _shell(given: argparse.Namespace) -> int:
    fields, notes = job(given)
    for note in notes:
        sys.stderr.write(f"note: {note}\n")
    become("shell", fields)


def job(given: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Return the job of the shell, and notes for the user.

    Raises:
        CcgymError: An option, tool or name is wrong.
    """
    for option, value in vars(given).items():
        if value == "":
            raise _wrong("argument-missing", f"--{option.replace('_', '-')} without a value", "a value")
    names = [word.partition("=")[0] for word in given.own if word.startswith("--")]
    for name in names:
        if names.count(name) > 1 and name != "--trace":
            raise _wrong("duplicate", f"{name} a second time", "each option once")
    path = _path(given)
    fields: dict[str, Any] = {
        **path.fields(),
        "command": list(path.command or ()),
        "packet_memory": given.packet_memory << 20,
        "flows": given.flows,
        "summary": given.summary,
        "user": given.user,
    }
    if given.seed is not None:
        fields["seed"] = given.seed
    if given.outside is not None:
        fields["outside"] = {"command": given.outside, "log": given.outside_log, "port": given.outside_port or None}
    if given.isolated or given.host:
        fields["placement"] = "isolated" if given.isolated else "host_outside"
    for kind in ("datalink", "acklink"):
        tunnel = None if given.tunnel_log is None else f"{given.tunnel_log}_{kind}.log"
        fields[f"{kind}_log"] = getattr(given, f"{kind}_log") or tunnel
    return fields, path.notes


def _path(given: argparse.Namespace) -> shell_path.ShellPath:
    from ccgym.config.mahimahi import TOOLS, quoted

    rest, traces = given.rest, dict[str, Path]()
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
                "this option after mm-link",
                "mm-link UP DOWN --uplink-log=FILE",
            )
        if not rest:
            raise _wrong(
                "argument-missing",
                "no path",
                "--path NAME|FILE, or mahimahi's tools, like `mm-delay 20`",
                "for example, `ccgym shell --path 12mbps` starts your shell in that path; --help has more examples",
            )
        return shell_path.from_mahimahi(rest, traces)
    if rest and rest[0] in TOOLS:
        raise _wrong(
            "options-conflict", f"--{'path' if given.spec is None else 'spec'} together with {rest[0]}", "one path"
        )
    command_line = " ".join(quoted(word) for word in ("ccgym", "shell", *given.own))
    if given.spec is not None:
        path = shell_path.from_json(Path(given.spec), given.name or "path", traces, logs, command_line)
    else:
        path = shell_path.from_name(given.path, logs, command_line)
        if given.name is not None:
            path.label = f"[{given.name}] "
        path.traces.update(traces)
    path.command = tuple(rest)
    return path


def _wrong(code: str, found: str, expected: str, hint: str = "") -> ConfigError:
    return ConfigError(code, found, expected=expected, hint=hint, where="ccgym shell")


COMMAND: Final = Command(
    "shell",
    run=_shell,
    usage="""\
{} --path NAME|FILE [options] [-- COMMAND…]
       {} [options] -- MAHIMAHI-TOOLS… [-- COMMAND…]
       {} [options] --spec FILE [-- COMMAND…]""",
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    rest=True,
    rules=(
        Rule("outside_log outside_port", "outside", needs=True),
        Rule("path", "spec", "give the path once"),
    ),
    options={
        "# path": "",
        "--path NAME|FILE": "a path by its name, or a YAML file",
        "--spec FILE": 'the path as JSON {"uplink": […], "downlink": […], "traces": {name: file}}',
        "--name TEXT": "with --path or --spec: text in the prompt",
        f"--seed N in 0..{2**64 - 1}": "seed of losses and all other random events; by default a new seed each time",
        "--trace NAME=FILE...": "read the trace NAME from FILE; may be repeated",
        f"--packet-memory MIB in 1..{_MAX_PACKET_MEMORY_MIB} = 512": "memory for the packets in flight in each "
        "direction, by default 512; if it is full, packets are dropped, and a warning at the end shows their number; "
        "mahimahi's queues have no "
        "such limit",
        "# ends": "",
        "--outside COMMAND": "run COMMAND (words for /bin/sh) at the other end; it ends with the shell",
        "--outside-log FILE": "file for its output, by default standard error",
        "--outside-port PORT in 0..65535": "wait until it listens on that TCP or UDP port before COMMAND starts",
        "| --isolated": "as root: separate both ends from the machine",
        "| --host": "the other end is this machine (the default as root)",
        "--user NAME": "as root: run COMMAND and the outside command as this user; by default as the user that called "
        "sudo, otherwise as root",
        "# records": "",
        "--uplink-log FILE": "with --path or --spec: mahimahi's log of the first link of that direction",
        "--downlink-log FILE": "the same for the downlink",
        "--datalink-log FILE": "every packet of the uplink with its one-way delay, in Pantheon's format",
        "--acklink-log FILE": "the same for the downlink",
        "--tunnel-log PREFIX": "both logs: PREFIX_datalink.log and PREFIX_acklink.log",
        f"--flows N in 0..{_MAX_FLOWS} = 0": "separate N flows in these logs, by the ports 5001 to 5000+N of one end; "
        "by default none",
        "--summary": "print one line on standard error at the end: packets, drops, precision of the schedule",
    },
    reads=dict.fromkeys(("spec", "outside_log", "uplink_log", "downlink_log", "datalink_log", "acklink_log"), str),
)
