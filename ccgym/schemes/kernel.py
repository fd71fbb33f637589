"""The kernel's TCP as schemes: ``tcp:cubic``, ``tcp:bbr``, ``tcp:NAME`` for every algorithm of the kernel.

These schemes run only on real paths. There they can be compared with ccgym's schemes of the same name.
"""

from __future__ import annotations

from typing import Any

from ccgym.emulation import kernel_tcp
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, near_miss, shown
from ccgym.schemes.registry import color_like
from ccgym.schemes.scheme import ExternalScheme


class KernelTcp(ExternalScheme):
    """The kernel's TCP."""

    PREFIX = "tcp:"
    TYPED = "tcp:NAME"
    MEANING = "this machine's kernel TCP, on real backends"
    WHAT = "the TCP of this machine's kernel"
    NO_PARAMETERS = "the system configures the kernel's algorithms"

    def _check(self, where: str) -> KernelTcp:
        """Check the name; the run checks whether this kernel has the algorithm."""
        if not kernel_tcp.NAME.fullmatch(self.algorithm):
            here = ", ".join(self.PREFIX + name for name in kernel_tcp.available())
            raise ConfigError(
                "argument-missing",
                f"{shown(self.name)} is not the name of a kernel algorithm",
                where=where,
                expected="tcp:NAME, such as tcp:cubic or tcp:bbr",
                hint=f"use one of {here}" if here else "",
            )
        self._without_parameters(where)
        known = {*kernel_tcp.LABELS, *kernel_tcp.available()}
        if self.algorithm not in known and near_miss(self.algorithm, known) is not None:
            raise SchemeNotFoundError(
                "unknown-scheme",
                f"{shown(self.name)} is not a known kernel algorithm",
                where=where,
                expected=f"one of {', '.join(sorted(known))}",
                hint=did_you_mean(self.name, [self.PREFIX + name for name in known]),
            )
        return self

    def why_unavailable(self) -> str | None:
        return kernel_tcp.why_unavailable(self.algorithm)

    @property
    def kernel(self) -> str:
        return self.algorithm

    @property
    def drawn(self) -> tuple[str, str, str]:
        return kernel_tcp.label(self.algorithm), color_like(self.algorithm), "x"

    def _elsewhere(self) -> str:
        return f"use iperf3 -C {self.algorithm} to send such a flow; "


def available() -> list[KernelTcp]:
    """Return the available schemes of this machine's kernel."""
    return [KernelTcp(f"{KernelTcp.PREFIX}{name}") for name in kernel_tcp.available()]


def descriptions() -> list[dict[str, Any]]:
    """Describe the kernel's schemes as in :func:`ccgym.schemes.groups.descriptions`; Cubic and BBR always."""
    here = kernel_tcp.available()
    schemes = [KernelTcp(f"{KernelTcp.PREFIX}{name}") for name in dict.fromkeys([*here, "cubic", "bbr"])]
    return [
        one.described(
            "kernel", None if one.algorithm in here else one.why_unavailable(), "the running kernel's own code"
        )
        for one in schemes
    ]
