"""``ccgym shell``: any command inside an emulated path, as mahimahi's shells have it, in one process.

The options are read here and the path is turned into elements; then this process becomes the one that emulates the
path, so that exit status, signals and terminal are its own.
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
Run COMMAND (by default your shell) inside an emulated path: one that has a name (`ccgym paths`) or a
YAML file, or one made of mahimahi's tools, with their options, the left-most outermost:

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

It takes one process, no setuid programs and no firewall rules. Uplink is from COMMAND outwards. As
root, the other end is this machine: servers on it are reached at $MAHIMAHI_BASE. As an ordinary user
both ends are apart from the machine, and --outside starts a server for COMMAND. The exit status
is COMMAND's, 128 + N if signal N ended it. Nothing is left behind, however the shell ends.
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
    """The job of the shell, and notes for the user.

    Raises:
        CcgymError: A wrong option, tool or name.
    """
    for option, value in vars(given).items():
        if value == "":
            raise _wrong("argument-missing", f"--{option.replace('_', '-')} with nothing", "a value")
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
    if rest and rest[0] in TOOLS:
        raise _wrong(
            "options-conflict", f"--{'path' if given.spec is None else 'spec'} together with {rest[0]}", "the path once"
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
        Rule("path", "spec", "the path once"),
    ),
    options={
        "# path": "",
        "--path NAME|FILE": "a path by its name, or a YAML file",
        "--spec FILE": 'the path as JSON {"uplink": […], "downlink": […], "traces": {name: file}}',
        "--name TEXT": "with --path or --spec: what the prompt shows",
        f"--seed N in 0..{2**64 - 1}": "seed of losses and all else that is random; by default a new one each time",
        "--trace NAME=FILE...": "read the trace NAME from FILE; may be repeated",
        f"--packet-memory MIB in 1..{_MAX_PACKET_MEMORY_MIB} = 512": "memory for the packets under way in each "
        "direction, by default 512; when it is full, packets are dropped, and a warning at the end says how many; "
        "mahimahi's queues have no "
        "such bound",
        "# ends": "",
        "--outside COMMAND": "run COMMAND (words for /bin/sh) at the other end; it ends with the shell",
        "--outside-log FILE": "where its output goes, by default to standard error",
        "--outside-port PORT in 0..65535": "wait until it listens on that TCP or UDP port before COMMAND starts",
        "| --isolated": "as root: both ends apart from the machine",
        "| --host": "the other end is this machine (the default as root)",
        "--user NAME": "as root: run COMMAND and the one outside as that user; by default as the user that called "
        "sudo, else as root",
        "# records": "",
        "--uplink-log FILE": "with --path or --spec: mahimahi's log of the first link of that direction",
        "--downlink-log FILE": "the same of the downlink",
        "--datalink-log FILE": "every packet of the uplink with its one-way delay, as Pantheon reads it",
        "--acklink-log FILE": "the same of the downlink",
        "--tunnel-log PREFIX": "both: PREFIX_datalink.log and PREFIX_acklink.log",
        f"--flows N in 0..{_MAX_FLOWS} = 0": "separate N flows in them, by the ports 5001 to 5000+N of one end; by "
        "default none",
        "--summary": "one line on standard error at the end: packets, drops, how exactly the schedule was kept",
    },
    reads=dict.fromkeys(("spec", "outside_log", "uplink_log", "downlink_log", "datalink_log", "acklink_log"), str),
)
