"""docs/deployment.md."""

from __future__ import annotations

from pages.data import agents
from pages.markdown import code, table


def certificates() -> list[str]:
    """What is proven of every agent that comes along."""
    rows = []
    for name, card in agents("card.json").items():
        for place, (kind, one) in enumerate(card.get("certificate", {}).get("properties", {}).items()):
            parts = (one["held"], one["proven"], one["refuted"], abs(1 - one["proven"] - one["refuted"]))
            covers = card["certificate"]["sound_for"]
            shown = (code(name), covers) if place == 0 else ("", "")
            rows.append((shown[0], kind, one["boxes"], *(f"{100 * part:.1f} %" for part in parts), shown[1]))
    return table(["", "After a round trip that was", "Boxes", "Holds in the middle", "Proven", "Refuted", "Open",
                  "A proof covers every"], rows)  # fmt: skip


BLOCKS = {"docs/deployment.md": {"certificates": certificates}}
