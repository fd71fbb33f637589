"""Two machines and what lies between them: a path that nothing describes.

The fields are those of Pantheon's metadata of a test in its mode ``remote`` (StanfordSNR/pantheon @23e738c,
``src/experiments/arg_parser.py``), so that directories of Pantheon's and our own runs are read and named alike.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ccgym.config.path import NetworkPath
from ccgym.tracetools.check import Finding

Side: TypeAlias = Literal["local", "remote"]
"""This machine, or the one that is controlled over SSH."""

SSH: Final = "ssh -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
"""How the other machine is reached by default: without a question, and noticing when it is gone."""

_SIDES: Final = ("sender_side", "server_side")
_STORED: Final = ("local_addr", "local_if", "remote_if", "ntp_addr", "local_desc", "remote_desc")
"""What Pantheon's metadata have of these fields under the same name, where it was given."""


@dataclass(frozen=True)
class Hosts:
    """The two machines of a run, and how they meet."""

    remote_path: str
    """``HOST`` or ``HOST:DIR``: the other machine as SSH knows it, and the checkout of ccgym there."""
    sender_side: Side = "local"
    """Where data comes from."""
    server_side: Side = "remote"
    """Which machine waits for the tunnel's first packet; the other must be able to reach it over UDP."""
    local_addr: str | None = None
    """Address of this machine, as the other one reaches it."""
    remote_addr: str | None = None
    """Address of the other machine; by default what SSH connects to."""
    tunnel_port: int = 0
    """UDP port at the machine that waits; 0: any."""
    local_if: str | None = None
    """Interface that the tunnel is bound to here."""
    remote_if: str | None = None
    """The same there."""
    ntp_addr: str | None = None
    """Time server against which the offset of both clocks is measured."""
    local_desc: str | None = None
    """What this machine is called in titles."""
    remote_desc: str | None = None
    """What the other one is called."""
    ssh: str = SSH
    """The command that runs another one there, without the host."""

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> Hosts | None:
        """The machines of a test, by Pantheon's metadata; None of one over mahimahi."""
        if metadata.get("mode") != "remote":
            return None
        known: dict[str, Any] = {name: metadata[name] for name in (*_SIDES, *_STORED) if metadata.get(name)}
        return cls(str(metadata.get("remote_path") or ""), **known)

    def metadata(self) -> dict[str, Any]:
        """What Pantheon's metadata say of them; the inverse of :meth:`of_metadata`."""
        known = {name: getattr(self, name) for name in ("remote_path", *_SIDES, *_STORED)}
        return {"mode": "remote", **{name: value for name, value in known.items() if value is not None}}

    @property
    def identity(self) -> dict[str, Any]:
        """What decides which path packets take, and how results are named. How the other machine is controlled, and on
        which port the tunnel waits, does not."""
        return self.metadata() | ({"remote_addr": self.remote_addr} if self.remote_addr is not None else {})

    @property
    def host(self) -> str:
        """The other machine as SSH knows it."""
        return self.remote_path.partition(":")[0]

    @property
    def folder(self) -> str:
        """The checkout there; empty where none was named."""
        return self.remote_path.partition(":")[2]

    @property
    def ssh_words(self) -> list[str]:
        """The words of the command that runs another one there, without the host."""
        return shlex.split(self.ssh)

    def interface(self, side: Side) -> str | None:
        """The interface that the tunnel is bound to at one side."""
        return self.local_if if side == "local" else self.remote_if

    def name(self, side: Side) -> str:
        """What a machine is called, as Pantheon's titles have it."""
        if side == "local":
            return self.local_desc or "local host"
        return self.remote_desc or self.remote_path or "remote host"

    @property
    def ends(self) -> tuple[Side, Side]:
        """Where data comes from, and where it goes."""
        return ("local", "remote") if self.sender_side == "local" else ("remote", "local")

    @property
    def title(self) -> str:
        """``A to B``: where data comes from, and where it goes, as Pantheon's titles have it."""
        return " to ".join(map(self.name, self.ends))

    @property
    def text(self) -> str:
        """``A on ens5 (local) → B on ppp0 (remote)``, as Pantheon's reports have it."""
        on = {side: f" on {interface}" if (interface := self.interface(side)) else "" for side in self.ends}
        return " → ".join(f"{self.name(side)}{on[side]} ({side})" for side in self.ends)


class HostPath(NetworkPath):
    """What lies between two machines. It is measured as it is: it has no elements, no known rate and no known delay."""

    ACCEPTED_KEYS: ClassVar[tuple[str, ...]] = (*NetworkPath.ACCEPTED_KEYS, "hosts")

    hosts: Hosts

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(chain=(), name=hosts.title, hosts=hosts)  # type: ignore[call-arg]

    def describe(self) -> str:
        """The machines at its ends."""
        return self.hosts.text

    def check(self) -> list[Finding]:
        """Nothing: what is not described cannot be wrong."""
        return []


def hosts_of(path: NetworkPath) -> Hosts | None:
    """The machines at the ends of a path; None of one that is described."""
    return path.hosts if isinstance(path, HostPath) else None
