"""Distributions of paths: what an environment draws its links from.

In YAML, ``paths:`` is one of

* a name of :data:`PRESETS`: ``paths: aurora``;
* any one path, by name, mahimahi command line, YAML or trace file: ``paths: 77.72mbps``;
* a mapping with ``kind``: ``ranges``, ``traces`` (:mod:`ccgym.config.distribution_ranges`), ``fixed``, ``named``,
  ``indigo_links`` (:mod:`ccgym.config.distribution_kinds`), ``extended`` or ``mixture``;
* ``kind: stages``, a curriculum (:mod:`ccgym.config.distribution_curriculum`).

In Python::

    distribution = read_distribution("aurora")
    drawn = distribution.sample(rng)          # drawn.spec(), drawn.numbers, drawn.path()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import Self, override

from ccgym.config.catalog import path_names
from ccgym.config.distribution_base import NumberRow, PathDistribution, prefixed
from ccgym.config.distribution_kinds import Fixed, IndigoLinks, Named
from ccgym.config.distribution_numbers import cumulative, pick
from ccgym.config.distribution_ranges import Ranges, Traces
from ccgym.config.distribution_sample import DEFAULT_DURATION_NS, UNITS, SampledPath
from ccgym.config.models import Delay, ElementField, Link
from ccgym.config.path import NetworkPath
from ccgym.config.yaml_loader import Loaded, config_error
from ccgym.errors import CcgymError, ConfigError, did_you_mean, shown

_GENET: Final = {"kind": "ranges", "start_rate": {"constant": 10, "of": "packets_per_rtt"}, "loss_at": "before_queue"}

PRESETS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "aurora": (
        "training links of Aurora: PCCproject/PCC-RL @64bea6e, src/gym/network_sim.py",
        {
            "kind": "ranges",
            "rate": {"uniform": [100, 500], "unit": "packets/s"},
            "one_way_delay": {"uniform": ["50ms", "500ms"]},
            "queue": {"packets": {"exp_uniform": [0, 8], "floor": True, "plus": 1}},
            "loss": {"uniform": [0.0, 0.05]},
            "loss_at": "before_queue",
            "start_rate": {"uniform": [0.3, 1.5], "of": "rate"},
        },
    ),
    "genet_rl1": (
        "Genet's smallest ranges: zxxia/RL-CC @d3d3be0, config/train/udr_7_dims_0827/udr_small_seed_10.json",
        {
            **_GENET,
            "rate": {
                "highest": {"log_uniform": ["3.33995mbps", "7.19571mbps"]},
                "lowest": {"log_uniform": ["0.51048mbps", "0.82096mbps"]},
                "every": {"uniform": ["10.981185s", "12.647852s"]},
            },
            "one_way_delay": {"uniform": ["103.744069ms", "125.744069ms"]},
            "queue": {"bdp": 2, "at_least": 2, "round": "down"},
            "loss": {"log_uniform": [0.00916992, 0.01472548], "zero_below": 0.0001},
        },
    ),
    "genet_rl2": (
        "Genet's middle ranges: zxxia/RL-CC @d3d3be0, config/train/udr_7_dims_0827/udr_mid_seed_10.json",
        {
            **_GENET,
            "rate": {
                "highest": {"log_uniform": ["1.38933mbps", "13.89329mbps"]},
                "lowest": {"log_uniform": ["0.40991mbps", "2.12301mbps"]},
                "every": {"uniform": ["8.235889s", "13.235889s"]},
            },
            "one_way_delay": {"uniform": ["78.308052ms", "144.308052ms"]},
            "queue": {"bdp": {"uniform": [1, 2]}, "at_least": 2, "round": "down"},
            "loss": {"log_uniform": [0.00687994, 0.02354661], "zero_below": 0.0001},
        },
    ),
    "genet_rl3": (
        "Genet's full ranges: GenetProject/Genet @5d4303b, config/cc/udr3.json",
        {
            **_GENET,
            "rate": {
                "highest": {"log_uniform": ["0.1mbps", "100mbps"]},
                "lowest": "0.1mbps",
                "every": {"uniform": ["0s", "15s"]},
            },
            "one_way_delay": {"uniform": ["2ms", "200ms"]},
            "queue": {"bdp": {"uniform": [0.2, 3]}, "at_least": 2, "round": "down"},
            "loss": {"log_uniform": [0.00001, 0.05001], "zero_below": 0.0001},
        },
    ),
    "indigo": (
        "training links of Indigo: StanfordSNR/indigo @463d89b, dagger/worker.py",
        {"kind": "indigo_links"},
    ),
}
"""Distributions by name: where they come from, and what stands for the name in YAML."""


def _read(value: object) -> object:
    """Turn the short forms into mappings, and refuse an unknown ``kind`` with a near miss."""
    if isinstance(value, str):
        if value in PRESETS:
            return dict(PRESETS[value][1])
        return {"kind": "fixed", "path": _one_path(value)}
    if isinstance(value, NetworkPath):
        return {"kind": "fixed", "path": value}
    if isinstance(value, Mapping):
        kind = value.get("kind")
        if kind is None and not {"rate", "trace", "mahimahi", "named", "chain"}.isdisjoint(value):
            hint = "one path is `kind: fixed` with `path:`, drawn numbers are `kind: ranges`"
            raise ConfigError("paths without kind", expected="kind: " + ", ".join(KINDS), hint=hint)
        if kind not in KINDS:
            raise ConfigError(
                "paths without kind" if kind is None else f"unknown kind of paths {shown(kind)}",
                expected="kind: " + ", ".join(KINDS),
                hint="" if kind is None else did_you_mean(str(kind), KINDS),
                where="" if kind is None else "kind",
            )
    return value


def _one_path(text: str) -> NetworkPath:
    try:
        return NetworkPath.from_any(text)
    except CcgymError as error:
        hint = did_you_mean(text, PRESETS) or did_you_mean(text, path_names(), error.hint)
        raise ConfigError(
            error.found,
            expected=f"paths: one of {', '.join(PRESETS)}, a path like `ccgym paths` lists, or a mapping with kind",
            hint=hint,
        ) from None


class Part(BaseModel):
    """A part of a mixture."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(default=1.0, gt=0, le=1e12)
    """How often it is drawn, against the other parts' weights."""
    paths: PathDistributionField
    """What is drawn."""


