"""Distributions from which an environment draws its paths.

In YAML, ``paths:`` is one of

* the name of a file of ``configs/paths``: ``paths: aurora``;
* any one path, by name, mahimahi command line, YAML or trace file: ``paths: 77.72mbps``;
* a mapping with ``kind``:

  =================  ================================================================================
  ``ranges``         one bottleneck whose parameters are random variables (:mod:`ccgym.config.bottleneck`)
  ``traces``         one bottleneck with a delivery trace
  ``fixed``          one path
  ``named``          paths of the catalog (`ccgym paths`), or paths in any other form
  ``links``          several links in a row, each drawn from its own distribution
  ``extended``       another distribution, with more elements or other queues
  ``mixture``        other distributions, by weight
  =================  ================================================================================

* ``kind: stages``, a curriculum (:mod:`ccgym.config.curriculum`).

In Python::

    distribution = read_distribution("aurora")
    drawn = distribution.sample(rng)          # drawn.spec(), drawn.numbers, drawn.path()
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import override

from ccgym.config.bottleneck import QueueSize, QueueSizeField, Ranges, Traces
from ccgym.config.catalog import path_names
from ccgym.config.configurations import PACKAGED
from ccgym.config.declared import Strict, kinds_of
from ccgym.config.models import Delay, ElementField, Link
from ccgym.config.path import NetworkPath, PathField
from ccgym.config.random_variables import cumulative, pick, read_weights
from ccgym.config.sampled_path import (
    DEFAULT_DURATION_NS,
    UNITS,
    ParameterRow,
    PathDistribution,
    SampledPath,
    known_names,
    numbers_of_links,
    path_numbers,
    prefixed,
    slowest_of,
)
from ccgym.config.yaml_loader import Loaded, load_yaml, validate
from ccgym.errors import CcgymError, ConfigError, did_you_mean, shown


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Mapping[str, Any]]:
    """Return the distributions of ``configs/paths`` by name; ``source`` is the origin of each."""
    return {file.stem: load_yaml(file).data for file in sorted((PACKAGED / "paths").glob("*.yaml"))}


class _Listed(PathDistribution):
    """A distribution over a list of paths, each compiled once."""

    @property
    @abstractmethod
    def _paths(self) -> tuple[NetworkPath, ...]:
        """The paths."""

    def _weights(self) -> tuple[float, ...]:
        """Return the weight of each path; empty: equal weights."""
        return ()

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(self._weights() or (1.0,) * len(self._paths))

    @cached_property
    def _made(self) -> dict[tuple[int, int], SampledPath]:
        """Compiled paths by index and duration."""
        return {}

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        place = pick(self._places, rng) if len(self._places) > 1 else 0
        made = self._made.get((place, duration_ns))
        if made is None:
            made = SampledPath.of(self._paths[place], duration_ns)
            if len(self._made) > 4096:  # every reset draws a new duration
                self._made.clear()
            self._made[place, duration_ns] = made
        return made

    @override
    def rows(self) -> list[ParameterRow]:
        numbers = [path_numbers(path) for path in self._paths]
        rows: list[ParameterRow] = []
        for name, unit in UNITS.items():
            values = [one[name] for one in numbers if name in one]
            if values:
                words = "in steps" if len(set(values)) > 1 else f"{values[0]:.6g}"
                if len(values) < len(numbers):
                    words += f"; {len(numbers) - len(values)} paths without limit"
                short, shown_unit = (name, "") if unit == "fraction" else (name.rsplit("_", 1)[0], unit)
                row = ParameterRow(name=short, unit=shown_unit, low=min(values), high=max(values), distribution=words)
                rows.append(row)
        return rows


class Fixed(_Listed):
    """Always the same path."""

    kind: Literal["fixed"] = "fixed"
    path: PathField

    @property
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
    """Weight of each path. Default: equal weights."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        known_names(self.names, "names", NetworkPath.from_any)
        if self.weights:
            read_weights(self.weights, len(self.names))
        return self

    @cached_property
    def _paths(self) -> tuple[NetworkPath, ...]:
        return tuple(NetworkPath.from_any(name) for name in self.names)

    @override
    def _weights(self) -> tuple[float, ...]:
        return self.weights

    @override
    def summary(self) -> str:
        names = ", ".join(self.names[:6]) + (", …" if len(self.names) > 6 else "")
        return f"one of {len(self.names)} paths{' (weighted)' if self.weights else ''}: {names}"


