"""What `ccgym train seeds` found of each agent, on the page of each."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from ccgym.schemes.policies import pretrained
from pages.markdown import ROOT, code, decimals, percent, table


def results(policy: str) -> list[str]:
    """What `ccgym train seeds POLICY` found: a row per seed, the baselines below."""
    file = ROOT / f"agents/{policy}/seeds.json"
    recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    held_out, fresh = recorded["held_out"], recorded["confirmation"]
    goal = f"{100 * recorded['share']:.0f} %"
    rows: list[Sequence[object]] = []
    for one in recorded["seeds"]:
        name = f"seed {one['seed']}" + (", the pretrained one" if one["seed"] == recorded["exported"]["seed"] else "")
        reached = one["reached_step"]
        when = ("never", "") if reached is None else (f"{one['reached_wall_s']:.0f} s", f"{reached:,}")
        shares = percent(one["best_fraction"]), percent(one["confirmed_fraction"])
        rows.append((name, *when, f"{one['wall_s']:.0f} s", *shares))
    for scheme in [name for name in held_out["fraction_of_oracle"] if name != "oracle"]:
        label = {"bbr": "BBR", "cubic": "Cubic"}.get(scheme, scheme)
        shares = percent(held_out["fraction_of_oracle"][scheme]), percent(fresh["fraction_of_oracle"][scheme])
        rows.append((label, "", "", "", *shares))
    last = f"best of its evaluations ({held_out['episodes']} held-out draws)"
    head = ["", f"{goal} after", "decisions by then", "whole training", last, f"on {fresh['episodes']} fresh draws"]
    machines = (one["machine"] for one in recorded["machines"])
    where = sorted({f"{machine['processor']}, {machine['cores']} cores" for machine in machines})
    lines = ["Percentages are shares of the oracle's mean reward on the same draws.", "", *table(head, rows)]
    return [*lines, "", f"`{recorded['command']}`, on {'; '.join(where)}."]


def comparison(file: str) -> list[str]:
    """What `ccgym compare trainings … --csv FILE` found."""
    with (ROOT / file).open(encoding="utf-8", newline="") as text:
        found = list(csv.DictReader(text))

    def interval(row: dict[str, str], name: str) -> str:
        if not row[name]:
            return ""
        middle, low, high = (decimals(row[key], 1) for key in (name, f"{name}_low", f"{name}_high"))
        return f"{middle} ({low} … {high})"

    shares = any(row["closed"] for row in found)
    rows = [
        (
            code(row["name"]),
            row["seeds"].replace("-", "−"),
            interval(row, "mean"),
            interval(row, "gain"),
            *([decimals(row["closed"], 0, 100) + " %" if row["closed"] else ""] if shares else []),
        )
        for row in found
    ]
    (over,) = (code(row["name"]) for row in found if not row["gain"])
    headings = ["", "each seed", "mean reward (95 %)", f"over {over} (95 %)"]
    return table([*headings, *(["of the gap to the oracle"] if shares else [])], rows)


PAGES = {
    "aurora": ["aurora"],
    "falcon": ["falcon"],
    "genet": ["genet"],
    "indigo": ["indigo"],
    "muses": [name for name in pretrained() if name.startswith("muses")],
    "orca": ["orca"],
    "eagle": ["eagle", "eagle_v1", "eagle_v2"],
}
"""The policies of each page."""

BLOCKS = {
    f"docs/{page}.md": {f"{name}-results": partial(results, name) for name in policies}
    for page, policies in PAGES.items()
}
BLOCKS["docs/genet.md"]["genet-comparison"] = partial(comparison, "docs/data/genet.csv")
