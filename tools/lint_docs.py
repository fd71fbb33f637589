"""Checks the links of every page: the file is there, the heading is there, and docs/index.md leads to each page.

Anchors are those that GitHub makes of headings. Exit status 1 with a list of what is wrong. Run by ``make lint``.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]


def prose(page: Path) -> str:
    """A page without its blocks and spans of code."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(`+)[^\n]*?[^`]\1(?!`)", "", text)


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page: of its headings as GitHub writes them, and its own."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r"<\w+ (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.replace("`", "").replace("*", "").lower()).replace(" ", "-")
        count = 0
        while (unique := f"{slug}-{count}" if count else slug) in found:
            count += 1
        found.add(unique)
    return found


def links(page: Path) -> list[str]:
    """Where a page links to, but for other sites."""
    text = prose(page)
    targets = re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", text) + re.findall(
        r"^\[[^]]+\]: +(\S+)", text, re.MULTILINE
    )
    return [unquote(one) for one in targets if not re.match(r"[a-z]+:", one)]


def broken(page: Path) -> list[str]:
    """What is wrong with the links of a page."""
    found = []
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            found.append(f"{page.relative_to(ROOT)}: no such file: {link}")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            found.append(f"{page.relative_to(ROOT)}: no such heading: {link}")
    return found


def unreachable() -> list[str]:
    """Pages to which no links lead from docs/index.md; a link to a folder leads to all of its pages."""
    reached: set[Path] = set()
    todo = [ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop()
        todo += page.glob("*.md") if page.is_dir() else ()
        if page not in reached and page.suffix == ".md" and page.is_file():
            reached.add(page)
            todo += [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
    return [f"{page.relative_to(ROOT)}: docs/index.md does not lead to it" for page in DOCS if page not in reached]


def main() -> int:
    """Entry point."""
    wrong = [line for page in PAGES for line in broken(page)] + unreachable()
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
