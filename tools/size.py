"""Print the number of lines of each part of the tree, with its maximum in ``size.toml``; ``--check`` fails above one.

A part is a folder: its Rust and Python files are counted, with files in folders of tests as a separate part.
Markdown files are counted, too, with ``docs`` as a separate part. The tree is everything in Git, in MB.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {".rs": "code", ".py": "code", ".md": "docs"}


def part_of(path: str) -> str:
    """Return the part of a file: its crate or package, its tests, or the pages; empty for other files."""
    folders, kind = path.split("/"), KINDS.get(Path(path).suffix)
    if kind is None:
        return ""
    if kind == "docs":
        return "docs" if folders[0] == "docs" else "pages elsewhere"
    name = "/".join(folders[:2]) if folders[0] in ("crates", "ccgym") else folders[0] if len(folders) > 1 else "ccgym"
    if name.endswith(".py"):
        name = "ccgym"
    return f"{name} tests" if "tests" in folders[1:-1] else name


def main() -> int:
    """Print the table, and return the exit status."""
    budget = tomllib.loads((ROOT / "size.toml").read_text(encoding="utf-8"))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines: Counter[str] = Counter()
    size = 0
    for path in filter(None, listed.stdout.split("\0")):
        file = ROOT / path
        if file.is_symlink() or not file.is_file():
            continue
        content = file.read_bytes()
        size += len(content)
        if part := part_of(path):
            lines[part] += content.count(b"\n")
    found = {**dict(sorted(lines.items())), "tree in MB": -(-size // 10**6)}
    exceeded = [part for part, count in found.items() if count > budget.get(part, 0)]
    for part, count in found.items():
        print(f"{part:24} {count:7} of {budget.get(part, 0):7}{'  EXCEEDED' if part in exceeded else ''}")
    print(f"{'code and tests':24} {sum(lines.values()) - lines['docs'] - lines['pages elsewhere']:7}")
    return int("--check" in sys.argv[1:] and bool(exceeded))


if __name__ == "__main__":
    raise SystemExit(main())
