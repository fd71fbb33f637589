"""A run between two machines: a run process on each, connected by a tunnel, and one result from both."""

from __future__ import annotations

import json
import secrets
import shlex
import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ccgym.config.hosts import Hosts, Side
from ccgym.emulation.checkout import git_summary
from ccgym.emulation.ntp import clock_offset_s
from ccgym.emulation.plan import Plan, TunnelEnd
from ccgym.emulation.process import SLACK_S, ProcessOutcome, RunProcess
from ccgym.emulation.remote_end import RemoteEnd
from ccgym.errors import ConfigError, RealPathError, explained, shown

MTU: Final = 1464
"""Maximum IP packet in the tunnel, bytes: 1500 minus an IP header, a UDP header and a packet number of 8 bytes, as in
Pantheon's tunnel."""

_MAX_ANSWER: Final = 2**20
"""Maximum size of an answer of `ssh -G`, bytes."""


def run_between(plan: Plan, hosts: Hosts, halt: threading.Event | None = None) -> ProcessOutcome:
    """Run a plan between this machine and another one, and join both halves of the result.

    Args:
        plan: The run; its path has no elements.
        hosts: The two machines.
        halt: Set by another thread to stop the run.

    Raises:
        RealPathError: The other machine cannot be reached, the tunnel cannot be made, the run failed at either end,
            stalled, or was stopped.
    """
    from ccgym import _core

    secret = secrets.token_hex(16)
    address = server_address(hosts)
    begun, offsets = _Offsets(hosts.ntp_addr), _Offsets(hosts.ntp_addr)

    def end_of(side: Side, port: int | None) -> Plan:
        """Return the plan of one machine; ``port`` is the port of the other machine, if the other machine waits."""
        return replace(
            plan,
            tunnel=TunnelEnd(
                end="senders" if side == hosts.sender_side else "receivers",
                secret=secret,
                listen=f"0.0.0.0:{hosts.tunnel_port}" if port is None else None,
                connect=None if port is None else f"{address}:{port}",
                interface=hosts.interface(side),
            ),
        )

    with RemoteEnd(hosts) as there:
        notes = _of_checkouts(git_summary(), there.hello(halt)["git"])
        begun.ask()

        def begin_there(port: int | None) -> None:
            there.send({"plan": end_of("remote", port).packed(), "ntp": hosts.ntp_addr}, halt, longest_half(plan))
            if hosts.ntp_addr is not None:
                offsets.heard(there.wait("ntp", SLACK_S, halt))

        if hosts.server_side == "remote":
            begin_there(None)
            port: int = there.wait("listening", SLACK_S, halt)
            here = RunProcess(end_of("local", port))
        else:
            here = RunProcess(end_of("local", None))
        with here:
            if hosts.server_side == "local":
                begin_there(here.port(halt))
            timeout_s = plan.duration_s + 2 * SLACK_S
            if hosts.ntp_addr is not None:
                offsets.heard(there.wait("ntp", timeout_s, halt, here.has_ended))
            far: bytes = there.wait("result", timeout_s, halt, here.has_ended)
            near = here.wait_for_half(halt)
        begun.ask()
    local_sends = hosts.sender_side == "local"
    senders, receivers = (near, far) if local_sends else (far, near)
    ntp = {"Local": begun.mean_ms, "Remote": offsets.mean_ms}
    known = None
    if ntp["Local"] is not None and ntp["Remote"] is not None:
        near_ns, far_ns = round(ntp["Local"] * 1e6), round(ntp["Remote"] * 1e6)
        known = {"senders": near_ns if local_sends else far_ns, "receivers": far_ns if local_sends else near_ns}
    try:
        result, text = _core.join_run(
            json.dumps(dict(plan.spec)), senders, receivers, json.dumps({"ntp_offset_ns": known})
        )
    except (TypeError, ValueError) as error:
        raise explained(RealPathError, error, "protocol-error", where=f"remote {hosts.remote_path}") from error
    report = dict(json.loads(text))
    notes += [f"no clock offset: {failure}" for failure in dict.fromkeys((*begun.failures, *offsets.failures))]
    applied = report["clocks"]["applied"] == "ntp"
    return ProcessOutcome(
        result, {**report, "notes": [*report["notes"], *notes]} | ({"clock_offsets_ms": ntp} if applied else {})
    )