class Links(PathDistribution):
    """Several links in a row, the sender's link first; flows have routes over them."""

    kind: Literal["links"] = "links"
    links: dict[str, PathDistributionField] = Field(min_length=1, max_length=1000)
    """Distribution of each link, in the order of the links, by the names that routes use."""

    @model_validator(mode="after")
    def _in_a_row(self) -> Self:
        self.sample(np.random.default_rng(0))  # refuses invalid names and nested links at once
        return self

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        drawn = {name: one.sample(rng, duration_ns) for name, one in self.links.items()}
        made = SampledPath.of(NetworkPath(links={name: one.path() for name, one in drawn.items()}), duration_ns)
        links = numbers_of_links((name, one.numbers) for name, one in drawn.items())
        return replace(made, numbers={**made.numbers, **slowest_of(links, drawn), **links})

    @override
    def rows(self) -> list[ParameterRow]:
        return [row for name, one in self.links.items() for row in prefixed(f"{name}: ", one.rows())]

    @override
    def summary(self) -> str:
        return f"{len(self.links)} links in a row ({'; '.join(f'{k}: {v.summary()}' for k, v in self.links.items())})"


class Part(Strict):
    """A part of a mixture."""

    weight: float = Field(default=1.0, gt=0, le=1e12)
    """Weight of the part, relative to the weights of the other parts."""
    paths: PathDistributionField


