"""Names, colors and markers of schemes, and the checks before a label is printed to a terminal or a color is used in
a figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ccgym.errors import ConfigError, did_you_mean, shown

MARKERS: Final = ".,ov^<>1234+x|_8spP*hHXDd"
"""Matplotlib's markers of one letter."""

FLOW_COLORS: Final = (
    "#1f5fbf", "#2a8f4f", "#c8372d", "#b8860b", "#0e8c99", "#a0369c",
    "#7fa8e8", "#7a4a1e", "#f08a5d", "#6d8b00", "#4a4a55", "#ee82c0",
)  # fmt: skip
"""Colors of flows 1, 2, …: Pantheon's blue, green, red, yellow, cyan, magenta, darkened; then six further colors."""

MAX_LABEL: Final = 60
"""Max characters of a label; longer labels do not fit in tables and legends."""

_CSS: Final = """
aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown burlywood
cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue darkcyan darkgoldenrod darkgray
darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange darkorchid darkred darksalmon darkseagreen
darkslateblue darkslategray darkslategrey darkturquoise darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue
firebrick floralwhite forestgreen fuchsia gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew
hotpink indianred indigo ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
lightgoldenrodyellow lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue lightslategray
lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon mediumaquamarine mediumblue mediumorchid
mediumpurple mediumseagreen mediumslateblue mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream
mistyrose moccasin navajowhite navy oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen
paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple rebeccapurple red rosybrown
royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue slateblue slategray slategrey snow
springgreen steelblue tan teal thistle tomato turquoise violet wheat white whitesmoke yellow yellowgreen
"""
COLOR_NAMES: Final = frozenset(_CSS.split())
"""Color names of CSS (https://www.w3.org/TR/css-color-4/#named-colors), which matplotlib and browsers support."""

_HEX: Final = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class SchemeStyle:
    """Name, label, color and marker of a scheme, equal in all tables and figures."""

    key: str
    """Name in file names, e.g. ``bbr``."""
    label: str
    """Label, e.g. ``TCP BBR``."""
    color: str
    marker: str


class Described(Protocol):
    """Interface of the description of an external scheme: a program, a policy, a class in Python."""

    @property
    def title(self) -> str:
        """Name without parameters, folders and suffix."""

    @property
    def label(self) -> str:
        """Name in tables and legends."""

    @property
    def color(self) -> str:
        """Color in figures."""

    @property
    def marker(self) -> str:
        """Marker in figures."""

    @property
    def digest(self) -> str:
        """Hash of everything known that decides the behavior of the scheme."""

    def provenance(self) -> dict[str, Any]:
        """Return the facts about the scheme that results record."""


def check_label(text: str) -> str:
    """Check a label that is printed to a terminal and drawn in a legend, and return it.

    Raises:
        ConfigError: The label is too long, or contains control characters or a dollar sign, which starts a formula.
    """
    if len(text) > MAX_LABEL or not text.isprintable() or "$" in text:
        raise ConfigError("name-invalid", shown(text), expected=f"at most {MAX_LABEL} printable characters without $")
    return text


def check_text(text: str) -> str:
    """Check a sentence that is printed to a terminal, and return it.

    Raises:
        ConfigError: The sentence contains control characters.
    """
    if not all(character.isprintable() or character == "\n" for character in text):
        raise ConfigError("name-invalid", shown(text), expected="printable characters")
    return text


def check_color(text: str) -> str:
    """Check a color of figures and pages, and return it.

    Raises:
        ConfigError: The text is not a color.
    """
    if text not in COLOR_NAMES and not _HEX.fullmatch(text):
        raise ConfigError(
            "unknown-choice",
            shown(text),
            expected="a color name of CSS, or #rrggbb",
            hint=did_you_mean(text, sorted(COLOR_NAMES)),
        )
    return text


def check_marker(text: str) -> str:
    """Check a marker of figures, and return it.

    Raises:
        ConfigError: The text is not a marker.
    """
    if len(text) != 1 or text not in MARKERS:
        raise ConfigError("unknown-choice", shown(text), expected=f"one of matplotlib's markers {MARKERS}")
    return text
