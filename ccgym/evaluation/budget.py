"""Time for runs: what is there when it is up is balanced over schemes and conditions, and the rest is left.

Runs that belong together, one of each scheme under the same condition, are begun only while all of them are expected to
end in time. So no scheme has more runs than another one, up to runs that took longer than those before them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from threading import Lock

from ccgym.evaluation.run import Run


class Budget:
    """A length of time, from when it is made. It may be shared by several calls of ``measure``.

    The first runs that belong together are begun in any case, so that every call gets further.

    Args:
        seconds: The time.
        together: Names what a run belongs to.
        clock: Seconds from any beginning.
    """

    def __init__(
        self, seconds: float, together: Callable[[Run], Hashable], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._together = together
        self._clock = clock
        self._deadline = clock() + seconds
        self._sizes: dict[Hashable, int] = {}
        self._begun: set[Hashable] = set()
        self._took_s: list[float] = []
        self._up = False
        self._lock = Lock()

    def plan(self, runs: Sequence[Run], took_s: Sequence[float]) -> None:
        """Say what is to come.

        Args:
            runs: Runs that are missing.
            took_s: How long those took that are there already, seconds.
        """
        for run in runs:
            group = self._together(run)
            self._sizes[group] = self._sizes.get(group, 0) + 1
        self._took_s += took_s

    def admits(self, run: Run, jobs: int) -> bool:
        """Whether a run may begin; asked in the order of the runs.

        Args:
            run: The run.
            jobs: How many are made at a time.
        """
        with self._lock:
            group = self._together(run)
            if group in self._begun:
                return True
            turns = math.ceil(self._sizes.get(group, 1) / jobs)
            needed = turns * (sum(self._took_s) / len(self._took_s) if self._took_s else 0.0)
            self._up = self._up or (bool(self._begun) and self._clock() + needed > self._deadline)
            if not self._up:
                self._begun.add(group)
            return not self._up

    def ended(self, seconds: float) -> None:
        """A run took this long."""
        with self._lock:
            self._took_s.append(seconds)
