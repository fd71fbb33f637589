"""Base classes of the models that the native core declares (:mod:`ccgym.config.models`).

A declaration contains type, unit, range, default and help of each parameter. Rules for several parameters are here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ccgym import _core
from ccgym.config.quantities import Limit, RateSteps
from ccgym.errors import ConfigError, did_you_mean, shown

Direction: TypeAlias = Literal["uplink", "downlink"]
"""``uplink`` carries the data from the sender. ``downlink`` carries the ACKs."""

DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
"""Both directions, the data direction first."""

MAX_ELEMENTS: Final = 100
"""Max number of elements of a path."""

Short: TypeAlias = str | int | float | list[Any]
"""Types of short forms, for JSON Schema."""

_SLOT: Final = re.compile(r"\{(\w+)(?::([^|}]*)\|([^}]*))?\}")


class Strict(BaseModel):
    """Base of immutable models; unknown keys and infinite numbers are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Declared(Strict):
    """A model whose fields the native core declares."""

    WORDS: ClassVar[str] = ""
    """Description for users; ``{name}`` is a field as written, ``{name:yes|no}`` one of two texts."""

    def __repr_args__(self) -> Iterable[tuple[str, Any]]:
        return self.model_dump(mode="json", exclude_defaults=True).items()

    def native(self) -> dict[str, Any]:
        """Return all fields that are not ``None``, as plain data in base units for the core."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: plain(value) for name, value in values.items() if value is not None}

    def words(self) -> str:
        """Describe the object in a few words."""
        written = self.model_dump(mode="json")

        def text(slot: re.Match[str]) -> str:
            name, yes, no = slot.groups()
            value = getattr(self, name)
            if yes is not None:
                return str(yes if value else no)
            return value.words() if isinstance(value, Declared) else steps_in_words(written[name])

        return _SLOT.sub(text, self.WORDS)


def plain(value: Any) -> Any:
    """Return the value of a field as plain data for the core."""
    if isinstance(value, (int, float, str)):  # most values; the check for a model is slower
        return value
    if isinstance(value, Declared):
        return value.native()
    if isinstance(value, Limit):
        return {name: size for name, size in value if size is not None}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return value


def steps_in_words(written: Any) -> str:
    """Return a value, or steps in time, as text."""
    if not isinstance(written, list):
        return "none" if written is None else str(written)
    first = ", ".join(f"{value} from {start}" for start, value in written[:4])
    return first + (f", … ({len(written)} steps)" if len(written) > 4 else "")


# --- Unions -------------------------------------------------------------------------------------------------------


def kinds_of(union: Any, tag: str = "kind") -> dict[str, Any]:
    """Return the models of a union, by the value of their tag."""
    return {model.model_fields[tag].default: model for model in get_args(union)}


@dataclass(frozen=True)
class OneOf:
    """Metadata of a union of models: reads short forms, and refuses an unknown kind with a suggestion."""

    what: str
    """Noun for a member of the union, in errors."""
    short: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """Converts a short form, given the models by kind, to a mapping with the tag; the models check the rest."""
    tag: str = "kind"
    """The key of the kind."""

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds = kinds_of(union, self.tag)
        article = "an" if self.what[0] in "aeiou" else "a"

        def read(value: Any) -> Any:
            if self.short is not None:
                value = self.short(value, kinds)
            tagged = value.get(self.tag) if isinstance(value, dict) else None
            if isinstance(value, dict) and (not isinstance(tagged, str) or tagged not in kinds):
                kind, expected = value.get(self.tag), f"{self.tag}: " + ", ".join(kinds)
                if kind is None:
                    raise ConfigError("key-missing", f"{article} {self.what} without `{self.tag}`", expected=expected)
                hint = did_you_mean(str(kind), kinds)
                raise ConfigError(
                    "unknown-kind", f"unknown {self.what} {shown(kind)}", expected=expected, hint=hint, where=self.tag
                )
            return value

        reads = BeforeValidator(read)
        if self.short is not None:
            reads = BeforeValidator(read, json_schema_input_type=union | Short)
        return handler.generate_schema(Annotated[union, Field(discriminator=self.tag), reads])


# --- Path elements and queues -------------------------------------------------------------------------------------


class Element(Declared):
    """A path element: the direction of its packets, and its form for the core."""

    direction: Direction = "uplink"
    """The direction of the packets that the element affects."""

    def concerns(self, direction: Direction) -> bool:
        """Return whether the element affects packets of this direction."""
        return self.direction in ("both", direction)

    def compiled(self, direction: Direction) -> dict[str, Any] | None:
        """Return the native ``ElementSpec`` for one direction; ``None`` if packets of this direction are unaffected."""
        if not self.concerns(direction):
            return None
        native = self.native()
        del native["direction"]
        return native

    def describe(self, direction: Direction) -> str | None:
        """Describe one direction in a few words; ``None`` if packets of this direction are unaffected."""
        return self.words() if self.concerns(direction) else None

    def mirrored(self) -> Self:
        """Return the element for a flow in the other direction."""
        other = {"uplink": "downlink", "downlink": "uplink"}
        return self.model_copy(update={"direction": other.get(self.direction, self.direction)})


class DelayBase(Element):
    """A delay; by default, it affects both directions."""

    direction: Literal["both", "uplink", "downlink"] = "both"  # type: ignore[assignment]
    """The direction of the packets that the delay affects; in mahimahi, always both."""


class QueueBase(Declared):
    """A queue discipline."""

    @model_validator(mode="after")
    def _limited(self) -> Self:
        limit = getattr(self, "limit", None)
        if isinstance(limit, Limit) and limit.unlimited:
            kind = getattr(self, "kind", "queue")
            raise ConfigError(
                "key-missing", f"{kind} without a limit", expected="a limit like '94p' or '1bdp'", where="limit"
            )
        return self


class LinkDirectionBase(Declared):
    """Delivery times of one direction of a bottleneck: the core's ``schedule``."""

    if TYPE_CHECKING:
        queue: QueueBase
        overhead: int = 0
        device_packets: int = 0

    trace: str | None = Field(
        default=None, min_length=1, description="Delivery trace: a name of the catalog, or a file."
    )
    rate: RateSteps | None = Field(
        default=None,
        description="A rate in place of a trace: wire bits per second, packets serialized one after the other.",
    )

    @model_validator(mode="after")
    def _one_schedule(self) -> Self:
        if (self.trace is None) == (self.rate is None):
            found = "both a trace and a rate" if self.trace is not None else "neither a trace nor a rate"
            raise ConfigError("exactly-one", found, expected="exactly one of the two")
        if self.trace is not None and self.device_packets:
            raise ConfigError("options-conflict", "device_packets with a trace", expected="device_packets with a rate")
        return self

    def in_packets(self, bdp_packets: Callable[[], Fraction]) -> Self:
        """Return a copy with limits in packets in place of bandwidth-delay products of the path."""
        sizes = {name: size for name, size in self.queue if isinstance(size, Limit) and size.bdp is not None}
        if not sizes:
            return self
        product = bdp_packets()
        queue = self.queue.model_copy(update={name: size.in_packets(product) for name, size in sizes.items()})
        return self.model_copy(update={"queue": queue})

    def compiled(self, once: bool) -> dict[str, Any]:
        """Return the native ``ElementSpec``."""
        native = self.native()
        trace, rate = native.pop("trace", None), native.pop("rate", None)
        schedule = {"kind": "rate", "rate": rate} if trace is None else {"kind": "trace", "name": trace, "once": once}
        return {"kind": "link", "schedule": schedule, **native}

    def describe(self) -> str:
        """Describe the direction in a few words."""
        rate = self.model_dump(mode="json", include={"rate"})["rate"]
        schedule = f"trace {self.trace}" if self.trace is not None else f"link {steps_in_words(rate)}"
        return f"{schedule}, {self.queue.words()}"


