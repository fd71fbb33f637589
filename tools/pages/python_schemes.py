"""docs/python-schemes.md."""

from __future__ import annotations

from pages.markdown import ROOT


def example() -> list[str]:
    """The whole of examples/aimd.py."""
    return ["```python", *(ROOT / "examples" / "aimd.py").read_text(encoding="utf-8").splitlines(), "```"]


BLOCKS = {"docs/python-schemes.md": {"example": example}}
