"""Writes the documentation pages that follow from a registry; a test fails when they are stale.

Run by ``make docs``; ``--check`` only says whether anything would change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ccgym import _core

ROOT = Path(__file__).resolve().parent.parent


def cell(text: object) -> str:
    """A value inside a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def span(parameter: dict[str, Any]) -> str:
    """What a parameter may be, in words."""
    if parameter.get("choices"):
        return ", ".join(f"`{choice}`" for choice in parameter["choices"])
    low, high = parameter.get("min"), parameter.get("max")
    if low is None and high is None:
        return ""
    return f"{low:g} … {high:g}" if low is not None and high is not None else f"≥ {low:g}" if low is not None else ""


def schemes_page() -> str:
    """The page on schemes, from the registry."""
    schemes = json.loads(_core.schemes())
    lines = [
        "# Schemes",
        "",
        "<!-- Written by `make docs` from the registry in schemes/src/registry.rs: change it there. -->",
        "",
        "Every congestion-control algorithm, by the name that `--schemes` and `simulate(flows=[…])` take. A parameter",
        'is set as in `{"scheme": "cubic", "params": {"beta": 0.7}}`.',
        "",
        "| Name | | After |",
        "|---|---|---|",
    ]
    lines += [f"| [`{s['name']}`](#{s['name']}) | {cell(s['summary'])} | {cell(s['reference'])} |" for s in schemes]
    for scheme in schemes:
        lines += ["", f"## {scheme['name']}", "", f"**{scheme['label']}.** {scheme['summary']}", ""]
        lines += [f"After: {scheme['reference']}"]
        if scheme["parameters"]:
            lines += ["", "| Parameter | Default | Range | |", "|---|---|---|---|"]
        for p in scheme["parameters"]:
            unit = f" ({p['unit']})" if p.get("unit") else ""
            default = cell(json.dumps(p["default"]))
            lines.append(f"| `{p['name']}`{unit} | `{default}` | {cell(span(p))} | {cell(p['help'])} |")
    return "\n".join(lines) + "\n"


PAGES = {"docs/schemes.md": schemes_page}


def stale() -> dict[str, str]:
    """The pages whose text is not what it should be, with what it should be."""
    fresh = {name: page() for name, page in PAGES.items()}
    return {
        name: text
        for name, text in fresh.items()
        if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text
    }


def main() -> int:
    """Entry point."""
    changed = stale()
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{name} is stale: run `make docs`" for name in changed))
        return int(bool(changed))
    for name, text in changed.items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