class LinkBase(Declared):
    """A bottleneck with two directions; each direction can be without limit."""

    if TYPE_CHECKING:
        uplink: LinkDirectionBase | None = None
        downlink: LinkDirectionBase | None = None
        once: bool = False

    def toward(self, direction: Direction) -> LinkDirectionBase | None:
        """Return the given direction of the link."""
        return self.uplink if direction == "uplink" else self.downlink

    def in_packets(self, bdp_packets: Callable[[], Fraction]) -> Self:
        """Return a copy with limits in packets in place of bandwidth-delay products of the path."""
        links: dict[str, Any] = {
            way: link.in_packets(bdp_packets) for way in DIRECTIONS if (link := self.toward(way)) is not None
        }
        return self.model_copy(update=links)

    def compiled(self, direction: Direction) -> dict[str, Any] | None:
        """Return the native ``ElementSpec`` for one direction; ``None`` if packets of this direction are unaffected."""
        link = self.toward(direction)
        return None if link is None else link.compiled(self.once)

    def describe(self, direction: Direction) -> str | None:
        """Describe one direction in a few words; ``None`` if packets of this direction are unaffected."""
        link = self.toward(direction)
        return None if link is None else link.describe() + (" (once)" if self.once else "")

    def mirrored(self) -> Self:
        """Return the element for a flow in the other direction."""
        return self.model_copy(update={"uplink": self.downlink, "downlink": self.uplink})


