"""Options of runs between two machines, and the path that they define."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Options, attributes
from ccgym.errors import ConfigError, shown

if TYPE_CHECKING:
    from ccgym.config.hosts import HostPath

PANTHEON: Final[Options] = {
    "--sender local|remote": "the machine that sends the data (default: local)",
    "--tunnel-server local|remote": "the machine that the other machine can reach over UDP (default: remote; local "
    "needs --local-addr)",
    "--local-addr ADDRESS": "address at which the other machine reaches this one",
    "--local-if INTERFACE": "network interface of this machine, such as ppp0 (default: by its routes)",
    "--remote-if INTERFACE": "network interface of the other machine (default: by its routes)",
    "--ntp-addr HOST": "time server: the offset of both clocks against it is measured before and after each run",
    "--local-desc WORDS": "name of this machine in figures and report, such as 'AWS California 1'",
    "--remote-desc WORDS": "name of the other machine (default: HOST:DIR)",
}
"""Options for ``--remote`` that Pantheon's ``test.py`` also has."""
OWN: Final[Options] = {
    "--remote-addr ADDRESS": "address at which this machine reaches the other machine (default: SSH's address)",
    "--tunnel-port PORT in 0..65535": "UDP port of the tunnel server, for firewalls (default: any)",
    "--ssh COMMAND": "the command that connects to the other machine (default: ssh, without a password)",
}
"""Options for ``--remote`` that it does not have."""
NEXT_TO_REMOTE: Final = attributes({**PANTHEON, **OWN})
REMOTE: Final[Options] = {
    "--remote HOST[:DIR]": "instead of a path: real packets between this machine and HOST, which SSH must reach "
    "without a "
    "password; DIR is a checkout there, after `make setup` (default: ccgym on "
    "the search path)",
    **PANTHEON,
    **OWN,
}
""":func:`remote_path` reads them."""


def remote_path(arguments: argparse.Namespace) -> HostPath | None:
    """Return the path between two machines that the options define; None without ``--remote``.

    Raises:
        ConfigError: An option is wrong.
    """
    from ccgym.config.hosts import HostPath, Hosts

    if arguments.remote is None:
        return None
    given = {name: value for name in NEXT_TO_REMOTE if (value := getattr(arguments, name)) is not None}
    host, _, folder = arguments.remote.partition(":")
    if not host.strip() or host.startswith("-") or any(one.isspace() for one in host):
        raise ConfigError(
            "text-malformed", shown(arguments.remote), where="--remote", expected="HOST or HOST:DIR, as in me@far:ccgym"
        )
    if given.get("tunnel_server") == "local" and "local_addr" not in given:
        raise ConfigError(
            "option-needed",
            "--tunnel-server local without --local-addr",
            expected="the address at which the other machine reaches this one",
            hint="add --local-addr, or use the default, --tunnel-server remote, which needs no address",
        )
    sides = {"sender_side": given.pop("sender", "local"), "server_side": given.pop("tunnel_server", "remote")}
    return HostPath(
        Hosts(f"{host}:{folder}" if folder else host, tunnel_port=given.pop("tunnel_port", 0), **sides, **given)
    )
