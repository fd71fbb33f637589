"""Builds the pages of docs/ with their tables and figures, in docs/_build, and renews what stands in git.

A page names a table by a line ``<!-- table: NAME -->`` and a figure by ``<!-- figure: NAME -->``; ``tools/pages`` makes
them, a module per page. The stub of Python's models is generated too, and stands in git. Run by ``make docs``. With
``--check`` the pages go into a temporary directory: exit status 1 when a table is unknown or cannot be made, or when
the stub is stale.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

import models
from pages import BLOCKS
from pages.markdown import ROOT
from pages.schemes import IMAGES

DOCS = ROOT / "docs"
BUILT = IMAGES.parent
STUB = ROOT / "ccgym" / "config" / "models.pyi"
MARKER = re.compile(r"^<!-- (?:table|figure): ([\w-]+) -->$", re.MULTILINE)


def sources() -> list[Path]:
    """The pages as they are written."""
    return sorted(page for page in DOCS.rglob("*.md") if BUILT not in page.parents)


def filled(page: Path, wrong: list[str]) -> str:
    """A page with its tables and figures; what cannot be made is added to ``wrong``."""
    name = page.relative_to(ROOT).as_posix()
    text, blocks = page.read_text(encoding="utf-8"), BLOCKS.get(name, {})
    wrong += [f"{name}: has no line for {one} of tools/pages" for one in blocks.keys() - set(MARKER.findall(text))]

    def block(marker: re.Match[str]) -> str:
        if marker[1] not in blocks:
            wrong.append(f"{name}: tools/pages makes no {marker[1]}, but: {', '.join(sorted(blocks)) or 'nothing'}")
            return ""
        try:
            return "\n".join(blocks[marker[1]]())
        except Exception as error:  # whatever a table is made from may be damaged: all are tried
            wrong.append(f"{name}: {marker[1]} cannot be made: {type(error).__name__}: {error}")
            return ""

    return MARKER.sub(block, text)


def moved(page: Path, text: str) -> str:
    """The text of a page whose links lead to the same files from docs/_build, one folder deeper."""

    def link(found: re.Match[str]) -> str:
        target = (page.parent / found[1].partition("#")[0]).resolve()
        built = DOCS in target.parents and (target.is_dir() or target.suffix in (".md", ".png"))
        return found[0] if built or not target.exists() else f"](../{found[1]})"

    return re.sub(r"\]\(([^#)\s][^)\s]*)\)", link, text)


def build(out: Path) -> list[str]:
    """Write all pages into a directory; returns what is wrong."""
    wrong: list[str] = []
    for old in out.rglob("*.md"):
        old.unlink()
    for page in sources():
        file = out / page.relative_to(DOCS)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(moved(page, filled(page, wrong)), encoding="utf-8")
    shutil.copytree(DOCS / "img", out / "img", dirs_exist_ok=True)
    return wrong


def main() -> int:
    """Entry point."""
    check = "--check" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        wrong = build(Path(folder) if check else BUILT)
    stub = models.module()
    if not check:
        STUB.write_text(stub, encoding="utf-8")
        print(f"pages {BUILT.relative_to(ROOT)}")
    elif STUB.read_text(encoding="utf-8") != stub:
        wrong.append(f"{STUB.relative_to(ROOT)} is stale: run `make docs`")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
