"""Convert a path to mahimahi's shells, and check that its programs are installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence

from ccgym.config.path import NetworkPath
from ccgym.config.sampled_path import DEFAULT_DURATION_NS
from ccgym.emulation.job import require_linux
from ccgym.errors import ConfigError, PlatformError
from ccgym.units import Nanoseconds


def require_programs(shells: Iterable[Sequence[str]]) -> None:
    """Check that these shells are installed.

    Raises:
        PlatformError: A shell is not installed.
    """
    require_linux()
    missing = [name for name in dict.fromkeys(shell[0] for shell in shells) if shutil.which(name) is None]
    if missing:
        raise PlatformError(
            "program-missing",
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            where="backend mahimahi",
            expected="mahimahi's programs in a folder of $PATH",
            hint="run `ccgym doctor` to see how to install them; --backend emulated runs the same path without them",
        )


def mahimahi_shells(path: NetworkPath, duration_ns: int) -> tuple[tuple[str, ...], ...]:
    """Return the path as mahimahi's shells, with real files; traces made from rates are ``duration_ns`` long.

    Raises:
        ConfigError: mahimahi cannot express the path.
    """
    duration = Nanoseconds(max(duration_ns, DEFAULT_DURATION_NS))
    try:
        return tuple(map(tuple, path.to_mahimahi_shells(materialize=True, duration=duration)))
    except ConfigError as error:
        raise ConfigError(
            error.code,
            error.found,
            where=f"backend mahimahi: {error.where}" if error.where else "backend mahimahi",
            expected=error.expected,
            hint=error.hint or "use the backend emulated, which accepts every path",
        ) from None
