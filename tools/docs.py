"""Writes the documentation that follows from a registry; lint fails when it is stale.

Only what stands between ``<!-- begin NAME … -->`` and ``<!-- end NAME -->`` is; the rest of a page is written by hand.
What is written is in ``tools/pages``, a module per page. Run by ``make docs``; ``--check`` only says whether anything
would change.
"""

from __future__ import annotations

import re
import sys
from functools import partial

import models
from pages import BLOCKS, errors
from pages.markdown import ROOT


def filled(page: str) -> str:
    """A page with its blocks as they should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, block in BLOCKS[page].items():
        begin, end = f"<!-- begin {name}: written by `make docs` -->\n", f"<!-- end {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise SystemExit(f"{page}: expected one block that begins with {begin.strip()} and ends with {end}")
        whole = "\n".join([begin, *block(), "", end])
        text = pattern.sub(lambda _, whole=whole: whole, text)
    return text


PAGES = {
    "ccgym/config/models/__init__.py": models.package,
    **{f"ccgym/config/models/{name}.py": partial(models.module, name) for name in models.MODULES},
    errors.SNAPSHOT: errors.snapshot,
    **{name: partial(filled, name) for name in BLOCKS},
}


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
