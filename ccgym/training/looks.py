"""How a policy is named and drawn beside other schemes: part of its card."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from ccgym.schemes.style import check_color, check_label, check_marker, check_text


class Looks(BaseModel):
    """Name for people, color and marker, and where the policy comes from. All of it may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Annotated[str, AfterValidator(check_label)] = ""
    """Name in tables and legends; by default the policy's name with a capital."""
    color: Annotated[str, AfterValidator(check_color)] = "chocolate"
    """Color by its name in CSS, or ``#rrggbb``."""
    marker: Annotated[str, AfterValidator(check_marker)] = "*"
    """Marker by matplotlib's one-letter code."""
    summary: Annotated[str, AfterValidator(check_text)] = ""
    """One sentence; by default how long it was trained."""
    reference: Annotated[str, AfterValidator(check_text)] = ""
    """The paper, or what else it follows."""