def longest_half(plan: Plan) -> int:
    """Return the maximum size of a half result, bytes: for a path of 2 Gbit/s, with about 20 bytes per packet. The
    native core needs several times this memory to read it."""
    return 2**26 + int(plan.duration_s * (2**22 + 2**17 * len(plan.spec["flows"])))


class _Offsets:
    """The offsets of one clock to a time server, before and after a run."""

    def __init__(self, server: str | None) -> None:
        self._server = server
        self._found_ms: list[float] = []
        self.failures: list[str] = []

    def ask(self) -> None:
        """Measure the offset of this machine's clock, if there is a time server."""
        if self._server is not None:
            self.heard(ntp_answer(self._server))

    def heard(self, answer: Mapping[str, Any]) -> None:
        """Store an answer of :func:`ntp_answer`."""
        if "offset_ms" in answer:
            self._found_ms.append(float(answer["offset_ms"]))
        else:
            self.failures.append(str(answer["failure"]))

    @property
    def mean_ms(self) -> float | None:
        """Offset in the middle of the run, ms."""
        return round(sum(self._found_ms) / len(self._found_ms), 3) if self._found_ms else None


def ntp_answer(server: str) -> dict[str, Any]:
    """Return the offset of this machine's clock to a time server, ``offset_ms``, or the ``failure``."""
    try:
        return {"offset_ms": clock_offset_s(server) * 1e3}
    except RealPathError as error:
        return {"failure": f"{error.where}: {error.found}"}


def _of_checkouts(here: str, there: str) -> list[str]:
    """Return a note if the machines run different checkouts."""
    if here == there:
        return []
    first, second = (text.partition("\n")[0] + (", with changes" if "\n" in text else "") for text in (here, there))
    return [f"the machines run different checkouts: here {first}; there {second}"]


def server_address(hosts: Hosts) -> str:
    """Return the IPv4 address at which one machine reaches the waiting machine.

    Raises:
        ConfigError: There is no such address.
    """
    local = hosts.server_side == "local"
    name = (hosts.local_addr if local else hosts.remote_addr) or (None if local else ssh_address(hosts))
    where = "--local-addr" if local else "--remote-addr"
    if name is None:
        raise ConfigError(
            "remote-unreachable",
            "no address",
            where=where,
            expected="the address at which the other machine reaches this one",
        )
    try:
        return str(socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_DGRAM)[0][4][0])
    except OSError as error:
        raise ConfigError(
            "remote-unreachable",
            f"{shown(name)} has no IPv4 address: {error.strerror or error}",
            where=where,
            expected="a name or an address, reachable over UDP",
        ) from error


def ssh_address(hosts: Hosts) -> str:
    """Return the address that SSH connects to for this host, by the user's ``~/.ssh/config``."""
    words = [*hosts.ssh_words, "-G", hosts.host]
    try:
        found = dict(line.split(" ", 1) for line in _answer(words).splitlines() if " " in line)
        return found["hostname"]
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            "remote-unreachable",
            f"`{shlex.join(words)}` does not print the address of {hosts.host}: {error}",
            where="--remote-addr",
            expected="the address of the other machine",
            hint="give the address with --remote-addr",
        ) from error


def _answer(words: list[str]) -> str:
    """Return the output of a command; raise ValueError if it is too long or too late, or the command fails."""
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(SLACK_S, process.kill)
        late.start()
        try:
            said = process.stdout.read(_MAX_ANSWER + 1)
            if len(said) > _MAX_ANSWER:
                raise ValueError(f"it prints more than {_MAX_ANSWER} bytes")
            if status := process.wait():
                raise ValueError(f"it ended with status {status}")
        finally:
            late.cancel()
            process.kill()
    return said.decode(errors="replace")
