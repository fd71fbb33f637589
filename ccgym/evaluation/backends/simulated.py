"""The backend ``sim``."""

from __future__ import annotations

from collections.abc import Sequence

from ccgym.config.path import NetworkPath, PathLike
from ccgym.evaluation.prepared_run import Flow, Record, prepare
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.simulate import simulate_prepared
from ccgym.schemes.scheme import Scheme
from ccgym.units import TimeLike


class Simulated:
    """The simulator: virtual time, many runs at the same time, each repeatable from its seed."""

    name = "sim"

    def __init__(self) -> None:
        from ccgym import _core

        self._halt = _core.Halt()

    def require(self, path: NetworkPath, duration_ns: int) -> None:
        """Accept every path: all paths can be simulated."""

    def why_unavailable(self, choice: Scheme) -> str | None:
        """Return None: schemes that cannot be simulated are refused, not left out."""
        return None

    def run(
        self, path: PathLike, flows: Sequence[Flow], duration: TimeLike, seed: int, record: Record | None = None
    ) -> RunRecord:
        """See :func:`ccgym.evaluation.simulate.simulate`."""
        return simulate_prepared(prepare(path, flows, duration, seed, record), self._halt)

    def halt(self) -> None:
        """See :class:`ccgym.evaluation.backends.Backend`."""
        self._halt.set()
