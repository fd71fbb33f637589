"""State time: fraction of the time that a flow's scheme spent in a state, or in one of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field
from typing_extensions import override

from ccgym.experiments.metrics.base import Measured, OverTime


@dataclass(frozen=True)
class Visit:
    """A stay in a state, or in one of several."""

    begin_s: float
    """Start of the stay, to the precision of the samples."""
    end_s: float
    """End of the stay; the end of the run if the stay did not end."""
    following: str
    """The state that followed; empty if the stay did not end."""


States = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1),
]


class OfState(OverTime):
    """A metric of the states of a flow's scheme; with several flows, of the first flow.

    None if the scheme has no states. Stays that end before the next sample are missed (``sampling``).
    """

    state: States
    """The state, or several that count as one, by the names of the scheme's specification: ``ProbeBW_UP``."""

    def visits(self, run: Measured) -> list[Visit] | None:
        """Return the stays in the state, in order; None if the scheme has no states."""
        names = run.sample.states[self.places(run)[0]]
        if not names:
            return None
        times = run.sample.t_s
        inside = np.isin(names, self.state)
        edges = np.flatnonzero(np.diff(inside, prepend=False, append=False))
        return [
            Visit(
                float(times[begin]),
                float(times[min(end, times.size - 1)]),
                names[end] if end < times.size else "",
            )
            for begin, end in zip(edges[::2], edges[1::2], strict=True)
        ]

    def within(self, run: Measured) -> list[Visit] | None:
        """Return the stays that began in the part of the run, and ended in the run."""
        begin_s, end_s = self.span(run)
        found = self.visits(run)
        return None if found is None else [one for one in found if begin_s <= one.begin_s <= end_s and one.following]


class StateTime(OfState):
    """Fraction of the part of the run that the scheme spent in the state."""

    label: str = "time in the state"
    unit: str = "%"

    @override
    def of(self, run: Measured) -> float | None:
        begin_s, end_s = self.span(run)
        visits = self.visits(run)
        if visits is None:
            return None
        return sum(max(0.0, min(one.end_s, end_s) - max(one.begin_s, begin_s)) for one in visits) / (end_s - begin_s)
