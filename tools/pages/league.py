"""docs/league.md."""

from __future__ import annotations

from functools import partial

from pages.data import kept_rows
from pages.markdown import decimals, table
from pages.schemes import named

LEAGUE_SECTIONS = {
    "ccbench_single": "One flow",
    "ccbench_cubic": "With Cubic",
    "cellular": "Cellular",
    "genet_rl3": "RL3",
    "prudentia": "Prudentia",
}
"""The sections of the league, and what its page calls them."""


def league_of(section: str) -> dict[str, dict[str, str]]:
    """The ranking of a section of the league, by scheme, from best to worst."""
    return {row["scheme"]: row for row in kept_rows("league") if row["section"] == section}


def league() -> list[str]:
    """The league's ranking over all sections, with the rating in each."""
    parts = {name: league_of(name) for name in LEAGUE_SECTIONS}
    rows = [
        (row["rank"], named(scheme), decimals(row["rating"]),
         f"[{decimals(row['rating_low'])}, {decimals(row['rating_high'])}]",
         *(decimals(part.get(scheme, {}).get("rating", "")) for part in parts.values()),
         decimals(parts["ccbench_single"].get(scheme, {}).get("worst", "")))
        for scheme, row in league_of("all").items()
    ]  # fmt: skip
    return table(["", "", "Rating", "95 %", *LEAGUE_SECTIONS.values(), "Worst tenth, one flow"], rows)


def league_games() -> list[str]:
    """Winning rates among all schemes, in percent: with ccBench's rounding / without."""
    both = [league_of(name) for name in ("ccbench_single", "ccbench_cubic")]
    order = sorted(both[0], key=lambda one: -float(both[0][one]["winning_rate"] or -1))
    keys = ("winning_rate", "winning_rate_exact")
    rows = [
        (named(scheme), *(decimals(part[scheme][key], 1, 100) for part in both for key in keys))
        for scheme in order
        if both[0][scheme]["winning_rate"] and scheme in both[1]
    ]  # fmt: skip
    return table(["", "One flow", "exact", "With Cubic", "exact"], rows)


def league_published(section: str) -> list[str]:
    """Published winning rates next to ours among the same schemes, in percent."""
    rows = [
        (row["label"] + (f" for {row['instead']}" if row["instead"] else ""),
         *(decimals(row[key], 1, 100) for key in ("published", "as_published", "exact")))
        for row in kept_rows("league-published")
        if row["section"] == section
    ]  # fmt: skip
    return table(["", "Published", "Ours, as published", "Ours, exact"], rows)


def league_weights() -> list[str]:
    """The rank of each scheme by the weight of the throughput."""
    known = {scheme: row for scheme, row in league_of("all").items() if row["weight_1"]}
    weights = [name for name in kept_rows("league")[0] if name.startswith("weight_")]
    order = sorted(known, key=lambda one: int(known[one]["weight_1"]))
    rows = [(named(scheme), *(known[scheme][weight] for weight in weights)) for scheme in order]
    return table(["", *(name.replace("weight_", "w = ") for name in weights)], rows)


BLOCKS = {
    "docs/league.md": {
        "league": league,
        "league-games": league_games,
        "league-single": partial(league_published, "ccbench_single"),
        "league-cubic": partial(league_published, "ccbench_cubic"),
        "league-weights": league_weights,
    }
}
