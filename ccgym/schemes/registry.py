"""The native registry of schemes, seen from Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

POLICY: Final = "policy"
"""The parameter of the scheme ``learned`` that names its policy."""
NOT_TYPED: Final = (POLICY, "expert_window")
"""Those of its parameters that one does not set of a policy: its name says the first, and a policy needs no teacher."""

MARKERS: Final = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "p", "h", "*")
"""Markers to choose from where schemes would be drawn alike."""


_STYLES: Final = {
    "reno": ("saddlebrown", "v"),
    "cubic": ("black", "*"),
    "vegas": ("slategray", "h"),
    "bbr": ("darkgoldenrod", "^"),
    "copa": ("red", "o"),
    "synthesized_bbr": ("olive", "p"),
    "fixed_window": ("gray", "s"),
    "fixed_rate": ("dimgray", "D"),
    "oracle": ("forestgreen", "X"),
    "learned": ("chocolate", "*"),
}
"""Color and marker of schemes whose curves should be known again, dark enough to be read on white (contrast of 3)."""
_FREE: Final = [
    (color, marker)
    for marker in ("D", "X", "<", ">", "P")
    for color in ("crimson", "indigo", "darkslategray", "mediumblue", "teal")
]
"""The others take these in the order of the registry."""


def _styled(entries: list[dict[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """The entries by name, each with color and marker."""
    free = iter(_FREE)
    styles = [_STYLES.get(entry["name"]) or next(free) for entry in entries]
    return {
        entry["name"]: {**entry, "color": color, "marker": marker}
        for entry, (color, marker) in zip(entries, styles, strict=True)
    }


@cache
def registry() -> Mapping[str, Mapping[str, Any]]:
    """All schemes by name: label, style, reference, summary, parameters, role, status, transport, …"""
    from ccgym import _core

    return _styled(json.loads(_core.schemes()))
