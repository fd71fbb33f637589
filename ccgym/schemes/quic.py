"""QUIC by a library as a scheme: ``quic:cubic``, ``quic:bbr``, ``quic:reno`` are the congestion controllers of quinn.

They run on real paths only. There they can be compared with ours and the kernel's of the same name. The scheme ``quic``
is another one: ours, after Chromium's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ccgym.emulation import quic
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, shown

PREFIX: Final = "quic:"
"""Beginning of the names of the library's schemes."""

REFERENCE: Final = "quinn 0.11 (quinn-proto), MIT or Apache-2.0"
"""Where the library's own are from."""

STYLES: Final = {"cubic": ("slategray", "p"), "bbr": ("peru", "h"), "reno": ("rosybrown", "p")}
"""Color and marker."""


def algorithm_of(name: str) -> str | None:
    """The library's controller that a scheme's name asks for; None if it asks for something else, such as our ``quic``
    with a parameter."""
    word = name.removeprefix(PREFIX).partition(":")[0]
    return word if name.startswith(PREFIX) and "=" not in word else None


def color_and_marker(algorithm: str) -> tuple[str, str]:
    """Color and marker of a controller."""
    return STYLES.get(algorithm, ("gray", "p"))


def check(algorithm: str, params: Mapping[str, Any], where: str = "") -> None:
    """Make sure that a controller can be asked for. Whether the program is here is a question for the run.

    Raises:
        ConfigError: There are parameters.
        SchemeNotFoundError: The library has none of that name.
    """
    known = quic.labels()
    names = [PREFIX + name for name in known]
    if algorithm not in known:
        raise SchemeNotFoundError(
            "unknown-scheme",
            f"{quic.program() or 'quinn'} has no congestion controller {shown(PREFIX + algorithm)}",
            where=where,
            expected=f"one of {', '.join(names)}",
            hint=did_you_mean(PREFIX + algorithm, names, "the scheme of ours that is called quic takes NAME=VALUE"),
        )
    if params:
        raise ConfigError(
            "unknown-parameter",
            f"{PREFIX}{algorithm} with parameters: {', '.join(params)}",
            where=where,
            expected="none: the library's controllers run with its default settings",
            hint=f"our own {algorithm} has parameters: `ccgym schemes {algorithm}`",
        )


def descriptions() -> list[dict[str, Any]]:
    """The library's schemes as :func:`ccgym.schemes.groups.descriptions` has ours."""
    reason = quic.why_unavailable()
    return [
        {
            "name": PREFIX + algorithm,
            "label": quic.label(algorithm),
            "reference": REFERENCE if algorithm in quic.LABELS else "",
            "summary": "available here" if reason is None else f"unavailable: {reason}",
            "color": color_and_marker(algorithm)[0],
            "marker": color_and_marker(algorithm)[1],
            "parameters": [],
            "quic": True,
            "available": reason is None,
        }
        for algorithm in quic.labels()
    ]
