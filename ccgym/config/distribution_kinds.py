"""Path distributions over paths that are given in full, and mixtures of distributions.

=================  ==================================================================================
``fixed``          one path
``named``          paths of the catalog (`ccgym paths`), or whatever else a path may be given by
``indigo_links``   the 30 links that Indigo was trained on (ATC 2018)
``mixture``        other distributions, by weight
=================  ==================================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Final, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self, override

from ccgym.config.distribution_base import NumberRow, PathDistribution
from ccgym.config.distribution_numbers import cumulative, pick, read_weights
from ccgym.config.distribution_sample import DEFAULT_DURATION_NS, UNITS, SampledPath, path_numbers
from ccgym.config.path import NetworkPath, PathField
from ccgym.errors import CcgymError, ConfigError

INDIGO_RATES_MBPS: Final = (5, 10, 20, 50, 100, 200)
"""Rates of Indigo's synthetic links."""
INDIGO_DELAYS_MS: Final = (10, 20, 40, 80)
"""One-way delays of Indigo's synthetic links."""
INDIGO_SYNTHETIC: Final = tuple(f"indigo-{rate}mbps-{ms}ms" for ms in INDIGO_DELAYS_MS for rate in INDIGO_RATES_MBPS)
"""Catalog names of the synthetic links: constant rate, unlimited queue, no loss."""
INDIGO_CALIBRATED: Final = tuple(f"pantheon-{number}" for number in range(1, 7))
"""Catalog names of the six emulators that are calibrated to real paths."""


class _Listed(PathDistribution):
    """A distribution over a list of paths, each compiled once."""

    @abstractmethod
    def _paths(self) -> tuple[NetworkPath, ...]:
        """The list."""

    def _weights(self) -> tuple[float, ...]:
        """How often each is drawn; nothing for equally."""
        return ()

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(self._weights() or (1.0,) * len(self._paths()))

    @cached_property
    def _made(self) -> dict[tuple[int, int], SampledPath]:
        """Compiled paths by place and duration."""
        return {}

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        place = pick(self._places, rng) if len(self._places) > 1 else 0
        made = self._made.get((place, duration_ns))
        if made is None:
            made = SampledPath.of(self._paths()[place], duration_ns)
            if len(self._made) > 4096:  # somebody draws a new duration at every reset
                self._made.clear()
            self._made[place, duration_ns] = made
        return made

    @override
    def rows(self) -> list[NumberRow]:
        numbers = [path_numbers(path) for path in self._paths()]
        rows: list[NumberRow] = []
        for name, unit in UNITS.items():
            values = [one[name] for one in numbers if name in one]
            if values:
                law = "in steps" if len(set(values)) > 1 else f"{values[0]:.6g}"
                law = law if len(values) == len(numbers) else f"{law}; {len(numbers) - len(values)} paths without limit"
                shown_unit = "" if unit == "fraction" else unit
                short = name.rsplit("_", 1)[0] if name != "loss" else name
                rows.append({"name": short, "unit": shown_unit, "low": min(values), "high": max(values), "law": law})
        return rows


class Fixed(_Listed):
    """Always the same path."""

    kind: Literal["fixed"] = "fixed"
    path: PathField
    """The path, given in any way."""

    @override
    def _paths(self) -> tuple[NetworkPath, ...]:
        return (self.path,)

    @override
    def summary(self) -> str:
        return f"always {self.path.name or 'the same path'}{f': {self.path.title}' if self.path.title else ''}"


class Named(_Listed):
    """One of several paths."""

    kind: Literal["named"] = "named"
    names: tuple[str, ...] = Field(min_length=1, max_length=10_000)
    """Names of the catalog, mahimahi command lines, YAML files or traces."""
    weights: tuple[float, ...] = ()
    """How often each is drawn; by default equally."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        for place, name in enumerate(self.names):
            try:
                NetworkPath.from_any(name)
            except CcgymError as error:
                raise ConfigError(
                    error.found, expected=error.expected, hint=error.hint, where=f"names[{place}]"
                ) from None
        if self.weights:
            read_weights(self.weights, len(self.names))
        return self

    @override
    def _paths(self) -> tuple[NetworkPath, ...]:
        return self._found

    @cached_property
    def _found(self) -> tuple[NetworkPath, ...]:
        return tuple(NetworkPath.from_any(name) for name in self.names)

    @override
    def _weights(self) -> tuple[float, ...]:
        return self.weights

    @override
    def summary(self) -> str:
        names = ", ".join(self.names[:6]) + (", …" if len(self.names) > 6 else "")
        return f"one of {len(self.names)} paths{' (weighted)' if self.weights else ''}: {names}"


class IndigoLinks(_Listed):
    """The links that Indigo was trained on: 24 synthetic ones and six calibrated emulators, equally often.

    Synthetic: every rate of 5, 10, 20, 50, 100, 200 Mbit/s with every one-way delay of 10, 20, 40, 80 ms.
    """

    kind: Literal["indigo_links"] = "indigo_links"
    which: Literal["all", "synthetic", "calibrated"] = "all"
    """Which of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the paths."""
        parts = {"synthetic": INDIGO_SYNTHETIC, "calibrated": INDIGO_CALIBRATED}
        return parts.get(self.which, INDIGO_SYNTHETIC + INDIGO_CALIBRATED)

    @override
    def _paths(self) -> tuple[NetworkPath, ...]:
        return self._found

    @cached_property
    def _found(self) -> tuple[NetworkPath, ...]:
        return tuple(NetworkPath.named(name) for name in self.names)

    @override
    def summary(self) -> str:
        words = {"all": "24 synthetic and 6 calibrated", "synthetic": "24 synthetic", "calibrated": "6 calibrated"}
        return f"Indigo's training links: {words[self.which]}"
