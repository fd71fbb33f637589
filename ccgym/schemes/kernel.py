"""The kernel's TCP as a scheme: ``tcp:cubic``, ``tcp:bbr``, ``tcp:NAME`` for any that the kernel has.

They run on real paths only. There they can be compared with ours of the same name.
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
    NO_PARAMETERS = "the kernel's algorithms are set up by the system"

    def _check(self, where: str) -> KernelTcp:
        """Whether this kernel has it is a question for the run."""
        if not kernel_tcp.NAME.fullmatch(self.algorithm):
            here = ", ".join(self.PREFIX + name for name in kernel_tcp.available())
            raise ConfigError(
                "argument-missing",
                f"{shown(self.name)} names no algorithm of the kernel",
                where=where,
                expected="tcp:NAME, such as tcp:cubic or tcp:bbr",
                hint=f"this kernel has {here}" if here else "",
            )
        self._without_parameters(where)
        known = {*kernel_tcp.LABELS, *kernel_tcp.available()}
        if self.algorithm not in known and near_miss(self.algorithm, known) is not None:
            raise SchemeNotFoundError(
                "unknown-scheme",
                f"no kernel is known to have {shown(self.name)}",
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
        return f"iperf3 -C {self.algorithm} sends one; "


def available() -> list[KernelTcp]:
    """The kernel's schemes that are here."""
    return [KernelTcp(f"{KernelTcp.PREFIX}{name}") for name in kernel_tcp.available()]


def descriptions() -> list[dict[str, Any]]:
    """The kernel's schemes as :func:`ccgym.schemes.groups.descriptions` has ours; Cubic and BBR even if not here."""
    here = kernel_tcp.available()
    schemes = [KernelTcp(f"{KernelTcp.PREFIX}{name}") for name in dict.fromkeys([*here, "cubic", "bbr"])]
    return [
        one.described(
            "kernel", None if one.algorithm in here else one.why_unavailable(), "the running kernel's own code"
        )
        for one in schemes
    ]
