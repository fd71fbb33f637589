"""docs/agents.md: the vocabulary of agents."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from ccgym.config.agent import vocabulary
from pages.markdown import ROOT, between, code, sentence, table
from pages.schema import keys, kinds, parameter


def source(row: dict[str, Any]) -> str:
    """Who published it."""
    text: str = row["source"]
    return "" if text == "none" else text.removeprefix("none: ")


def signals() -> list[str]:
    """What an agent can see."""
    rows = vocabulary()["signals"]
    return table(
        ["Signal", "Unit", "Range", "Formula"],
        [
            (code(r["name"]), "" if r["unit"] == "1" else r["unit"], between(r["low"], r["high"]), r["formula"])
            for r in rows
        ],
    )


def words(section: str, head: str) -> list[str]:
    """A section of the vocabulary that has names and formulas."""
    return table([head, "Formula"], [(code(row["name"]), row["formula"]) for row in vocabulary()[section]])


def maps() -> list[str]:
    """What an agent can do."""
    rows = vocabulary()["maps"]
    return table(["Map", "What it does", "After"], [(code(r["name"]), r["formula"], source(r)) for r in rows])


def terms() -> list[str]:
    """What an agent can be rewarded for."""
    rows = []
    for row in vocabulary()["terms"]:
        name = code(row["name"]) + (" (truth)" if row["needs_truth"] else "")
        given = "; ".join(parameter(key, part, "default" not in part) for key, part in row["parameters"].items())
        rows.append((name, row["formula"], given, source(row)))
    return table(["Term", "Value", "Parameters", "After"], rows)


def configurations() -> list[str]:
    """The agents whose configurations come with ccgym: the first sentence of each file's head."""
    files = sorted((ROOT / "configs").glob("*.yaml"))
    heads = [re.split(r"(?m)^[^#]", file.read_text(), maxsplit=1)[0].replace("#", "") for file in files]
    links = [f"[`{file.stem}`](../configs/{file.name})" for file in files]
    return table(["Configuration", ""], zip(links, map(sentence, heads), strict=True))


BLOCKS = {
    "docs/agents.md": {
        "signals": signals,
        "functions": partial(words, "functions", "Function"),
        "transforms": partial(words, "transforms", "Key"),
        "maps": maps,
        "terms": terms,
        "clocks": partial(kinds, "Clock"),
        "starts": partial(kinds, "Start"),
        "guards": partial(kinds, "Guard"),
        "experts": partial(kinds, "Expert"),
        "observation": partial(keys, "Observation"),
        "configurations": configurations,
        "action": partial(keys, "Action"),
    }
}
