"""Figures of pages that ``make docs`` draws (tools/figures.py). A page shows what is drawn."""

from __future__ import annotations

from functools import partial

from ccgym.schemes.groups import descriptions
from pages.markdown import ROOT, code
from pages.schemes import contestants
from pages.training_records import PAGES

IMAGES = ROOT / "docs" / "_build" / "img"

LABELS = {scheme["name"]: scheme["label"] for scheme in descriptions()}
POLICIES = [name for names in PAGES.values() for name in names if name not in ("eagle_v1", "eagle_v2")]

FIGURES = {
    **{f"schemes/{scheme['name']}": ("portrait", scheme["name"]) for scheme in contestants()},
    **{f"{name}-curve": ("curves", name) for name in POLICIES},
    **{f"{name}-portrait": ("portrait", name) for name in ("eagle", "indigo")},
    "muses_dtree-tree": ("tree", "muses_dtree"),
    "genuine-programs": ("programs", ""),
    "windows": ("windows", ""),
}
"""What each shows: ``programs``, ``windows``, or what ``ccgym plot`` draws, and of which scheme."""

TITLES = {
    "curves": "Learning curves of {}",
    "portrait": "{} on three calibrated paths",
    "programs": "Sending rate of each program, of ours emulated and of ours simulated, on eight paths",
    "tree": "The first questions of {}",
    "windows": "Windows on 12 Mbit/s and 40 ms: as it is, with half of the rate from 10 s on, with 1 % of loss",
}


def figure(name: str, folder: str = "") -> list[str]:
    """A figure where it is drawn, and the command that draws it otherwise; ``folder`` leads up to docs."""
    kind, subject = FIGURES[name]
    command = (
        f"ccgym plot {kind} {subject}" if kind in ("curves", "portrait", "tree") else f"python tools/figures.py {name}"
    )
    if not (IMAGES / f"{name}.png").exists():
        return [f"Figure: {code(command)}."]
    return [f"![{TITLES[kind].format(LABELS.get(subject))}]({folder}img/{name}.png)", "", f"Drawn by {code(command)}."]


BLOCKS = {
    **{
        f"docs/schemes/{s['name']}.md": {"portrait": partial(figure, f"schemes/{s['name']}", "../")}
        for s in contestants()
    },
    **{
        f"docs/{page}.md": {
            name: partial(figure, name) for name, (_, subject) in FIGURES.items() if subject in policies
        }
        for page, policies in PAGES.items()
    },
    "docs/validation.md": {name: partial(figure, name) for name in ("genuine-programs", "windows")},
}
