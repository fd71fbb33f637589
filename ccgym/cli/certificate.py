"""``ccgym certificate``: what an exported policy is proven to do, or not to do, over boxes of observations."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.common import HelpFormatter, print_table, say
from ccgym.errors import ConfigError
from ccgym.units import parse_probability

if TYPE_CHECKING:
    from ccgym.schemes.policies import LearnedPolicy

_DESCRIPTION: Final = """\
Bound all answers of an exported policy while its observation is anywhere in a box: around observations that it made
after a congested round trip, where it should not raise rate or window, and after a clean one, where it should not lower
them. "proven" are boxes in which no observation breaks the property, "refuted" those in which one was found that does,
"open" those for which the bounds are too wide to tell.
"""

_EXAMPLES: Final = """\
examples:
  ccgym certificate aurora
  ccgym certificate runs/mine --noise 1%
  ccgym certificate runs/mine --write          … and keep it in the policy's card
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``certificate``."""
    parser = commands.add_parser(
        "certificate",
        help="bound what a policy does over boxes of observations",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("policy", metavar="POLICY", help="a pretrained policy, a run directory or a .onnx file")
    parser.add_argument("--noise", default="5%", help="half the width of a box, of its middle (default: 5%%)")
    parser.add_argument("--episodes", type=int, default=64, metavar="N", help="episodes that are decided (default: 64)")
    parser.add_argument("--boxes", type=int, default=500, metavar="N", help="most boxes per property (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of paths and draws (default: 1)")
    parser.add_argument("--write", action="store_true", help="put the result into the policy's card")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_certificate)


def _certificate(args: argparse.Namespace) -> int:
    from ccgym.contrib.certificate import WORDS, certify, write_to_card

    for option in ("episodes", "boxes"):
        if getattr(args, option) < 1:
            raise ConfigError("out-of-range", str(getattr(args, option)), where=f"--{option}", expected="1 or more")
    policy = _policy(args.policy)
    noise = parse_probability(args.noise)
    found = certify(policy, episodes=args.episodes, boxes=args.boxes, noise=noise, seed=args.seed)
    if args.write:
        write_to_card(policy, found)
    if args.json:
        say(json.dumps(found.as_dict(), indent=1))
        return 0
    rows: list[tuple[Any, ...]] = [
        (
            name, str(one.boxes),
            *(f"{100 * part:.1f} %" for part in (one.held, one.proven, one.refuted, one.open)),
            {True: "pass", False: "FAIL", None: "never there"}[one.passed],
        )
        for name, one in found.properties.items()
    ]  # fmt: skip
    say(f"{policy.label}: {found.decisions:,} decisions in {found.episodes} episodes, boxes of ±{100 * noise:g} %")
    print_table(("property", "boxes", "holds in the middle", "proven", "refuted", "open", ""), rows)
    for name, words in WORDS.items():
        say(f"{name}: {words}")
    say(f"A proof covers every {found.sound_for}.")
    return 0


def _policy(text: str) -> LearnedPolicy:
    from ccgym.schemes import policies

    found = policies.find(text, "POLICY")
    if found is None:
        raise ConfigError("unknown-policy",
            f"no policy is called {text}", where="POLICY",
            expected=f"{', '.join(policies.pretrained())}, a run directory or a .onnx file",
        )  # fmt: skip
    return found
