"""Tables and figures of schemes and agents, and a page for each scheme."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from ccgym.schemes.groups import GROUPS, descriptions
from ccgym.schemes.policies import pretrained
from pages.markdown import ROOT, between, code, decimals, percent, table
from tests.reproduction import genuine_programs as genuine

SCHEMES = descriptions()
LABELS = {scheme["name"]: scheme["label"] for scheme in SCHEMES}
CONTESTANTS = {scheme["name"]: scheme for scheme in SCHEMES if scheme.get("role", "tool") != "tool"}
"""The schemes with a separate page: all except tools and policies."""

PAGES = {
    **{name: [name] for name in ("aurora", "falcon", "genet", "indigo", "orca")},
    "muses": [name for name in pretrained() if name.startswith("muses")],
    "eagle": ["eagle", "eagle_v1", "eagle_v2"],
}
"""The policies of each page."""


@cache
def agents(file: str) -> dict[str, dict[str, Any]]:
    """Return a file of every agent that comes with ccgym, by the agent's name."""
    return {path.parent.name: json.loads(path.read_text()) for path in sorted((ROOT / "agents").glob(f"*/{file}"))}


def named(scheme: str) -> str:
    """Return a scheme's name, with the remark in parentheses from its label: `taova` has its own table."""
    _, opened, remark = LABELS.get(scheme, "").partition(" (")
    return code(scheme) + opened + remark


# --- Figures ---------------------------------------------------------------------------------------------------------

IMAGES = ROOT / ".cache" / "figures"
FIGURES = {
    **{f"schemes/{name}": ("portrait", name) for name in CONTESTANTS},
    **{f"schemes/{page}": ("portrait", names[0]) for page, names in PAGES.items()},
    **{
        f"{name}-curve": ("curves", name)
        for names in PAGES.values()
        for name in names
        if name not in ("eagle_v1", "eagle_v2")
    },
    "muses_dtree-tree": ("tree", "muses_dtree"),
    "genuine-programs": ("programs", ""),
    "windows": ("windows", ""),
    "kernel": ("table", ""),
    "quinn": ("table", ""),
}
"""The content of each figure: ``programs``, ``windows``, a ``table`` of tests/reproduction/report.py, or a figure of
``ccgym plot`` for a scheme (tools/figures.py)."""
TITLES = {
    "curves": "Learning curves of {}",
    "portrait": "{} on three calibrated paths",
    "programs": "Sending rate of each program, of ours emulated and of ours simulated, on eight paths",
    "tree": "The first questions of {}",
    "windows": "Windows on 12 Mbit/s and 40 ms: as it is, with half of the rate from 10 s on, with 1 % of loss",
}


def picture(name: str) -> Path:
    """Return the file of a figure, or of a slow table."""
    return IMAGES / f"{name}{'.md' if FIGURES[name][0] == 'table' else '.png'}"


def figure(name: str) -> list[str]:
    """Return a figure if it exists, and otherwise the command that draws it."""
    kind, subject = FIGURES[name]
    command = f"ccgym plot {kind} {subject}" if subject else f"python tools/figures.py {name}"
    file = picture(name)
    if not file.exists():
        return [f"Made by {code(command)}."]
    if kind == "table":
        return file.read_text(encoding="utf-8").splitlines()
    return [
        f"![{TITLES[kind].format(LABELS.get(subject))}](/{file.relative_to(ROOT)})",
        "",
        f"Drawn by {code(command)}.",
    ]


# --- Schemes ---------------------------------------------------------------------------------------------------------


def span(parameter: Mapping[str, Any]) -> str:
    """Return the allowed values of a parameter as text."""
    if parameter.get("choices"):
        return ", ".join(f"`{choice}`" for choice in parameter["choices"])
    return "path of a file" if parameter.get("file") else between(parameter.get("min"), parameter.get("max"))


