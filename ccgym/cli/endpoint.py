"""``ccgym sender`` and ``ccgym receiver``: one flow of ccgym over UDP between any two machines.

This module reads the options and finds the files of a policy. Then the process is replaced by the program that
sends or receives.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from ccgym.cli.command import Command
from ccgym.emulation.job import become
from ccgym.errors import ConfigError, shown
from ccgym.units import NS_PER_S, parse_time

_MAX_TIME_NS: Final = 10**9 * NS_PER_S
_MAX_WHOLE: Final = 10**19 - 1


def sender_job(given: argparse.Namespace) -> dict[str, Any]:
    """Return the job of the sender.

    Raises:
        ConfigError: The scheme cannot be used here.
        SchemeNotFoundError: There is no scheme with this name.
    """
    from ccgym.schemes.reading import parse_scheme

    choice = parse_scheme(given.scheme, "--scheme")
    choice.refuse("endpoint", "--scheme")
    policy = choice.policy
    flow: dict[str, Any] = {
        "scheme": choice.name,
        "params": choice.native_params,
        **choice.transport,
        "ack_every": given.ack_every,
    }
    flow |= {name: value for name in ("profile", "mss") if (value := getattr(given, name)) is not None}
    if given.bytes is not None:
        flow["source"] = {"kind": "bytes", "bytes": given.bytes}
    job = {
        "name": choice.title,
        "to": given.to,
        "flow": flow,
        "duration": given.duration or (10 if given.bytes is None else 3600) * NS_PER_S,
        "seed": given.seed,
        "deadline": given.deadline,
        "report_every": given.report_every,
        "json": given.json,
    }
    if given.bind is not None:
        job["bind"] = given.bind
    if policy is not None:
        job["policies"] = {policy.key: {"onnx": str(policy.file.absolute()), "card": str(policy.files.card.absolute())}}
    return job


def receiver_job(given: argparse.Namespace) -> dict[str, Any]:
    """Return the job of the receiver."""
    names = ("listen", "flows", "once", "duration", "idle", "report_every", "json")
    return {name: getattr(given, name) for name in names}


def _endpoint(text: str) -> str:
    address, colon, port = text.rpartition(":")
    if not colon or not address or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError("text-malformed", shown(text), expected="ADDRESS:PORT, as in 127.0.0.1:5001")
    return text


def _address(text: str) -> str:
    from ipaddress import ip_address

    try:
        return str(ip_address(text))
    except ValueError:
        raise ConfigError("text-malformed", shown(text), expected="an address of this machine") from None


def _time(text: str) -> int:
    """Return the nanoseconds of a time with a unit, or of a number of seconds."""
    time_ns = parse_time(text)
    if time_ns > _MAX_TIME_NS:
        raise ConfigError("quantity-malformed", shown(text), expected="a time, as in 1s or 500ms")
    return time_ns


_REPORT_EVERY: Final = {"--report-every TIME = 1s": "interval of lines on standard error, as in 1s or 500ms; 0: none"}
_TIMES: Final = dict.fromkeys(("duration", "deadline", "idle", "report_every"), _time)

SENDER: Final = Command(
    "sender",
    run=lambda given: become("sender", sender_job(given)),
    usage="{} --to ADDRESS:PORT --scheme NAME [options]",
    description="""\
Send one flow over UDP to a receiver, controlled by a scheme or a policy, and print a summary.
Ctrl-C ends it early, with the summary.
""",
    examples="""\
  ccgym sender --to 10.0.0.2:5001 --scheme aurora --duration 30
""",
    options={
        "--to ADDRESS:PORT required": "the receiver",
        "--scheme NAME required": "cubic, bbr, … (`ccgym schemes`), parameters as in fixed_window:cwnd=100; or a "
        "policy: its name (aurora), a run directory, an exported .onnx file",
        "--duration SECONDS": "how long to send (default: 10; with --bytes: 3600)",
        f"--bytes N in 1..{_MAX_WHOLE}": "send N payload bytes, then stop (default: no limit)",
        "--profile tcp|udp|ns3": "transport: tcp, reliable like Linux; udp, datagrams with receipts; ns3 (default: "
        "the scheme's transport, usually tcp; for a policy, the transport of its training)",
        f"--mss BYTES in 1..{_MAX_WHOLE}": "payload of a packet (default: the scheme's value, usually 1448)",
        f"--ack-every N in 1..{_MAX_WHOLE} = 1": "request an ACK for every N-th packet",
        f"--seed N in 0..{_MAX_WHOLE} = 0": "seed of the scheme's random draws",
        "--bind ADDRESS": "the address to send from",
        "--deadline SECONDS = 5": "stop connecting after this time",
        **_REPORT_EVERY,
        "--json": "the summary as JSON",
    },
    reads={"to": _endpoint, "bind": _address, **_TIMES},
)

RECEIVER: Final = Command(
    "receiver",
    run=lambda given: become("receiver", receiver_job(given)),
    usage="{} --listen ADDRESS:PORT [options]",
    description="""\
Receive flows of `ccgym sender` and print a summary of each; Ctrl-C ends it. Only the given address is
bound. The receiver sends an address no more bytes than it received from there, until the sender has
echoed a cookie that was sent to that address. Datagrams without a flow are counted and dropped.
""",
    examples="""\
  ccgym receiver --listen 10.0.0.2:5001
""",
    options={
        "--listen ADDRESS:PORT required": "where to listen: an address of this machine",
        f"--flows N in 1..{_MAX_WHOLE} = 1": "max number of flows at the same time; a flow counts when it sends data",
        "--once": "end after this number of flows (--flows) has sent data and ended",
        "--duration SECONDS": "end after this time (default: never)",
        "--idle SECONDS = 30": "a flow ends if nothing arrives for this time",
        **_REPORT_EVERY,
        "--json": "one JSON object for each ended flow",
    },
    reads={"listen": _endpoint, **_TIMES},
)