class Extended(PathDistribution):
    """Another distribution, with other queues, or with more elements at the sender's end of each path."""

    kind: Literal["extended"] = "extended"
    paths: PathDistributionField
    queue: QueueSizeField | None = None
    """Replaces the queues of ``ranges`` and ``traces``."""
    elements: tuple[ElementField, ...] = Field(default=(), max_length=100)
    """Elements as in a path, the outermost first. Write links that limit the rate in ``paths``."""

    @model_validator(mode="after")
    def _transparent(self) -> Self:
        if self.queue is None and not self.elements:
            raise ConfigError("key-missing", "extended paths without changes", expected="elements, or a queue")
        for place, element in enumerate(self.elements):
            if isinstance(element, (Delay, Link)):
                raise ConfigError("paths-unsuitable",
                    f"a {element.kind}", expected="elements that do not change rate and base RTT",
                    where=f"elements[{place}]",
                )  # fmt: skip
        _ = self._changed  # refuses distributions without a replaceable queue at once
        return self

    @cached_property
    def _changed(self) -> PathDistribution:
        """The other distribution, with its queues replaced."""
        return self.paths if self.queue is None else _with_queue(self.paths, self.queue)

    @cached_property
    def _made(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        compiled = NetworkPath(chain=self.elements).compile()
        return compiled.uplink, compiled.downlink

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        drawn = self._changed.sample(rng, duration_ns)
        if not self.elements:
            return drawn
        if drawn.links:
            raise ConfigError("paths-unsuitable",
                "elements around several links", where="elements", expected="elements around single links",
                hint="use `kind: extended` for single links in `kind: links`",
            )  # fmt: skip
        first, last = self._made
        elements = (*(drawn.origin if isinstance(drawn.origin, tuple) else drawn.path().chain), *self.elements)
        uplink, downlink = [*first, *drawn.uplink], [*drawn.downlink, *last]
        return replace(drawn, uplink=uplink, downlink=downlink, origin=elements)

    @override
    def rows(self) -> list[ParameterRow]:
        return self._changed.rows()

    @override
    def summary(self) -> str:
        added = [element.words() for element in self.elements if not isinstance(element, (Delay, Link))]
        return f"{self._changed.summary()}{', with ' if added else ''}{' and '.join(added)}"


def _with_queue(paths: PathDistribution, queue: QueueSize) -> PathDistribution:
    """Return the distribution with this queue in place of its own queue."""
    if isinstance(paths, (Ranges, Traces)):
        changes: dict[str, Any] = {"queue": queue}
    elif isinstance(paths, Mixture):
        changes = {"parts": [{"weight": part.weight, "paths": _with_queue(part.paths, queue)} for part in paths.parts]}
    elif isinstance(paths, Extended):
        changes = {"paths": _with_queue(paths.paths, queue)}
    else:
        raise ConfigError("paths-unsuitable",
            f"paths of kind {getattr(paths, 'kind', type(paths).__name__)}", where="paths",
            expected="paths with a replaceable queue: ranges, traces or mixtures of them",
        )  # fmt: skip
    return type(paths).model_validate({**dict(paths), **changes})


class Mixture(PathDistribution):
    """Other distributions, by weight."""

    kind: Literal["mixture"] = "mixture"
    parts: tuple[Part, ...] = Field(min_length=1, max_length=10_000)

    @cached_property
    def _places(self) -> tuple[float, ...]:
        return cumulative(part.weight for part in self.parts)

    @override
    def sample(self, rng: np.random.Generator, duration_ns: int = DEFAULT_DURATION_NS) -> SampledPath:
        return self.parts[pick(self._places, rng)].paths.sample(rng, duration_ns)

    @override
    def rows(self) -> list[ParameterRow]:
        return [row for place, part in enumerate(self.parts) for row in prefixed(f"parts[{place}].", part.paths.rows())]

    @override
    def summary(self) -> str:
        total = sum(part.weight for part in self.parts)
        parts = (f"{100 * part.weight / total:.3g} %: {part.paths.summary()}" for part in self.parts)
        return f"a mixture of {len(self.parts)} ({'; '.join(parts)})"


# --- Names and short forms --------------------------------------------------------------------------------------------


def _read(value: object) -> object:
    """Convert the short forms to mappings, and refuse an unknown ``kind`` with a suggestion."""
    if isinstance(value, str):
        if value in presets():
            return {key: part for key, part in presets()[value].items() if key != "source"}
        return {"kind": "fixed", "path": _one_path(value)}
    if isinstance(value, NetworkPath):
        return {"kind": "fixed", "path": value}
    if isinstance(value, Mapping):
        kind, kinds = value.get("kind"), f"kind: {', '.join(KINDS)}"
        if kind is not None:
            refuse_unknown_kind(kind, KINDS)
        elif {"rate", "trace", "mahimahi", "named", "chain", "links"}.isdisjoint(value):
            raise ConfigError("key-missing", "paths without kind", expected=kinds)
        else:
            hint = "write `kind: fixed` with `path:` for one path, or `kind: ranges` for drawn parameters"
            raise ConfigError("key-missing", "paths without kind", expected=kinds, hint=hint)
    return value


def refuse_unknown_kind(kind: object, kinds: Iterable[str]) -> None:
    """Raise :class:`ConfigError` if ``kind`` is none of ``kinds``."""
    known = tuple(kinds)
    if kind not in known:
        raise ConfigError(
            "unknown-kind",
            f"unknown kind of paths {shown(kind)}",
            expected=f"kind: {', '.join(known)}",
            hint=did_you_mean(str(kind), known),
            where="kind",
        )


def _one_path(text: str) -> NetworkPath:
    try:
        return NetworkPath.from_any(text)
    except CcgymError as error:
        hint = did_you_mean(text, presets()) or did_you_mean(text, path_names(), error.hint)
        raise ConfigError(
            "unknown-path",
            error.found,
            expected=f"paths: one of {', '.join(presets())}, a path of `ccgym paths`, or a mapping with kind",
            hint=hint,
        ) from None


AnyDistribution: TypeAlias = Ranges | Traces | Fixed | Named | Links | Extended | Mixture
"""All distributions."""

PathDistributionField: TypeAlias = Annotated[
    AnyDistribution,
    Field(discriminator="kind"),
    BeforeValidator(_read, json_schema_input_type=AnyDistribution | str | dict[str, Any]),
]
"""A distribution in a model, in any of the forms above except ``stages``."""

KINDS: Final[Mapping[str, type[Strict]]] = kinds_of(AnyDistribution)
"""The distributions by ``kind``."""

Links.model_rebuild()
Part.model_rebuild()
Extended.model_rebuild()
Mixture.model_rebuild()


class _Holder(Strict):
    paths: PathDistributionField


def read_distribution(value: object) -> PathDistribution:
    """Read a distribution in any form: the name of a preset, a path, a mapping, or a distribution.

    Raises:
        ConfigError: The value is none of these, or is invalid.
    """
    if isinstance(value, PathDistribution):
        return value
    return validate(Loaded({"paths": value}), _Holder).paths