def parameter_table(scheme: Mapping[str, Any]) -> list[str]:
    """Return the parameters of a scheme; empty if there are none."""
    rows = [
        (
            code(p["name"]) + (f" ({p['unit']})" if p.get("unit") else ""),
            code(json.dumps(p["default"])),
            span(p),
            p["help"],
        )
        for p in scheme["parameters"]
    ]
    return table(["Parameter", "Default", "Range", "Meaning"], rows) if rows else []


FAMILIES = {
    "Loss-based": "reno cubic bic htcp hybla westwood illinois yeah quic",
    "Delay-based": "vegas copa ledbat verus kestrel",
    "Model- and rate-based": "bbr bbr3 synthesized_bbr pcc vivace pcc_experimental fillp fillp_sheep oracle",
    "By forecast or table": "sprout taova",
    "Scalable, with ECN": "dctcp prague",
    "Video": "webrtc scream",
}
"""The schemes of each family, in the order of the page."""


def counts() -> dict[str, int]:
    """Return the numbers of schemes, for pages (tools/docs.py)."""
    policies = sum("card" in scheme for scheme in SCHEMES)
    return {
        "schemes": len(CONTESTANTS),
        "policies": policies,
        "all": len(CONTESTANTS) + policies,
        "default": len(GROUPS["default"].members()),
    }


def scheme_table() -> list[str]:
    """Return the schemes by family, a line each; policies last."""
    known = {scheme["name"]: scheme for scheme in SCHEMES}
    pages = {**{name: name for name in CONTESTANTS}, **{name: page for page, names in PAGES.items() for name in names}}
    families = {**FAMILIES, "Learned": " ".join(name for name, scheme in known.items() if "card" in scheme)}
    if missing := pages.keys() - set(" ".join(families.values()).split()):
        raise KeyError(f"FAMILIES lacks {', '.join(sorted(missing))}")
    lines: list[str] = []
    for family, names in families.items():
        rows = [
            (
                f"[`{name}`](/docs/schemes/{pages[name]}.md)",
                known[name]["label"],
                known[name]["summary"],
                "yes" if name in GROUPS["default"].members() else "",
            )
            for name in names.split()
        ]
        lines += [f"## {family}", "", *table(["Name", "Label", "What it does", "By default"], rows), ""]
    return lines[:-1]


def tool_sections() -> list[str]:
    """Return the schemes that are tools for measurements, with their parameters."""
    lines = []
    for scheme in SCHEMES:
        if scheme.get("role") == "tool":
            lines += [f"### `{scheme['name']}`", "", scheme["summary"], f"Reference: {scheme['reference']}.", ""]
            lines += [*parameter_table(scheme), ""]
    return lines[:-1]


def scheme_head(name: str) -> list[str]:
    """Return the content of a scheme's entry in the registry."""
    scheme = CONTESTANTS[name]
    carried = scheme["transport"]
    source = carried["source"]["kind"]
    fed = "" if source == "greedy" else f", with the source `{source}`"
    status = {"native": "from its specification or source", "reconstructed": "reconstructed from what is known of it"}
    facts = [
        f"- `{name}`: {scheme['summary']}",
        f"- Reference: {scheme['reference']}",
        *([f"- Checked against: {scheme['implementation']}"] if scheme["implementation"] else []),
        f"- Rules: {status[scheme['status']]}",
        f"- Carried by `{carried['profile']}`, packets of {carried['mss'] + carried['header']} bytes, initial window "
        f"{carried['initial_window']}{fed}, unless a flow sets others",
        f"- In the default comparison: {'yes' if scheme['role'] == 'default' else 'no; name it, or a group of it'}",
    ]
    if name in genuine.PROGRAMS:
        beyond = sum((name, path) in genuine.BEYOND for path in genuine.PATHS)
        agree = f"on {len(genuine.PATHS) - beyond} of {len(genuine.PATHS)} paths within every bound"
        place = "/docs/studies/validation.md#programs-of-the-founding-reports"
        facts.append(f"- Next to the program that Pantheon runs: {agree} ([table]({place}))")
    return facts


