"""A path in mahimahi's words, and whether its programs are there, as far as that shows without starting one."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence

from ccgym.config.distributions import DEFAULT_DURATION_NS
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, PlatformError
from ccgym.units import Nanoseconds


def programs(command: Sequence[str]) -> list[str]:
    """The shells of a mahimahi command line, each once."""
    return list(dict.fromkeys(word for word in command if word.startswith("mm-") and "/" not in word))


def require_programs(command: Sequence[str]) -> None:
    """Make sure that the shells of a command line are installed.

    Raises:
        PlatformError: One is not.
    """
    missing = [name for name in programs(command) if shutil.which(name) is None]
    if missing:
        raise PlatformError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            where="backend mahimahi",
            expected="mahimahi's programs in a folder of $PATH",
            hint="`ccgym doctor` says how to get them; --backend emulated runs the same path without them",
        )


def mahimahi_words(path: NetworkPath, duration_ns: int) -> list[str]:
    """The path as mahimahi's command line, with real files; traces made of rates last a run of ``duration_ns``.

    Raises:
        ConfigError: It cannot be expressed.
    """
    try:
        text = path.to_mahimahi(materialise=True, duration=Nanoseconds(max(duration_ns, DEFAULT_DURATION_NS)))
    except ConfigError as error:
        raise ConfigError(
            error.found,
            where=f"backend mahimahi: {error.where}" if error.where else "backend mahimahi",
            expected=error.expected,
            hint=error.hint or "the backend emulated takes every path",
        ) from None
    return shlex.split(text)
