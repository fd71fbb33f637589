"""``ccgym schemes``: list and show congestion-control schemes, and bound a policy's answers over boxes."""

from __future__ import annotations

import argparse
from typing import Any, Final

from ccgym.cli.command import Command
from ccgym.cli.common import print_table, say, say_json
from ccgym.cli.options import AS_JSON, POLICY, SEED, chosen_policy
from ccgym.units import parse_probability

_KINDS: Final = {
    "": "",
    "card": "",
    "kernel": "kernel TCP, on real paths (--backend emulated or mahimahi):",
    "quic": "QUIC by the library quinn, on real paths:",
    "program": "external programs, on real paths:",
}
"""Kinds of schemes in the order of `ccgym schemes`, by the field that only this kind has, with the text above them."""


def _rows() -> list[dict[str, Any]]:
    from ccgym.schemes import kernel, programs, quic
    from ccgym.schemes.groups import descriptions

    return [*descriptions(), *kernel.descriptions(), *quic.descriptions(), *programs.descriptions()]


def _list(arguments: argparse.Namespace) -> int:
    from ccgym.schemes.groups import GROUPS
    from ccgym.schemes.reading import KINDS

    rows = _rows()
    if arguments.json:
        say_json(rows)
        return 0
    lines: list[tuple[str, ...] | None] = []
    for kind, title in _KINDS.items():
        lines.append(None)
        if title:
            lines.append(("", "", "", title, ""))
        for row in rows:
            if kind == next((one for one in _KINDS if one in row), ""):
                parameters = ", ".join(p["name"] for p in row["parameters"])
                lines.append((row["name"], row["label"], _compared(row), row["summary"], parameters))
    print_table(("name", "label", "compared, over", "description", "parameters"), lines)
    say("")
    words = [(word, f"{group.meaning}: {', '.join(group.members())}") for word, group in GROUPS.items()]
    print_table(("word", "several schemes"), words)
    say("")
    print_table(("also", "description"), [(one.TYPED, one.MEANING) for one in KINDS])
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from ccgym.errors import SchemeNotFoundError, did_you_mean, shown

    rows = {row["name"]: row for row in _rows()}
    if arguments.name not in rows:
        raise SchemeNotFoundError(
            "unknown-scheme",
            f"there is no scheme {shown(arguments.name)}",
            expected=", ".join(rows),
            hint=did_you_mean(arguments.name, rows),
        )
    if arguments.json:
        say_json([rows[arguments.name]])
    else:
        _print_scheme(rows[arguments.name])
    return 0


def _compared(row: dict[str, Any]) -> str:
    """Return the comparisons that include a scheme, its transport, and its status if it is not the usual status."""
    if "quic" in row or "program" in row:
        return "on request"
    if "role" not in row:
        return f"default, {row['card']['profile']}" if "card" in row else "default, tcp"
    status = "" if row["status"] == "native" else f", {row['status']}"
    return f"{row['role'].replace('_', ' ')}, {row['transport']['profile']}{status}"


def _print_scheme(row: dict[str, Any]) -> None:
    """Print a scheme with its parameters; for a learned scheme also its training."""
    say(f"{row['name']}: {row['label']}")
    say(f"  {row['summary']}")
    say(f"  reference: {row['reference']}")
    say(f"  compared, over: {_compared(row)}")
    if row.get("implementation"):
        say(f"  checked against: {row['implementation']}")
    if "transport" in row:
        carried = row["transport"]
        size = f"{carried['mss']} + {carried['header']} bytes"
        source = carried["source"]["kind"]
        fed = "" if source == "greedy" else f"; source: {source}"
        say(f"  packets: {size}; initial window: {carried['initial_window']}{fed}")
    card = row.get("card")
    if card is not None:
        training = card["training"]
        facts = [f"seed {training['seed']}"] if "seed" in training else []
        facts += [f"{training['steps']:,} decisions"] if "steps" in training else []
        facts += [f"{training['wall_s'] / 60:.0f} min"] if "wall_s" in training else []
        if facts:
            say(f"  trained: {', '.join(facts)}")
        if "fraction_of_oracle" in training:
            say(f"  reward on held-out paths: {100 * training['fraction_of_oracle']:.0f} % of the oracle's")
        shape = card["policy"]
        say(f"  network: {shape['kind']}, {shape['observation_size']} features; over {card['profile']}")
    parameters = [
        (one["name"], str(one["default"]), _range(one), str(one.get("unit") or ""), one["help"])
        for one in row["parameters"]
    ]
    if parameters:
        print_table(("parameter", "default", "range", "unit", "meaning"), parameters)


def _range(parameter: dict[str, object]) -> str:
    choices, low, high = parameter.get("choices"), parameter.get("min"), parameter.get("max")
    if isinstance(choices, list) and choices:
        return ", ".join(str(choice) for choice in choices)
    if parameter.get("file"):
        return "path of a file"
    if low is None and high is None:
        return ""
    return f"{'' if low is None else low} … {'' if high is None else high}"


def _certificate(arguments: argparse.Namespace) -> int:
    from ccgym.contrib.certificate import WORDS, certify, write_to_card

    policy = chosen_policy(arguments.policy)
    found = certify(
        policy, episodes=arguments.episodes, boxes=arguments.boxes, noise=arguments.noise, seed=arguments.seed
    )
    if arguments.write:
        write_to_card(policy, found)
    if arguments.json:
        say_json(found.as_dict())
        return 0
    rows: list[tuple[Any, ...]] = [
        (
            name, str(one.boxes),
            *(f"{100 * part:.1f} %" for part in (one.held, one.proven, one.refuted, one.open)),
            {True: "pass", False: "FAIL", None: "no boxes"}[one.passed],
        )
        for name, one in found.properties.items()
    ]  # fmt: skip
    noise = f"±{100 * found.noise:g} %"
    say(f"{policy.label}: {found.decisions:,} decisions in {found.episodes} episodes, boxes of {noise}")
    print_table(("property", "boxes", "true in the middle", "proven", "refuted", "open", ""), rows)
    for name, words in WORDS.items():
        say(f"{name}: {words}")
    say(f"A proof covers every {found.sound_for}.")
    return 0


COMMAND: Final = Command(
    "schemes",
    run=_list,
    description="List the congestion-control schemes, learned ones too, and the groups.",
    options={
        **AS_JSON,
    },
    commands=(
        Command(
            "show",
            "show one scheme with its parameters",
            _show,
            options={
                "NAME": "name of the scheme",
                **AS_JSON,
            },
        ),
        Command(
            "certificate",
            "bound a policy's answers over boxes of observations",
            _certificate,
            description="""\
Bound all answers of an exported policy to observations in a box. The centers of boxes are observations after a
congested round trip, when the policy should not raise rate or window, and after a clean round trip, when it should not
lower them. "proven": boxes in which no observation violates the property; "refuted": boxes with a found violation;
"open": boxes for which the bounds are too wide for a decision.
""",
            examples="""\
  ccgym schemes certificate aurora
  ccgym schemes certificate runs/mine --noise 1%
  ccgym schemes certificate runs/mine --write          also store the result in the policy's card
""",
            options={
                **POLICY,
                "--noise FRACTION = 5%": "half the width of a box, as a fraction of its center",
                "--episodes N in 1.. = 64": "number of episodes to run the policy in",
                "--boxes N in 1.. = 500": "max boxes per property",
                **SEED,
                "--write": "write the result to the policy's card",
                **AS_JSON,
            },
            reads={"noise": parse_probability},
        ),
    ),
)