def policy_head(policies: Sequence[str]) -> list[str]:
    """Return the content of the cards of a page's policies."""
    own = [scheme for scheme in SCHEMES if scheme["name"] in policies]
    cards = [scheme["card"] for scheme in own]
    rows = []
    for scheme, card in zip(own, cards, strict=True):
        shape, training = card["policy"], card["training"]
        kind = "decision tree" if shape["kind"] == "tree" else shape["kind"].upper()
        trained = f"seed {training['seed']}, {training['steps']:,} decisions"
        rows.append((code(scheme["name"]), scheme["summary"], f"{kind}, {shape['observation_size']} inputs", trained))
    parity = [card["parity"] for card in cards]
    most = max(one["max_abs_difference"] for one in parity)
    return [
        *table(["Name", "What it does", "Policy", "Training"], rows),
        "",
        f"- Reference: {'; '.join(dict.fromkeys(scheme['reference'] for scheme in own))}",
        f"- Transport: {', '.join(dict.fromkeys(code(card['profile']) for card in cards))}, unless a flow sets another",
        f"- Exported and trained policy {f'differ by at most {most:.1e}' if most else 'agree exactly'} in "
        f"{sum(one['decisions'] for one in parity):,} decisions of {sum(one['episodes'] for one in parity)} held-out "
        "episodes",
    ]


# --- Agents ----------------------------------------------------------------------------------------------------------


def results(policy: str) -> list[str]:
    """Return the results of `ccgym train seeds POLICY`: a row per seed, the baselines below."""
    recorded = agents("seeds.json")[policy]
    held_out, fresh = recorded["held_out"], recorded["confirmation"]
    rows: list[Sequence[object]] = []
    for one in recorded["seeds"]:
        name = f"seed {one['seed']}" + (", the pretrained one" if one["seed"] == recorded["exported"]["seed"] else "")
        reached = one["reached_step"]
        when = ("never", "") if reached is None else (f"{one['reached_wall_s']:.0f} s", f"{reached:,}")
        shares = percent(one["best_fraction"]), percent(one["confirmed_fraction"])
        rows.append((name, *when, f"{one['wall_s']:.0f} s", *shares))
    for scheme in [name for name in held_out["fraction_of_oracle"] if name != "oracle"]:
        label = {"bbr": "BBR", "cubic": "Cubic"}.get(scheme, scheme)
        rows.append((label, "", "", "", *(percent(one["fraction_of_oracle"][scheme]) for one in (held_out, fresh))))
    last = f"best of its evaluations ({held_out['episodes']} held-out draws)"
    head = ["", f"{100 * recorded['share']:.0f} % after", "decisions by then", "whole training", last]
    machines = (one["machine"] for one in recorded["machines"])
    where = sorted({f"{machine['processor']}, {machine['cores']} cores" for machine in machines})
    lines = table([*head, f"on {fresh['episodes']} fresh draws"], rows)
    first = "Percentages are shares of the oracle's mean reward on the same draws."
    return [first, "", *lines, "", f"`{recorded['command']}`, on {'; '.join(where)}."]


def trainings(policies: Sequence[str]) -> list[str]:
    """Return the results of the recorded trainings of a page's policies, each with its curves."""
    lines: list[str] = []
    for policy in policies:
        lines += [f"### {code(policy)}", ""] if len(policies) > 1 else []
        lines += [*results(policy), ""]
        lines += [*figure(f"{policy}-curve"), ""] if f"{policy}-curve" in FIGURES else []
    return lines[:-1]


