"""QUIC by a library as schemes: ``quic:cubic``, ``quic:bbr``, ``quic:reno`` are the congestion controllers of quinn.

These schemes run only on real paths. There they can be compared with the schemes of ccgym and of the kernel of the same
name. The scheme ``quic`` is a different one: ccgym's implementation after Chromium.
"""

from __future__ import annotations

from typing import Any, Final

from ccgym.emulation import quic
from ccgym.errors import SchemeNotFoundError, did_you_mean, shown
from ccgym.schemes.registry import color_like
from ccgym.schemes.scheme import ExternalScheme

REFERENCE: Final = "quinn 0.11 (quinn-proto), MIT or Apache-2.0"
"""Source of the library's controllers."""


class QuicScheme(ExternalScheme):
    """A congestion controller of a QUIC library."""

    PREFIX = "quic:"
    TYPED = "quic:NAME"
    MEANING = "QUIC by the library quinn, on real backends: cubic, bbr or reno (docs/guides/quic.md)"
    WHAT = "QUIC by the library quinn"
    NO_PARAMETERS = "the library's controllers run with its default settings"

    @classmethod
    def claims(cls, name: str) -> bool:
        """Return whether a text is such a scheme, and not ccgym's ``quic`` with a parameter."""
        return name.startswith(cls.PREFIX) and "=" not in name.removeprefix(cls.PREFIX).partition(":")[0]

    def _check(self, where: str) -> QuicScheme:
        """Check the name; the run checks whether the program is available."""
        names = [self.PREFIX + name for name in quic.labels()]
        if self.name not in names:
            raise SchemeNotFoundError(
                "unknown-scheme",
                f"{quic.program() or 'quinn'} has no congestion controller {shown(self.name)}",
                where=where,
                expected=f"one of {', '.join(names)}",
                hint=did_you_mean(self.name, names, "write NAME=VALUE for parameters of ccgym's own quic"),
            )
        return self._without_parameters(where)

    def why_unavailable(self) -> str | None:
        return quic.why_unavailable()

    @property
    def drawn(self) -> tuple[str, str, str]:
        return quic.label(self.algorithm), color_like(self.algorithm), "+"

    @property
    def identity(self) -> dict[str, Any]:
        return {} if self.version is None else {"quic": self.version}

    @property
    def version(self) -> str | None:
        return quic.version(self.algorithm)


def descriptions() -> list[dict[str, Any]]:
    """Describe the library's schemes as in :func:`ccgym.schemes.groups.descriptions`."""
    schemes = [QuicScheme(QuicScheme.PREFIX + name) for name in quic.labels()]
    return [
        one.described("quic", one.why_unavailable(), REFERENCE if one.algorithm in quic.LABELS else "")
        for one in schemes
    ]
