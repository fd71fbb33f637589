"""Two machines and the path between them. The properties of this path are unknown.

The fields are the fields of Pantheon's metadata of a test in mode ``remote`` (StanfordSNR/pantheon @23e738c,
``src/experiments/arg_parser.py``), so that ccgym reads and names directories of Pantheon's and its own runs equally.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ccgym.config.path import NetworkPath
from ccgym.tracetools.check import Finding

Side: TypeAlias = Literal["local", "remote"]
"""This machine, or the machine that is controlled over SSH."""

SSH: Final = "ssh -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
"""Default SSH command for the other machine: without prompts, and with detection of a lost connection."""

_SIDES: Final = ("sender_side", "server_side")
_STORED: Final = ("local_addr", "local_if", "remote_if", "ntp_addr", "local_desc", "remote_desc")
"""Optional fields that have the same name in Pantheon's metadata."""


@dataclass(frozen=True)
class Hosts:
    """The two machines of a run, and their connection."""

    remote_path: str
    """``HOST`` or ``HOST:DIR``: SSH name of the other machine, and the checkout of ccgym on it."""
    sender_side: Side = "local"
    """The machine that sends the data."""
    server_side: Side = "remote"
    """The machine that waits for the first packet of the tunnel; it must be reachable over UDP."""
    local_addr: str | None = None
    """Address of this machine for the other machine."""
    remote_addr: str | None = None
    """Address of the other machine. Default: the address to which SSH connects."""
    tunnel_port: int = 0
    """UDP port on the machine that waits; 0: any port."""
    local_if: str | None = None
    """Interface of the tunnel on this machine."""
    remote_if: str | None = None
    """Interface of the tunnel on the other machine."""
    ntp_addr: str | None = None
    """Time server for measuring the offsets of both clocks."""
    local_desc: str | None = None
    """Name of this machine in titles."""
    remote_desc: str | None = None
    """Name of the other machine in titles."""
    ssh: str = SSH
    """SSH command that runs a command on the other machine, without the host."""

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> Hosts | None:
        """Return the machines of a test from Pantheon's metadata; ``None`` for a test over mahimahi."""
        if metadata.get("mode") != "remote":
            return None
        known: dict[str, Any] = {name: metadata[name] for name in (*_SIDES, *_STORED) if metadata.get(name)}
        return cls(str(metadata.get("remote_path") or ""), **known)

    def metadata(self) -> dict[str, Any]:
        """Return the machines as Pantheon's metadata; the inverse of :meth:`of_metadata`."""
        known = {name: getattr(self, name) for name in ("remote_path", *_SIDES, *_STORED)}
        return {"mode": "remote", **{name: value for name, value in known.items() if value is not None}}

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that decide the path of packets and the names of results. The SSH command and the port of the
        tunnel are not included."""
        return self.metadata() | ({"remote_addr": self.remote_addr} if self.remote_addr is not None else {})

    @property
    def host(self) -> str:
        """SSH name of the other machine."""
        return self.remote_path.partition(":")[0]

    @property
    def folder(self) -> str:
        """The checkout on the other machine; empty if none was given."""
        return self.remote_path.partition(":")[2]

    @property
    def ssh_words(self) -> list[str]:
        """The words of the SSH command, without the host."""
        return shlex.split(self.ssh)

    def interface(self, side: Side) -> str | None:
        """Return the interface of the tunnel on one side."""
        return self.local_if if side == "local" else self.remote_if

    def name(self, side: Side) -> str:
        """Return the name of a machine, as in Pantheon's titles."""
        if side == "local":
            return self.local_desc or "local host"
        return self.remote_desc or self.remote_path or "remote host"

    @property
    def ends(self) -> tuple[Side, Side]:
        """The sides of the sender and of the receiver of data."""
        return ("local", "remote") if self.sender_side == "local" else ("remote", "local")

    @property
    def title(self) -> str:
        """``A to B``: the sender and the receiver of data, as in Pantheon's titles."""
        return " to ".join(map(self.name, self.ends))

    @property
    def text(self) -> str:
        """``A on ens5 (local) → B on ppp0 (remote)``, as in Pantheon's reports."""
        on = {side: f" on {interface}" if (interface := self.interface(side)) else "" for side in self.ends}
        return " → ".join(f"{self.name(side)}{on[side]} ({side})" for side in self.ends)


class HostPath(NetworkPath):
    """The path between two machines. It is only measured: it has no elements, and its rate and delay are unknown."""

    ACCEPTED_KEYS: ClassVar[tuple[str, ...]] = (*NetworkPath.ACCEPTED_KEYS, "hosts")

    hosts: Hosts

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(chain=(), name=hosts.title, hosts=hosts)  # type: ignore[call-arg]

    def describe(self) -> str:
        """Describe the machines at both ends."""
        return self.hosts.text

    def check(self) -> list[Finding]:
        """Return no findings, because a path without description has no mistakes."""
        return []


def hosts_of(path: NetworkPath) -> Hosts | None:
    """Return the machines at the ends of a path; ``None`` for all other paths."""
    return path.hosts if isinstance(path, HostPath) else None
