"""The options of runs between two machines, and the path that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ccgym.errors import ConfigError, did_you_mean, shown

if TYPE_CHECKING:
    from ccgym.config.hosts import HostPath

SIDES: Final = ("local", "remote")

MAX_PORT: Final = 65535

_OPTIONS: Final = {
    "sender": ("local|remote", "where data comes from (default: local)"),
    "tunnel_server": (
        "local|remote",
        "which machine waits for the other one's packets: the one that is reachable over UDP (default: remote; local "
        "needs --local-addr)",
    ),
    "local_addr": ("ADDRESS", "address under which the other machine reaches this one"),
    "remote_addr": ("ADDRESS", "address under which this one reaches the other (default: what SSH connects to)"),
    "tunnel_port": ("PORT", "UDP port of the machine that waits, for firewalls (default: any)"),
    "local_if": ("INTERFACE", "network interface that packets take here, such as ppp0 (default: as routes say)"),
    "remote_if": ("INTERFACE", "the same there"),
    "ntp_addr": ("HOST", "time server: the offset of both clocks against it is measured before and after each run"),
    "local_desc": ("WORDS", "what this machine is called in figures and report, such as 'AWS California 1'"),
    "remote_desc": ("WORDS", "what the other one is called (default: HOST:DIR)"),
    "ssh": (
        "COMMAND",
        "the command that reaches the other machine, with its options (default: ssh, without questions)",
    ),
}
"""Options next to ``--remote``, by their names in the namespace: placeholder and help."""

PANTHEON: Final = (
    "sender", "tunnel_server", "local_addr", "local_if", "remote_if", "ntp_addr", "local_desc", "remote_desc",
)  # fmt: skip
"""Those of Pantheon's ``test.py``."""
OWN: Final = ("remote_addr", "tunnel_port", "ssh")
"""Those that it does not have."""


def add_remote(group: argparse._ArgumentGroup) -> None:
    """``--remote`` and the options next to it; :func:`remote_path` reads them."""
    group.add_argument(
        "--remote",
        metavar="HOST[:DIR]",
        help="in place of a path: real packets between this machine and HOST, which SSH reaches without a question, "
        "over whatever lies between; DIR is a checkout there in which `make setup` was run (default: ccgym on the "
        "search path)",
    )
    add_remote_options(group, _OPTIONS)


def add_remote_options(group: argparse._ArgumentGroup | argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Options next to ``--remote``."""
    for name in names:
        placeholder, text = _OPTIONS[name]
        group.add_argument(f"--{name.replace('_', '-')}", metavar=placeholder, help=text)


def remote_path(arguments: argparse.Namespace) -> HostPath | None:
    """The path between two machines that the options name; None without ``--remote``.

    Raises:
        ConfigError: An option is wrong, or there without ``--remote``.
    """
    from ccgym.config.hosts import HostPath, Hosts

    given = {name: value for name in _OPTIONS if (value := getattr(arguments, name)) is not None}
    if arguments.remote is None:
        for name in given:
            raise ConfigError(
                "option-needed",
                f"--{name.replace('_', '-')} without --remote",
                expected="it with --remote HOST",
                hint="it says how packets travel between two machines",
            )
        return None
    host, _, folder = arguments.remote.partition(":")
    if not host.strip() or host.startswith("-") or any(one.isspace() for one in host):
        raise ConfigError(
            "text-malformed", shown(arguments.remote), where="--remote", expected="HOST or HOST:DIR, as in me@far:ccgym"
        )
    for name in ("sender", "tunnel_server"):
        if given.get(name, "local") not in SIDES:
            raise ConfigError(
                "unknown-choice",
                shown(given[name]),
                where=f"--{name.replace('_', '-')}",
                expected="local or remote",
                hint=did_you_mean(given[name], SIDES),
            )
    port = given.pop("tunnel_port", "0")
    if not port.isdecimal() or int(port) > MAX_PORT:
        raise ConfigError(
            "out-of-range", shown(port), where="--tunnel-port", expected=f"a port from 1 to {MAX_PORT}; 0: any"
        )
    if given.get("tunnel_server") == "local" and "local_addr" not in given:
        raise ConfigError(
            "option-needed",
            "--tunnel-server local without --local-addr",
            expected="the address under which the other machine reaches this one",
            hint="--tunnel-server remote, which is the default, needs none",
        )
    sides = {"sender_side": given.pop("sender", "local"), "server_side": given.pop("tunnel_server", "remote")}
    return HostPath(Hosts(f"{host}:{folder}" if folder else host, tunnel_port=int(port), **sides, **given))
