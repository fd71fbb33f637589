"""What a metric is: a number of a run, with its name, unit and direction, and options from the YAML."""

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
    """How many, their bytes, and when, on Pantheon's clock."""
    delays_ns: IntArray
    """One-way delays, in the order in which the packets entered."""


@dataclass(frozen=True)
class Measured:
    """A run that a metric looks at."""

    path: NetworkPath
    record: RunRecord
    """What it left, packets and series included."""
    flows: Sequence[FlowSpec] = ()
    """Its flows; by default their packets have the size of TCP's."""
    _left: dict[Any, Departures] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def sample(self) -> Sample:
        """Its counts over time."""
        return Sample.of(self.record, self.flows)

    @property
    def duration_s(self) -> float:
        """Length of the run, seconds."""
        return self.record.duration_s

    def departures(self, places: Sequence[int], begin_s: float, end_s: float) -> Departures:
        """The packets of the flows at these positions that left after the beginning and before the end; neither instant
        belongs to it, as in ccBench. They are looked through once however many metrics ask for them."""
        chosen = (tuple(places), begin_s, end_s)
        if chosen not in self._left:
            native = self.record.native
            assert native is not None, "a record straight from its run"
            left, delays = native.departed(places, round(begin_s * NS_PER_S), round(end_s * NS_PER_S))
            self._left[chosen] = Departures(Passed(*left), delays)
        return self._left[chosen]


class Metric(BaseModel):
    """A number of a run. Subclasses have a file each, and are listed in :data:`ccgym.experiments.metrics.METRICS`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    BETTER: ClassVar[Better] = "neither"
    """Which values are the better ones."""
    NEEDS_PACKETS: ClassVar[bool] = False
    """Whether it is computed from packets, which take memory."""
    LAYER: ClassVar[str] = "l4"
    """Where it is measured: as in :class:`ccgym.evaluation.ccperf_names.Definition`, or ``l3``, packets of the path."""
    ACCEPTED_KEYS: ClassVar[tuple[str, ...]] = ()
    """Its options, for suggestions."""
    version: ClassVar[int] = 1
    """Rises when the same record gives another number: kept runs are then run again."""

    key: str
    """Its name in files and criteria, unique within the experiment."""
    label: str
    unit: str = ""
    """Its unit as shown; ``%`` shows a fraction times hundred."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.ACCEPTED_KEYS = tuple(field.alias or name for name, field in cls.model_fields.items() if name != "key")

    @property
    def better(self) -> Better:
        """Which values are the better ones."""
        return self.BETTER

    @property
    def needs_packets(self) -> bool:
        """Whether packets have to be recorded for it."""
        return self.NEEDS_PACKETS

    @abstractmethod
    def of(self, run: Measured) -> float | None:
        """The number of a run; None where there is none, as a delay where nothing arrived."""

    @property
    def alone(self) -> int | None:
        """Number of the flow that is run alone, too, for :meth:`compared`; None where the run itself is enough."""
        return None

    def compared(self, value: float | None, alone: float | None) -> float | None:
        """The metric, from what :meth:`of` makes of the run, and of that of the flow alone."""
        return value

    def show(self, value: float | None) -> str:
        """The value as text."""
        if value is None:
            return NOTHING
        if self.unit == "%":
            text = f"{100 * value:.{2 if abs(value) < 0.0995 else 1}f}"
            return f"{text.removesuffix('.0').removesuffix('.00')} %"
        return f"{value:.2f}{f' {self.unit}' if self.unit else ''}"


class OverTime(Metric):
    """A metric of some flows over a part of the run."""

    flows: tuple[int, ...] = ()
    """Numbers of the flows, from 1; empty: all."""
    begin: TimeField = Field(default=0, alias="from")
    """Where the part begins."""
    end: TimeField | None = Field(default=None, alias="to")
    """Where it ends; by default with the run."""

    def span(self, run: Measured) -> tuple[float, float]:
        """The part, seconds."""
        return self.begin / 1e9, run.duration_s if self.end is None else self.end / 1e9

    def places(self, run: Measured) -> Sequence[int]:
        """Positions of the flows in the record."""
        count = len(run.record.flows)
        if any(not 1 <= flow <= count for flow in self.flows):
            raise ConfigError(
                "out-of-range", f"flows {list(self.flows)}", expected=f"numbers from 1 to {count}", where=self.key
            )
        return [flow - 1 for flow in self.flows] or range(count)

    def departures(self, run: Measured) -> Departures:
        """The packets of the flows that left in the part."""
        return run.departures(self.places(run), *self.span(run))