def comparison(file: str) -> list[str]:
    """Return the results of `ccgym compare trainings … --csv FILE`."""
    with (ROOT / file).open(encoding="utf-8", newline="") as text:
        found = list(csv.DictReader(text))

    def interval(row: dict[str, str], name: str) -> str:
        middle, low, high = (decimals(row[key], 1) for key in (name, f"{name}_low", f"{name}_high"))
        return f"{middle} ({low} … {high})" if row[name] else ""

    rows = [
        (code(row["name"]), row["seeds"].replace("-", "−"), interval(row, "mean"), interval(row, "gain"))
        for row in found
    ]
    (over,) = (code(row["name"]) for row in found if not row["gain"])
    return table(["", "each seed", "mean reward (95 %)", f"over {over} (95 %)"], rows)


def certificates() -> list[str]:
    """Return the certificates of all agents that come with ccgym."""
    rows = []
    for name, card in agents("card.json").items():
        for place, (kind, one) in enumerate(card.get("certificate", {}).get("properties", {}).items()):
            parts = (one["held"], one["proven"], one["refuted"], abs(1 - one["proven"] - one["refuted"]))
            shown = (code(name), card["certificate"]["sound_for"]) if place == 0 else ("", "")
            rows.append((shown[0], kind, one["boxes"], *(f"{100 * part:.1f} %" for part in parts), shown[1]))
    return table(["", "After a round trip that was", "Boxes", "Holds in the middle", "Proven", "Refuted", "Open",
                  "A proof covers every"], rows)  # fmt: skip


def training_seeds() -> list[str]:
    """Return the spread of every agent's score over the seeds of its training."""
    rows = []
    for name, recorded in agents("seeds.json").items():
        scores = {one["seed"]: one["confirmed_fraction"] for one in recorded["seeds"]}
        spread = [of(scores.values()) for of in (min, statistics.median, max)]
        fresh, exported = recorded["confirmation"], recorded["exported"]
        best = max((value, scheme) for scheme, value in fresh["fraction_of_oracle"].items() if scheme != "oracle")
        chosen = "chosen" if exported.get("asked_for") else "median"
        rows.append((
            code(name), len(scores), *map(percent, spread), f"{100 * statistics.stdev(scores.values()):.1f}",
            f"{percent(scores[exported['seed']])}, {chosen}", f"{percent(best[0])} ({best[1]})", fresh["episodes"],
        ))  # fmt: skip
    head = ["", "Seeds", "Minimum", "Median", "Maximum", "Deviation, points", "The one that comes with ccgym"]
    return table([*head, "Best baseline", "Fresh draws"], rows)


BLOCKS = {
    "docs/schemes/index.md": {"schemes": scheme_table, "tools": tool_sections},
    **{
        f"docs/schemes/{name}.md": {
            "scheme": partial(scheme_head, name),
            "portrait": partial(figure, f"schemes/{name}"),
            **({"parameters": partial(parameter_table, scheme)} if scheme["parameters"] else {}),
        }
        for name, scheme in CONTESTANTS.items()
    },
    **{
        f"docs/studies/{page}.md": {
            "trainings": partial(trainings, policies),
            **{name: partial(figure, name) for name, (kind, subject) in FIGURES.items()
               if kind == "tree" and subject in policies},
        }
        for page, policies in PAGES.items()
    },
    "docs/studies/validation.md": {
        name: partial(figure, name) for name, (kind, _) in FIGURES.items() if kind in ("programs", "windows", "table")
    },
    **{
        f"docs/schemes/{page}.md": {
            "scheme": partial(policy_head, policies),
            "parameters": lambda: parameter_table(next(scheme for scheme in SCHEMES if "card" in scheme)),
            "portrait": partial(figure, f"schemes/{page}"),
        }
        for page, policies in PAGES.items()
    },
    "docs/guides/deploy.md": {"certificates": certificates},
    "docs/studies/stress-tests.md": {"training-seeds": training_seeds},
}  # fmt: skip
BLOCKS["docs/studies/genet.md"]["genet-comparison"] = partial(comparison, "docs/data/genet.csv")
