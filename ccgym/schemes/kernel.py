"""The kernel's TCP as a scheme: ``tcp:cubic``, ``tcp:bbr``, ``tcp:NAME`` for any that the kernel has.

They run on real paths only. There they can be compared with ours of the same name.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final

from ccgym.emulation import kernel_tcp
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, near_miss, shown

PREFIX: Final = "tcp:"
"""Beginning of the names of the kernel's schemes."""

STYLES: Final = {
    "bbr": ("darkgoldenrod", "v"),
    "cubic": ("dimgray", "P"),
    "reno": ("sienna", "^"),
    "vegas": ("darkslategray", "H"),
    "dctcp": ("teal", "X"),
}
"""Color and marker: close to those of our scheme of that name, but not equal."""

OTHER_COLORS: Final = ("steelblue", "mediumvioletred", "olivedrab", "brown", "darkcyan", "mediumpurple")
"""Colors of the others."""


def algorithm_of(name: str) -> str | None:
    """The kernel's algorithm that a scheme's name asks for; None if it is not one of the kernel's."""
    return name[len(PREFIX) :] if name.startswith(PREFIX) else None


def color_and_marker(algorithm: str) -> tuple[str, str]:
    """Color and marker of an algorithm."""
    if algorithm in STYLES:
        return STYLES[algorithm]
    return OTHER_COLORS[zlib.crc32(algorithm.encode()) % len(OTHER_COLORS)], "d"


def check(algorithm: str, params: Mapping[str, Any], where: str = "") -> None:
    """Make sure that an algorithm can be asked for. Whether this kernel has it is a question for the run.

    Raises:
        ConfigError: It is not a valid name, or there are parameters.
        SchemeNotFoundError: It is a misspelling: unknown, and close to a known name.
    """
    if not kernel_tcp.NAME.fullmatch(algorithm):
        raise ConfigError(
            "argument-missing",
            f"{shown(PREFIX + algorithm)} names no algorithm of the kernel",
            where=where,
            expected="tcp:NAME, such as tcp:cubic or tcp:bbr",
            hint=_here(),
        )
    if params:
        raise ConfigError(
            "unknown-parameter",
            f"{PREFIX}{algorithm} with parameters: {', '.join(params)}",
            where=where,
            expected="none: the kernel's algorithms are set up by the system",
            hint=f"our own {algorithm} has parameters: `ccgym schemes {algorithm}`",
        )
    known = {*kernel_tcp.LABELS, *kernel_tcp.available()}
    if algorithm not in known and near_miss(algorithm, known) is not None:
        raise SchemeNotFoundError(
            "unknown-scheme",
            f"no kernel is known to have {shown(PREFIX + algorithm)}",
            where=where,
            expected=f"one of {', '.join(sorted(known))}",
            hint=did_you_mean(PREFIX + algorithm, [PREFIX + name for name in known]),
        )


def descriptions() -> list[dict[str, Any]]:
    """The kernel's schemes as :func:`ccgym.schemes.groups.descriptions` has ours; Cubic and BBR even if not here."""
    here = kernel_tcp.available()
    rows = []
    for algorithm in dict.fromkeys([*here, "cubic", "bbr"]):
        reason = None if algorithm in here else kernel_tcp.why_unavailable(algorithm)
        rows.append(
            {
                "name": f"{PREFIX}{algorithm}",
                "label": kernel_tcp.label(algorithm),
                "reference": "the running kernel's own code",
                "summary": "available here" if reason is None else f"unavailable: {reason}",
                "color": color_and_marker(algorithm)[0],
                "marker": color_and_marker(algorithm)[1],
                "parameters": [],
                "kernel": True,
                "available": reason is None,
            }
        )
    return rows


def _here() -> str:
    names = kernel_tcp.available()
    return f"this kernel has {', '.join(PREFIX + name for name in names)}" if names else ""
