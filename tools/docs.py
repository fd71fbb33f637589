"""Hooks of the documentation site (mkdocs.yml): pages of the tree, tables, figures, and links to files of the tree.

A page names a table by a line ``<!-- table: NAME -->`` and a figure by ``<!-- figure: NAME -->``; ``tools/pages``
makes them, a module per page, or ``docs/data/tables/NAME.csv`` has measured values. Each error is a warning,
and ``mkdocs build --strict`` fails on it: a marker without a table, a table without a marker, a broken link or
anchor, a page that is not in the navigation, a stale number of schemes. As a program it renews these numbers (``make
format``).
"""

from __future__ import annotations

import csv
import logging
import os
import re
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pages import BLOCKS
from pages.markdown import ROOT, table
from pages.schemes import IMAGES, counts

DOCS = ROOT / "docs"
TREE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "contribute/architecture.md",
    "CONTRIBUTING.md": "contribute/index.md",
    "CHANGELOG.md": "contribute/changelog.md",
    "agents/README.md": "reference/agents.md",
    "traces/README.md": "reference/traces.md",
}
"""Pages outside docs/, and their places in the site."""
MARKER = re.compile(r"^<!-- (?:table|figure): ([\w-]+) -->$", re.MULTILINE)
COUNT = re.compile(r"(<!-- count: (\w+) -->)\d+")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
TEMPLATE = ("What it does", "Rules", "Parameters", "On three paths", "How ours was checked")
"""The sections of the page of a scheme; "Parameters" is missing for a scheme without parameters."""
ROLE = re.compile(r":[a-z]+:(<code>)(?:~[\w.]*\.)?(\w)")
LINK = re.compile(r"\]\(([^#)\s:]+)(#[^)\s]*)?\)")

log = logging.getLogger("mkdocs.hooks.docs")


def place(file: Path) -> str:
    """Return the address of a file in the site, from its root."""
    for folder, there in ((DOCS, ""), (IMAGES, "img/")):
        if folder in file.parents:
            return there + file.relative_to(folder).as_posix()
    name = file.relative_to(ROOT).as_posix()
    return TREE.get(name) or f"tree/{name}" + (".txt" if file.suffix == ".md" else "")


def counted(text: str) -> str:
    """Return a page with current numbers of schemes, each after ``<!-- count: NAME -->``."""
    return COUNT.sub(lambda found: f"{found[1]}{counts()[found[2]]}", text)


def target_of(page: Path, link: re.Match[str]) -> Path | None:
    """Return the file of the tree that a link of a page leads to; links with a leading slash start at the root."""
    target = (ROOT / link[1][1:] if link[1].startswith("/") else page.parent / link[1]).resolve()
    return target if ROOT in target.parents and target.is_file() else None


@cache
def filled(name: str, text: str) -> str:
    """Return a page with its tables and figures; log a warning for each that cannot be made."""
    blocks = BLOCKS.get(name, {})
    if counted(text) != text:
        log.warning("%s: a number of schemes is stale: run `make format`", name)
    for one in sorted(blocks.keys() - set(MARKER.findall(text))):
        log.warning("%s: has no line for %s of tools/pages", name, one)

    sections = [title for title in TEMPLATE if title != "Parameters" or "parameters" in blocks]
    if "scheme" in blocks and (found := HEADING.findall(text)) != sections:
        log.warning("%s: has the sections %s, expected: %s", name, ", ".join(found), ", ".join(sections))

    def block(marker: re.Match[str]) -> str:
        measured = DOCS / "data" / "tables" / f"{marker[1]}.csv"
        if measured.exists():
            with measured.open(encoding="utf-8", newline="") as rows:
                head, *measured_rows = csv.reader(rows)
                return "\n".join(table(head, measured_rows))
        if marker[1] not in blocks:
            log.warning("%s: tools/pages makes no %s, but: %s", name, marker[1], ", ".join(sorted(blocks)) or "nothing")
            return ""
        try:
            return "\n".join(blocks[marker[1]]())
        except Exception as error:  # the data of a table may be damaged: continue with the other tables
            log.warning("%s: %s cannot be made: %s: %s", name, marker[1], type(error).__name__, error)
            return ""

    return MARKER.sub(block, text)


def linked(page: Path, text: str) -> str:
    """Return the text of a page with links in the form of the site."""

    def link(found: re.Match[str]) -> str:
        target = target_of(page, found)
        if target is None:
            return found[0]
        return f"]({os.path.relpath(place(target), Path(place(page)).parent)}{found[2] or ''})"

    return LINK.sub(link, text)


def source(page: File) -> Path:
    """Return the source file in the tree of a page of the site."""
    outside = {there: ROOT / name for name, there in TREE.items()}
    return outside.get(page.src_uri, DOCS / page.src_uri)


def on_config(config: MkDocsConfig) -> None:
    """Put every page of schemes and studies into the navigation."""
    for part in config.nav or ():
        for section, pages in part.items():
            folder = DOCS / section.lower()
            if len(pages) == 1 and folder.is_dir():
                pages += sorted(place(page) for page in folder.glob("*.md") if page.name != "index.md")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the figures, and the pages and files outside docs/ that pages link to."""
    for name, there in TREE.items():
        files.append(File.generated(config, there, content=(ROOT / name).read_text(encoding="utf-8")))
    for image in sorted(IMAGES.rglob("*.png")):
        files.append(File.generated(config, f"img/{image.relative_to(IMAGES)}", abs_src_path=str(image)))
    outside: set[Path] = set()
    for page in files.documentation_pages():
        file = source(page)
        text = filled(file.relative_to(ROOT).as_posix(), page.content_string)
        outside |= {target for found in LINK.finditer(text) if (target := target_of(file, found))}
    for target in sorted(outside):
        if place(target).startswith("tree/"):
            files.append(File.generated(config, place(target), abs_src_path=str(target)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in tables and figures."""
    file = source(page.file)
    return linked(file, filled(file.relative_to(ROOT).as_posix(), markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show names that docstrings mark by a role of reStructuredText as code."""
    return ROLE.sub(r"\1\2", html)


if __name__ == "__main__":
    for page in (*DOCS.rglob("*.md"), *(ROOT / name for name in TREE)):
        written = page.read_text(encoding="utf-8")
        if counted(written) != written:
            page.write_text(counted(written), encoding="utf-8")
