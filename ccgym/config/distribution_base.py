"""What every path distribution is: a frozen model that draws paths from a generator."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict
from typing_extensions import Self, TypedDict, override

from ccgym.config.distribution_numbers import Number
from ccgym.config.distribution_sample import DEFAULT_DURATION_NS, SampledPath

HELD_OUT_KEY: Final = 0x68656C64
"""Branch of the seed from which held-out paths are drawn; environments never draw from it."""


class NumberRow(TypedDict):
    """One number of a distribution, for people and for JSON."""

    name: str
    """Dotted where parts have numbers of the same name."""
    unit: str
    """Unit of ``low`` and ``high``; empty for a fraction."""
    low: float | None
    """Smallest value; ``None`` where there is none to tell."""
    high: float | None
    """Largest value."""
    law: str
    """The law in a few words."""


class PathDistribution(BaseModel):
    """A distribution of paths: immutable, compares by content, can be pickled.

    Subclasses say what is drawn. The same state of the generator gives the same path.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        """Draw a path.

        Args:
            rng: Where the randomness comes from: an environment's ``np_random``.
            duration_ns: How long changes of the rate are drawn for and the capacity must be known for, nanoseconds.

        Raises:
            ConfigError: A path that cannot be compiled.
            PathNotFoundError: A trace that is not there.
        """

    @abstractmethod
    def summary(self) -> str:
        """One line for people."""

    @abstractmethod
    def rows(self) -> list[NumberRow]:
        """The numbers that are drawn."""

    def describe(self) -> dict[str, Any]:
        """``summary``: one line; ``numbers``: rows with name, unit, low, high and law."""
        return {"summary": self.summary(), "numbers": self.rows()}

    def held_out(self, seed: int, count: int, duration_ns: int = DEFAULT_DURATION_NS) -> list[SampledPath]:
        """Draw paths for evaluation, from a stream that no environment uses.

        Args:
            seed: The same seed gives the same paths, and a larger ``count`` only adds to them.
            count: How many.
            duration_ns: As in :meth:`sample`.
        """
        sequences = (np.random.SeedSequence(seed, spawn_key=(HELD_OUT_KEY, place)) for place in range(count))
        return [self.sample(np.random.Generator(np.random.PCG64(sequence)), duration_ns) for sequence in sequences]

    # What subclasses keep beside their fields (samplers, compiled paths) is made again in copies and after pickling.

    @override
    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        state["__dict__"] = self._fields_alone()
        return state

    @override
    def __copy__(self) -> Self:
        copied = super().__copy__()
        object.__setattr__(copied, "__dict__", self._fields_alone())
        return copied

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def _fields_alone(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name in type(self).model_fields}


def number_row(name: str, number: Number) -> NumberRow:
    """Describe a number of a distribution."""
    dimension = number.dimension
    low, high = (end / dimension.shown_scale for end in number.bounds())
    return {"name": name, "unit": dimension.shown_unit, "low": low, "high": high, "law": number.describe()}


def prefixed(prefix: str, rows: list[NumberRow]) -> list[NumberRow]:
    """Put a part's name in front of its numbers' names."""
    return [{**row, "name": f"{prefix}{row['name']}"} for row in rows]
