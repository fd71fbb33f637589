"""``ccgym sender`` and ``ccgym receiver``: one flow of ours over UDP between any two machines.

The options are read here, and the name of a policy is turned into its files; then this process becomes the one that
sends or receives.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from ccgym.cli.common import HelpFormatter, Parser, option, run
from ccgym.emulation.job import become
from ccgym.errors import ConfigError, shown
from ccgym.units import NS_PER_S, parse_time

_SENDER: Final = """\
Send one flow over UDP to a receiver, steered by a scheme or a policy, and print what came of it.
Control-C ends it early, also with what came of it.
"""

_SENDER_EXAMPLE: Final = """\
example:
  ccgym sender --to 10.0.0.2:5001 --scheme aurora --duration 30
"""

_RECEIVER: Final = """\
Receive flows of `ccgym sender` and print what came of them; control-C ends it. Only this address is
bound. To an address it sends no more bytes than came from there, until the sender has echoed a
cookie that was sent to that address. What belongs to no flow is counted and dropped.
"""

_RECEIVER_EXAMPLE: Final = """\
example:
  ccgym receiver --listen 10.0.0.2:5001
"""

_REPORT_EVERY: Final = "a line on standard error this often, as in 1s or 500ms; 0: none (default: 1s)"

_PROFILES: Final = ("tcp", "udp", "ns3")
_MAX_TIME_NS: Final = 10**9 * NS_PER_S


def sender_parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym sender``."""
    made = _parser("sender", "--to ADDRESS:PORT --scheme NAME", _SENDER, _SENDER_EXAMPLE)
    made.add_argument("--to", metavar="ADDRESS:PORT", required=True, help="the receiver")
    made.add_argument(
        "--scheme", metavar="NAME", required=True,
        help="cubic, bbr, … (`ccgym schemes`), parameters as in fixed_window:cwnd=100; "
        "or a policy: its name (aurora), a run directory, an exported .onnx file",
    )  # fmt: skip
    made.add_argument("--duration", metavar="SECONDS", help="how long to send (default: 10; with --bytes: 3600)")
    made.add_argument("--bytes", metavar="N", help="send N payload bytes, then stop (default: no limit)")
    made.add_argument(
        "--profile", metavar="NAME", choices=_PROFILES,
        help="transport: tcp, reliable as Linux; udp, datagrams with receipts; ns3 "
        "(default: as the scheme has it, as a rule tcp; of a policy, what it was trained over)",
    )  # fmt: skip
    made.add_argument(
        "--mss", metavar="BYTES", help="payload of a packet (default: as the scheme has it, as a rule 1448)"
    )
    made.add_argument(
        "--ack-every", metavar="N", default="1", help="ask for an acknowledgement of every N-th packet (default: 1)"
    )
    made.add_argument("--seed", metavar="N", default="0", help="seed of what the scheme draws (default: 0)")
    made.add_argument("--bind", metavar="ADDRESS", help="the address to send from")
    made.add_argument("--deadline", metavar="SECONDS", default="5", help="give up connecting after this (default: 5)")
    made.add_argument("--report-every", metavar="TIME", default="1s", help=_REPORT_EVERY)
    made.add_argument("--json", action="store_true", help="the summary as JSON")
    return made


def receiver_parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym receiver``."""
    made = _parser("receiver", "--listen ADDRESS:PORT", _RECEIVER, _RECEIVER_EXAMPLE)
    made.add_argument(
        "--listen", metavar="ADDRESS:PORT", required=True, help="where to listen: an address of this machine"
    )
    made.add_argument(
        "--flows", metavar="N", default="1",
        help="maximum number of flows at a time (default: 1); data takes a place, not hello",
    )  # fmt: skip
    made.add_argument("--once", action="store_true", help="end when that many flows that sent data have come and gone")
    made.add_argument("--duration", metavar="SECONDS", help="end after this (default: never)")
    made.add_argument(
        "--idle", metavar="SECONDS", default="30", help="a flow is over when nothing came for this long (default: 30)"
    )
    made.add_argument("--report-every", metavar="TIME", default="1s", help=_REPORT_EVERY)
    made.add_argument("--json", action="store_true", help="one JSON object for each flow that is over")
    return made


def sender(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym sender``; returns only for help and errors."""
    return _become("sender", sender_job, argv)


