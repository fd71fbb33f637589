"""The native registry of schemes in Python."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

POLICY: Final = "policy"
"""The parameter of the scheme ``learned`` with the name of its policy."""
NOT_TYPED: Final = (POLICY, "expert_window")
"""Parameters of ``learned`` that users do not set: the policy is given by its name, and needs no teacher."""

MARKERS: Final = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "p", "h", "*")
"""Markers to distinguish schemes with the same color."""

COLORS: Final = ("black", "deeppink", "darkslateblue", "dodgerblue", "darkred", "forestgreen")
"""Colors that also differ for readers with color blindness, and are readable on white (contrast of 3)."""

_STYLES: Final = {
    "reno": ("saddlebrown", "v"),
    "cubic": ("black", "*"),
    "vegas": ("slategray", "h"),
    "bbr": ("darkgoldenrod", "^"),
    "copa": ("red", "o"),
    "synthesized_bbr": ("olive", "p"),
    "fixed_window": ("gray", "o"),
    "fixed_rate": ("black", "s"),
    "oracle": ("forestgreen", "X"),
    "learned": ("chocolate", "*"),
}
"""Fixed color and marker of schemes that readers should recognize."""


def _styled(entries: list[dict[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Return the entries by name, with color and marker: the next free pair, in the order of the registry."""
    pairs = zip(COLORS * 5, ("D", "X", "<", ">", "P") * 6, strict=True)  # 5 and 6 share no factor: no pair twice
    free = (pair for pair in pairs if pair not in _STYLES.values())
    styles = [_STYLES.get(entry["name"]) or next(free) for entry in entries]
    return {
        entry["name"]: {**entry, "color": color, "marker": marker}
        for entry, (color, marker) in zip(entries, styles, strict=True)
    }


@cache
def registry() -> Mapping[str, Mapping[str, Any]]:
    """Return all schemes by name: label, style, reference, summary, parameters, role, status, transport, …"""
    from ccgym import _core

    return _styled(json.loads(_core.schemes()))


def color_like(name: str) -> str:
    """Return the color of ccgym's scheme of this name, else a color derived from the name."""
    return str(registry()[name]["color"]) if name in registry() else color_by_hash(name)


def color_by_hash(name: str) -> str:
    """Return a color derived from a name."""
    return COLORS[zlib.crc32(name.encode()) % len(COLORS)]
