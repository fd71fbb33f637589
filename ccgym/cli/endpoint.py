"""``ccgym sender`` and ``ccgym receiver``: one flow of ours over UDP between any two machines.

The work is native. What is done here: the name of a policy is turned into its files, and then this process becomes the
native one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

from ccgym.cli.common import option, run, say
from ccgym.cli.shell import become
from ccgym.errors import ConfigError

SENDER_HELP: Final = """\
usage: ccgym sender --to ADDRESS:PORT --scheme NAME [options]

Send one flow over UDP to a receiver, steered by a scheme or a policy, and print what came of it.
Control-C ends it early, also with what came of it.

  --to ADDRESS:PORT     the receiver
  --scheme NAME         cubic, bbr, … (`ccgym schemes`), parameters as in fixed_window:cwnd=100;
                        or a policy: its name (aurora), a run directory, an exported .onnx file
  --duration SECONDS    how long to send (default: 10; with --bytes: 3600)
  --bytes N             send so many payload bytes, then stop (default: as much as goes)
  --profile NAME        transport: tcp, reliable as Linux; udp, datagrams with receipts; ns3
                        (default: tcp; of a policy, the one that it was trained over)
  --mss BYTES           payload of a packet (default: 1448)
  --ack-every N         ask for an acknowledgement of every n-th packet (default: 1)
  --seed N              seed of what the scheme draws (default: 0)
  --bind ADDRESS        the address to send from
  --deadline SECONDS    give up connecting after this (default: 5)
  --report-every TIME   a line on standard error so often, as in 1s or 500ms; 0: none
  --json                the summary as JSON

example:
  ccgym sender --to 10.0.0.2:5001 --scheme aurora --duration 30
"""

RECEIVER_HELP: Final = """\
usage: ccgym receiver --listen ADDRESS:PORT [options]

Receive flows of `ccgym sender` and print what came of them; control-C ends it. Only this address is
bound. To an address it sends no more bytes than came from there, until the sender has echoed a
cookie that was sent to that address. What belongs to no flow is counted and dropped.

  --listen ADDRESS:PORT where to listen: an address of this machine
  --flows N             serve so many flows at a time (default: 1); data takes a place, not hello
  --once                end when so many flows that sent data have come and gone
  --duration SECONDS    end after this (default: never)
  --idle SECONDS        a flow is over when nothing came for so long (default: 30)
  --report-every TIME   a line on standard error so often, as in 1s or 500ms; 0: none
  --json                one JSON object for each flow that is over

example:
  ccgym receiver --listen 10.0.0.2:5001
"""


def sender(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym sender``; returns only for help and errors."""
    return _endpoint("sender", SENDER_HELP, argv, resolved)


def receiver(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym receiver``; returns only for help and errors."""
    return _endpoint("receiver", RECEIVER_HELP, argv, list)


def _endpoint(name: str, text: str, argv: Sequence[str] | None, prepare: Callable[[Sequence[str]], list[str]]) -> int:
    words = list(sys.argv[1:] if argv is None else argv)

    def body() -> int:
        if words and words[0] in ("-h", "--help"):
            say(text.rstrip())
            return 0
        become(name, *prepare(words))

    return run(body)


def resolved(words: Sequence[str]) -> list[str]:
    """The sender's words, with a policy's name turned into its files.

    Raises:
        ConfigError: The scheme cannot be used here.
        SchemeNotFoundError: There is none of that name.
    """
    made: list[str] = []
    rest = list(words)
    own_profile = any(word == "--profile" or word.startswith("--profile=") for word in rest)
    while rest:
        word = rest.pop(0)
        if word == "--scheme" or word.startswith("--scheme="):
            name = word.partition("=")[2] if "=" in word else (rest.pop(0) if rest else "")
            made += _scheme(name, own_profile=own_profile)
        else:
            made.append(word)
    return made


def _scheme(name: str, *, own_profile: bool) -> list[str]:
    from ccgym.schemes.onnx_runtime import provide_library
    from ccgym.schemes.registry import parse_scheme

    choice = option("--scheme", parse_scheme, name)
    if choice.kernel is not None:
        raise ConfigError(
            f"{choice.name} is the kernel's TCP, not a flow over UDP",
            where="--scheme",
            expected="a scheme of ours",
            hint=f"iperf3 -C {choice.kernel} sends one; `ccgym evaluate --backend emulated` runs both side by side",
        )
    settings = ",".join(f"{key}={json.dumps(value)}" for key, value in choice.settings.items())
    made = ["--scheme", f"{choice.name}:{settings}" if settings else choice.name]
    policy = choice.policy
    if policy is not None:
        made += ["--policy", str(policy.file.absolute()), "--card", str(policy.file.with_suffix(".json").absolute())]
        made += ["--onnx-runtime", str(provide_library())]
        made += [] if own_profile else ["--profile", policy.card.profile]
    return made