class Extended(PathDistribution):
    """Another distribution, with further elements at the sender's end of whatever that draws."""

    kind: Literal["extended"] = "extended"
    paths: PathDistributionField
    """What is drawn."""
    elements: tuple[ElementField, ...] = Field(min_length=1, max_length=100)
    """Elements as in a path, the outermost first. Links that limit the rate belong into ``paths``."""

    @model_validator(mode="after")
    def _transparent(self) -> Self:
        for place, element in enumerate(self.elements):
            if isinstance(element, (Delay, Link)):
                raise ConfigError(
                    f"a {element.kind}", expected="elements that leave rate and base round trip as they are",
                    where=f"elements[{place}]",
                )  # fmt: skip
        return self

    @cached_property
    def _made(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        alone = NetworkPath(chain=self.elements).compile()
        return alone.uplink, alone.downlink

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        drawn = self.paths.sample(rng, duration_ns)
        first, last = self._made
        return replace(
            drawn, uplink=[*first, *drawn.uplink], downlink=[*drawn.downlink, *last],
            beside=(*drawn.beside, *self.elements),
        )  # fmt: skip

    @override
    def rows(self) -> list[NumberRow]:
        return self.paths.rows()

    @override
    def summary(self) -> str:
        added = (element.words() for element in self.elements if not isinstance(element, (Delay, Link)))
        return f"{self.paths.summary()}, with {' and '.join(added)}"


class Mixture(PathDistribution):
    """Other distributions, by weight."""

    kind: Literal["mixture"] = "mixture"
    parts: tuple[Part, ...] = Field(min_length=1, max_length=10_000)
    """The parts."""

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(part.weight for part in self.parts)

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        return self.parts[pick(self._places, rng)].paths.sample(rng, duration_ns)

    @override
    def rows(self) -> list[NumberRow]:
        return [row for place, part in enumerate(self.parts) for row in prefixed(f"parts[{place}].", part.paths.rows())]

    @override
    def summary(self) -> str:
        total = sum(part.weight for part in self.parts)
        parts = (f"{100 * part.weight / total:.3g} %: {part.paths.summary()}" for part in self.parts)
        return f"a mixture of {len(self.parts)} ({'; '.join(parts)})"


AnyDistribution: TypeAlias = Ranges | Traces | Fixed | Named | IndigoLinks | Extended | Mixture
"""Every distribution."""

PathDistributionField: TypeAlias = Annotated[
    AnyDistribution,
    Field(discriminator="kind"),
    BeforeValidator(_read, json_schema_input_type=AnyDistribution | str | dict[str, Any]),
]
"""A distribution in a model, given in any of the ways above except ``stages``."""

KINDS: Final[dict[str, type[PathDistribution]]] = {
    "ranges": Ranges,
    "traces": Traces,
    "fixed": Fixed,
    "named": Named,
    "indigo_links": IndigoLinks,
    "extended": Extended,
    "mixture": Mixture,
}
"""The distributions by ``kind``."""

Part.model_rebuild()
Extended.model_rebuild()
Mixture.model_rebuild()


class _Holder(BaseModel):
    model_config = ConfigDict(extra="forbid")

    paths: PathDistributionField


def read_distribution(value: object) -> PathDistribution:
    """Understand a distribution however it is given: a preset's name, a path, a mapping, or a distribution.

    Raises:
        ConfigError: It is none of these, or wrong.
    """
    if isinstance(value, PathDistribution):
        return value
    if isinstance(value, str):
        return _from_text(value)
    return _from_value(value)


@lru_cache(maxsize=64)
def _from_text(value: str) -> PathDistribution:
    return _from_value(value)


def _from_value(value: object) -> PathDistribution:
    data = {"paths": value}
    try:
        return _Holder.model_validate(data).paths
    except ValidationError as error:
        raise config_error(error, _Holder, Loaded(data)) from None


__all__ = [
    "DEFAULT_DURATION_NS",
    "KINDS",
    "PRESETS",
    "UNITS",
    "AnyDistribution",
    "Extended",
    "Fixed",
    "IndigoLinks",
    "Mixture",
    "Named",
    "Part",
    "PathDistribution",
    "PathDistributionField",
    "Ranges",
    "SampledPath",
    "Traces",
    "read_distribution",
]
