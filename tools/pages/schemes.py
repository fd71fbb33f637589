"""docs/schemes.md, and a page for each scheme."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from ccgym.schemes.groups import descriptions
from pages.markdown import code, table
from pages.schema import span
from tests.reproduction import genuine_programs as genuine


def training_lines(card: dict[str, Any]) -> list[str]:
    """How a policy was trained, in sentences; its card has the rest."""
    training, parity = card["training"], card["parity"]
    shape, profile = card["policy"], card["profile"]
    kind = "Decision tree" if shape["kind"] == "tree" else shape["kind"].upper()
    lines = [f"{kind} with {shape['observation_size']} inputs; over `{profile}` unless a flow asks for"
             " another transport."]  # fmt: skip
    if {"steps", "seed"} <= training.keys():
        lines.append(f"Trained with seed {training['seed']} for {training['steps']:,} decisions.")
    if parity:
        lines.append(
            f"As exported it differs from the trained one by {parity['max_abs_difference']:.1e} at most, in "
            f"{parity['decisions']:,} decisions over {parity['episodes']} held-out episodes."
        )
    return lines


def named(scheme: str) -> str:
    """A scheme as one types it, with what its label says in parentheses: `taova` has an own table."""
    labels = {one["name"]: one["label"] for one in descriptions()}
    _, opened, remark = labels.get(scheme, "").partition(" (")
    return code(scheme) + opened + remark


def parameter_table(scheme: Mapping[str, Any]) -> list[str]:
    """What can be set of a scheme; nothing where it has no parameters."""
    rows = [
        (
            code(p["name"]) + (f" ({p['unit']})" if p.get("unit") else ""),
            code(json.dumps(p["default"])),
            span(p),
            p["help"],
        )
        for p in scheme["parameters"]
    ]
    return table(["Parameter", "Default", "Range", ""], rows) if rows else []


def contestants() -> list[dict[str, Any]]:
    """The schemes that have a page of their own: neither tools nor policies."""
    return [scheme for scheme in descriptions() if scheme.get("role", "tool") != "tool"]


def transport_words(scheme: Mapping[str, Any]) -> str:
    """How a scheme is carried, in a few words."""
    carried = scheme["transport"]
    size = carried["mss"] + carried["header"]
    source = carried["source"]["kind"]
    fed = "" if source == "greedy" else f", with the source `{source}`"
    return f"`{carried['profile']}`, packets of {size} bytes, initial window {carried['initial_window']}{fed}"


def scheme_table() -> list[str]:
    """The schemes, a line each."""
    rows = [
        (f"[`{s['name']}`](schemes/{s['name']}.md)", s["label"], s["summary"], "yes" if s["role"] == "default" else "")
        for s in contestants()
    ]
    return table(["Name", "", "", "By default"], rows)


def policy_table() -> list[str]:
    """The policies that come with ccgym, a line each."""
    cards = [scheme for scheme in descriptions() if "card" in scheme]
    rows = [(code(s["name"]), s["label"], s["summary"], s["reference"]) for s in cards]
    details = [line for s in cards for line in ("", f"**{s['label']}.** " + " ".join(training_lines(s["card"])))]
    settings = ["", "Each takes:", "", *parameter_table(cards[0])] if cards else []
    return [*table(["Name", "", "", "After"], rows), *details, *settings]


def tool_sections() -> list[str]:
    """The schemes that measure something else, with their parameters."""
    lines = []
    for scheme in descriptions():
        if scheme.get("role") == "tool":
            lines += [f"### `{scheme['name']}`", "", scheme["summary"], f"After: {scheme['reference']}.", ""]
            lines += [*parameter_table(scheme), ""]
    return lines[:-1]


def scheme_head(name: str) -> list[str]:
    """What a scheme's entry in the registry says."""
    (scheme,) = [one for one in contestants() if one["name"] == name]
    status = {"native": "from its specification or source", "reconstructed": "reconstructed from what is known of it"}
    facts = [
        f"- `{name}`: {scheme['summary']}",
        f"- After: {scheme['reference']}",
        *([f"- Checked against: {scheme['implementation']}"] if scheme["implementation"] else []),
        f"- Rules: {status[scheme['status']]}",
        f"- Carried by {transport_words(scheme)}, unless a flow says otherwise",
        f"- In the default comparison: {'yes' if scheme['role'] == 'default' else 'no; name it, or a group of it'}",
    ]
    if name in genuine.PROGRAMS:
        beyond = sum((name, path) in genuine.BEYOND for path in genuine.PATHS)
        agree = f"on {len(genuine.PATHS) - beyond} of {len(genuine.PATHS)} paths within every bound"
        place = "../validation.md#programs-of-the-founding-reports"
        facts.append(f"- Next to the program that Pantheon runs: {agree} ([table]({place}))")
    return [*facts, "", *parameter_table(scheme)]


BLOCKS = {
    "docs/schemes.md": {"schemes": scheme_table, "policies": policy_table, "tools": tool_sections},
    **{f"docs/schemes/{s['name']}.md": {"scheme": partial(scheme_head, s["name"])} for s in contestants()},
}
