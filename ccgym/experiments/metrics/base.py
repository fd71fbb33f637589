"""Base of metrics: a metric is a number of a run, with name, unit and direction, and with options from the YAML."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ccgym.config.path import NetworkPath
from ccgym.config.quantities import TimeField
from ccgym.errors import ConfigError
from ccgym.evaluation.ccperf_names import Better
from ccgym.evaluation.metrics import IntArray, Passed
from ccgym.evaluation.run_record import RunRecord
from ccgym.experiments.sample import Sample
from ccgym.schemes.flow import FlowSpec
from ccgym.units import NS_PER_S

__all__ = ["NOTHING", "Better", "Departures", "Measured", "Metric", "OverTime"]

NOTHING = "–"


class Departures(NamedTuple):
    """Packets that left the path in a part of a run."""

    left: Passed
    """Number of packets, their bytes, and their times, on Pantheon's clock."""
    delays_ns: IntArray
    """One-way delays, in the order in which the packets entered."""


@dataclass(frozen=True)
class Measured:
    """A run in the form that metrics read."""

    path: NetworkPath
    record: RunRecord
    """Record of the run, with packets and series."""
    flows: Sequence[FlowSpec] = ()
    """Flows of the run; by default their packets have the size of TCP packets."""
    _left: dict[Any, Departures] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def sample(self) -> Sample:
        """Counts of the run over time."""
        return Sample.of(self.record, self.flows)

    @property
    def duration_s(self) -> float:
        """Length of the run, seconds."""
        return self.record.duration_s

    def departures(self, places: Sequence[int], begin_s: float, end_s: float) -> Departures:
        """Return the packets of the flows with these indices that left after ``begin_s`` and before ``end_s``, without
        both instants, as in ccBench. The result is computed once for all metrics that need it."""
        chosen = (tuple(places), begin_s, end_s)
        if chosen not in self._left:
            native = self.record.native
            assert native is not None, "the record must be of a run in this process"
            left, delays = native.departed(places, round(begin_s * NS_PER_S), round(end_s * NS_PER_S))
            self._left[chosen] = Departures(Passed(*left), delays)
        return self._left[chosen]


class Metric(BaseModel):
    """A number of a run. Each subclass has its own file; :data:`ccgym.experiments.metrics.METRICS` lists them all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    BETTER: ClassVar[Better] = "neither"
    """The better direction of values."""
    NEEDS_PACKETS: ClassVar[bool] = False
    """Whether the metric needs recorded packets, which take memory."""
    LAYER: ClassVar[str] = "l4"
    """Layer: as in :class:`ccgym.evaluation.ccperf_names.Definition`, or ``l3``, packets on the path."""
    ACCEPTED_KEYS: ClassVar[tuple[str, ...]] = ()
    """Names of the options, for suggestions."""
    version: ClassVar[int] = 1
    """Version: it rises when the same record gives another number; stored runs are then run again."""

    key: str
    """Name in files and criteria, unique within the experiment."""
    label: str
    unit: str = ""
    """Displayed unit; with ``%``, a fraction is shown times 100."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.ACCEPTED_KEYS = tuple(field.alias or name for name, field in cls.model_fields.items() if name != "key")

    @property
    def better(self) -> Better:
        """The better direction of values."""
        return self.BETTER

    @property
    def needs_packets(self) -> bool:
        """Whether the metric needs recorded packets."""
        return self.NEEDS_PACKETS

    @abstractmethod
    def of(self, run: Measured) -> float | None:
        """Return the number of a run; None if there is none, such as a delay when nothing arrived."""

    @property
    def alone(self) -> int | None:
        """Number of the flow that :meth:`compared` also needs in a run alone; None if the run itself is enough."""
        return None

    def compared(self, value: float | None, alone: float | None) -> float | None:
        """Return the metric from the results of :meth:`of` for the run, and for the run of the flow alone."""
        return value

    def show(self, value: float | None) -> str:
        """Return the value as text."""
        if value is None:
            return NOTHING
        if self.unit == "%":
            text = f"{100 * value:.{2 if abs(value) < 0.0995 else 1}f}"
            return f"{text.removesuffix('.0').removesuffix('.00')} %"
        return f"{value:.2f}{f' {self.unit}' if self.unit else ''}"


class OverTime(Metric):
    """A metric of some flows over a part of the run."""

    flows: tuple[int, ...] = ()
    """Numbers of the flows, from 1; empty: all flows."""
    begin: TimeField = Field(default=0, alias="from")
    """Start of the part."""
    end: TimeField | None = Field(default=None, alias="to")
    """End of the part; by default the end of the run."""

    def span(self, run: Measured) -> tuple[float, float]:
        """Return start and end of the part, seconds."""
        return self.begin / 1e9, run.duration_s if self.end is None else self.end / 1e9

    def places(self, run: Measured) -> Sequence[int]:
        """Return the indices of the flows in the record."""
        count = len(run.record.flows)
        if any(not 1 <= flow <= count for flow in self.flows):
            raise ConfigError(
                "out-of-range", f"flows {list(self.flows)}", expected=f"numbers from 1 to {count}", where=self.key
            )
        return [flow - 1 for flow in self.flows] or range(count)

    def departures(self, run: Measured) -> Departures:
        """Return the packets of the flows that left the path in the part."""
        return run.departures(self.places(run), *self.span(run))
