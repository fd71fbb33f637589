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


@cache
def registry() -> Mapping[str, Mapping[str, Any]]:
    """All schemes by name: label, style, reference, summary, parameters, role, status, transport, …"""
    from ccgym import _core

    return {entry["name"]: entry for entry in json.loads(_core.schemes())}
