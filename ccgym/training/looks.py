"""How a policy is named and drawn beside other schemes: part of its card."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

MARKERS: Final = ".,ov^<>1234+x|_8spP*hHXDd"
"""Matplotlib's markers of one letter."""


class Looks(BaseModel):
    """Name for people, colour and marker, and where the policy comes from. All of it may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = ""
    """Name in tables and legends; by default the policy's name with a capital."""
    colour: Annotated[str, Field(min_length=1)] = "darkorange"
    """Colour by a name that matplotlib knows, or ``#rrggbb``."""
    marker: Annotated[str, Field(pattern=f"^[{MARKERS}]$")] = "*"
    """Marker by matplotlib's one-letter code."""
    summary: str = ""
    """One sentence; by default how long it was trained."""
    reference: str = ""
    """The paper, or what else it follows."""