class TransferSizeBase(Declared):
    """A law of transfer sizes. The native core draws all sizes, also outside a run."""

    def mean_bytes(self) -> float:
        """Return the mean, bytes. Raises ValueError if the values do not match each other."""
        return _core.mean_size(json.dumps(self.native()))

    def sampler(self, uniform: Callable[[], float]) -> Callable[[], int]:
        """Return a function that draws sizes, bytes; ``uniform`` returns numbers from 0 to below 1."""
        law = json.dumps(self.native())
        return lambda: _core.draw_size(law, uniform)


class FlowBase(Strict):
    """Base of flows. The form of a flow for the core depends on the path."""


class HostBase(Declared):
    """A host; it can be given as a name of :data:`HOSTS`."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value not in HOSTS:
            raise ConfigError(
                "unknown-kind",
                f"unknown host {shown(value)}",
                expected=f"{', '.join(HOSTS)}, or a mapping like {{wakeup: 1ms}}",
                hint=did_you_mean(value, HOSTS),
            )
        return HOSTS[value]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"enum": list(HOSTS)}]}


HOSTS: Final[dict[str, dict[str, Any]]] = {
    "program": {"wakeup": "1ms", "busy": "100us"},
    "kernel": {"wakeup": "20us", "batch": 2},
    "quic": {"wakeup": "2ms", "batch": 10, "busy": "100us"},
}
"""Hosts by name, with measured values (``docs/guides/flows.md#hosts``)."""


# --- Agents -------------------------------------------------------------------------------------------------------


class OrName(Declared):
    """Base of models that can be given as a name only."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "string"}]}


class FeatureBase(OrName):
    """A feature; it can be given as the name of a signal with usual bounds."""

    @model_validator(mode="before")
    @classmethod
    def _usual_bounds(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"signal": value}
        if not isinstance(value, dict) or value.get("clip") is not None or not isinstance(value.get("signal"), str):
            return value
        changed = {"minus", "over", "log", "scale"}.intersection(value)
        usual = USUAL_BOUNDS.get(value["signal"].strip())
        if changed or usual is None:
            raise ConfigError(
                "key-missing",
                f"{value['signal']} without clip",
                expected="clip: [min, max], the bounds of the observation space",
                hint=f"clip is optional only for unchanged signals of: {', '.join(USUAL_BOUNDS)}",
            )
        bounds, empty = usual
        return {"empty": empty, **value, "clip": list(bounds)}


USUAL_BOUNDS: Final[dict[str, tuple[tuple[float, float], float]]] = {
    "rtt_inflation": ((-1.0, 10.0), 0.0),
    "latency_ratio": ((1.0, 10_000.0), 1.0),
    "send_ratio": ((0.0, 1000.0), 1.0),
    "recv_ratio": ((0.0, 1000.0), 1.0),
    "loss_fraction": ((0.0, 1.0), 0.0),
    "undelivered_fraction": ((0.0, 1.0), 0.0),
    "ce_fraction": ((0.0, 1.0), 0.0),
    "app_limited": ((0.0, 1.0), 0.0),
    "phase_startup": ((0.0, 1.0), 0.0),
    "phase_drain": ((0.0, 1.0), 0.0),
    "phase_probe": ((0.0, 1.0), 0.0),
}
"""Bounds and empty value of unchanged signals; for the first three, the published values of PCC-RL."""


class InnerBase(OrName):
    """The inner scheme of an agent; it can be given as a name."""

    @model_validator(mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        return {"scheme": value} if isinstance(value, str) else value