def receiver(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym receiver``; returns only for help and errors."""
    return _become("receiver", receiver_job, argv)


def sender_job(words: Sequence[str]) -> dict[str, Any]:
    """The job of the sender.

    Raises:
        ConfigError: A wrong option, or a scheme that cannot be used here.
        SchemeNotFoundError: There is none of that name.
    """
    from ccgym.schemes.reading import parse_scheme

    given = sender_parser().parse_args(list(words))
    choice = option("--scheme", parse_scheme, given.scheme)
    choice.refuse("endpoint", "--scheme")
    policy = choice.policy
    flow: dict[str, Any] = {
        "scheme": choice.name,
        "params": choice.native_params,
        **choice.transport,
        "ack_every": _whole(given.ack_every, "--ack-every", low=1),
    }
    if given.profile is not None:
        flow["profile"] = given.profile
    if given.mss is not None:
        flow["mss"] = _whole(given.mss, "--mss", low=1)
    if given.bytes is not None:
        flow["source"] = {"kind": "bytes", "bytes": _whole(given.bytes, "--bytes", low=1)}
    job = {
        "name": choice.title,
        "to": _endpoint(given.to, "--to"),
        "flow": flow,
        "duration": _time(given.duration or ("10" if given.bytes is None else "3600"), "--duration"),
        "seed": _whole(given.seed, "--seed"),
        "deadline": _time(given.deadline, "--deadline"),
        "report_every": _time(given.report_every, "--report-every"),
        "json": given.json,
    }
    if given.bind is not None:
        job["bind"] = option("--bind", _address, given.bind)
    if policy is not None:
        job["policies"] = {policy.key: {"onnx": str(policy.file.absolute()), "card": str(policy.files.card.absolute())}}
    return job


def receiver_job(words: Sequence[str]) -> dict[str, Any]:
    """The job of the receiver.

    Raises:
        ConfigError: A wrong option.
    """
    given = receiver_parser().parse_args(list(words))
    return {
        "listen": _endpoint(given.listen, "--listen"),
        "flows": _whole(given.flows, "--flows", low=1),
        "once": given.once,
        "duration": None if given.duration is None else _time(given.duration, "--duration"),
        "idle": _time(given.idle, "--idle"),
        "report_every": _time(given.report_every, "--report-every"),
        "json": given.json,
    }


def _parser(name: str, needed: str, description: str, example: str) -> argparse.ArgumentParser:
    return Parser(
        prog=f"ccgym {name}",
        usage=f"ccgym {name} {needed} [options]",
        description=description,
        epilog=example,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )


def _become(name: str, job: Callable[[Sequence[str]], dict[str, Any]], argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: become(name, job(words)))


def _endpoint(text: str, name: str) -> str:
    address, colon, port = text.rpartition(":")
    if not colon or not address or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError("text-malformed", shown(text), where=name, expected="ADDRESS:PORT, as in 127.0.0.1:5001")
    return text


def _address(text: str) -> str:
    from ipaddress import ip_address

    try:
        return str(ip_address(text))
    except ValueError:
        raise ConfigError("text-malformed", shown(text), expected="an address of this machine") from None


def _whole(text: str, name: str, low: int = 0) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) < low:
        expected = f"a whole number, {low} or more" if low else "a whole number, not negative"
        raise ConfigError("out-of-range", shown(text), where=name, expected=expected)
    return int(text)


def _time(text: str, name: str) -> int:
    """Nanoseconds of a time with a unit, or of a number of seconds."""
    time_ns = option(name, parse_time, text)
    if time_ns > _MAX_TIME_NS:
        raise ConfigError("quantity-malformed", shown(text), where=name, expected="a time, as in 1s or 500ms")
    return time_ns
