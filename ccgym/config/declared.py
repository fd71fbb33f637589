"""What the models have in common that the native core declares (:mod:`ccgym.config.models`).

A declaration says type, unit, range, default and help of each parameter. Only what concerns several parameters is here.
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
"""``uplink`` carries the data: from the sender outwards. ``downlink`` carries the acknowledgements."""

DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
"""Both directions, that of the data first."""

MAX_ELEMENTS: Final = 100
"""Elements of a path; longer chains are refused."""

Short: TypeAlias = str | int | float | list[Any]
"""What a short form may be, for JSON Schema."""

_SLOT: Final = re.compile(r"\{(\w+)(?::([^|}]*)\|([^}]*))?\}")


class Strict(BaseModel):
    """Unknown keys and infinite numbers are errors, and nothing changes afterward."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Declared(Strict):
    """A model whose fields the native core declares."""

    WORDS: ClassVar[str] = ""
    """Describes it to people; ``{name}`` is a field as it is written, ``{name:yes|no}`` one of two texts."""

    def __repr_args__(self) -> Iterable[tuple[str, Any]]:
        return self.model_dump(mode="json", exclude_defaults=True).items()

    def native(self) -> dict[str, Any]:
        """All fields except those that are ``None``, as plain data in base units: what the core takes."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: plain(value) for name, value in values.items() if value is not None}

    def words(self) -> str:
        """A few words."""
        written = self.model_dump(mode="json")

        def text(slot: re.Match[str]) -> str:
            name, yes, no = slot.groups()
            value = getattr(self, name)
            if yes is not None:
                return str(yes if value else no)
            return value.words() if isinstance(value, Declared) else steps_in_words(written[name])

        return _SLOT.sub(text, self.WORDS)


def plain(value: Any) -> Any:
    """A field's value as plain data for the core."""
    if isinstance(value, (int, float, str)):  # most are, and asking for a model takes longer
        return value
    if isinstance(value, Declared):
        return value.native()
    if isinstance(value, Limit):
        return {name: size for name, size in value if size is not None}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return value


def steps_in_words(written: Any) -> str:
    """A value, or steps in time, as they are written."""
    if not isinstance(written, list):
        return "none" if written is None else str(written)
    first = ", ".join(f"{value} from {start}" for start, value in written[:4])
    return first + (f", … ({len(written)} steps)" if len(written) > 4 else "")


# --- Unions -------------------------------------------------------------------------------------------------------


def kinds_of(union: Any, tag: str = "kind") -> dict[str, Any]:
    """The models of a union by the value of their tag."""
    return {model.model_fields[tag].default: model for model in get_args(union)}


@dataclass(frozen=True)
class OneOf:
    """Metadata of a union of models: reads short forms, and refuses an unknown kind with a suggestion."""

    what: str
    """The noun for one of them, in errors."""
    short: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """Turns what a user may write, and the models by kind, into a mapping with the tag; the models check the rest."""
    tag: str = "kind"
    """The key that holds the kind."""

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
    """A path element: where a packet meets it, and what the core makes of it there."""

    direction: Direction = "uplink"
    """The packets that it concerns."""

    def concerns(self, direction: Direction) -> bool:
        """Whether packets of this direction meet it."""
        return self.direction in ("both", direction)

    def compiled(self, direction: Direction) -> dict[str, Any] | None:
        """The native ``ElementSpec`` for one direction, or ``None`` if packets of that direction pass untouched."""
        if not self.concerns(direction):
            return None
        native = self.native()
        del native["direction"]
        return native

    def describe(self, direction: Direction) -> str | None:
        """A few words for one direction, or ``None``."""
        return self.words() if self.concerns(direction) else None

    def mirrored(self) -> Self:
        """The same as it is for a flow in the other direction."""
        other = {"uplink": "downlink", "downlink": "uplink"}
        return self.model_copy(update={"direction": other.get(self.direction, self.direction)})


class DelayBase(Element):
    """A delay concerns both directions unless it says otherwise."""

    direction: Literal["both", "uplink", "downlink"] = "both"  # type: ignore[assignment]
    """The packets that it concerns; mahimahi's always concerns both."""


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
    """When one direction of a bottleneck may deliver: the core's ``schedule``."""

    if TYPE_CHECKING:
        queue: QueueBase
        overhead: int = 0
        device_packets: int = 0

    trace: str | None = Field(
        default=None, min_length=1, description="Delivery trace: a name of the catalog, or a file."
    )
    rate: RateSteps | None = Field(
        default=None,
        description="Or a rate without a file: wire bits per second, packets serialized one after the other.",
    )

    @model_validator(mode="after")
    def _one_schedule(self) -> Self:
        if (self.trace is None) == (self.rate is None):
            found = "both a trace and a rate" if self.trace is not None else "neither a trace nor a rate"
            raise ConfigError("exactly-one", found, expected="exactly one of the two")
        if self.trace is not None and self.device_packets:
            raise ConfigError("options-conflict", "device_packets with a trace", expected="them only with a rate")
        return self

    def in_packets(self, bdp_packets: Callable[[], Fraction]) -> Self:
        """The same with packets in place of bandwidth-delay products of the path."""
        sizes = {name: size for name, size in self.queue if isinstance(size, Limit) and size.bdp is not None}
        if not sizes:
            return self
        product = bdp_packets()
        queue = self.queue.model_copy(update={name: size.in_packets(product) for name, size in sizes.items()})
        return self.model_copy(update={"queue": queue})

    def compiled(self, once: bool) -> dict[str, Any]:
        """The native ``ElementSpec``."""
        native = self.native()
        trace, rate = native.pop("trace", None), native.pop("rate", None)
        schedule = {"kind": "rate", "rate": rate} if trace is None else {"kind": "trace", "name": trace, "once": once}
        return {"kind": "link", "schedule": schedule, **native}

    def describe(self) -> str:
        """A few words."""
        rate = self.model_dump(mode="json", include={"rate"})["rate"]
        schedule = f"trace {self.trace}" if self.trace is not None else f"link {steps_in_words(rate)}"
        return f"{schedule}, {self.queue.words()}"


class LinkBase(Declared):
    """A bottleneck of two directions, each of which may be open."""

    if TYPE_CHECKING:
        uplink: LinkDirectionBase | None = None
        downlink: LinkDirectionBase | None = None
        once: bool = False

    def toward(self, direction: Direction) -> LinkDirectionBase | None:
        """The given direction of the link."""
        return self.uplink if direction == "uplink" else self.downlink

    def in_packets(self, bdp_packets: Callable[[], Fraction]) -> Self:
        """The same with packets in place of bandwidth-delay products of the path."""
        links: dict[str, Any] = {
            way: link.in_packets(bdp_packets) for way in DIRECTIONS if (link := self.toward(way)) is not None
        }
        return self.model_copy(update=links)

    def compiled(self, direction: Direction) -> dict[str, Any] | None:
        """The native ``ElementSpec`` for one direction, or ``None`` if packets of that direction pass untouched."""
        link = self.toward(direction)
        return None if link is None else link.compiled(self.once)

    def describe(self, direction: Direction) -> str | None:
        """A few words for one direction, or ``None``."""
        link = self.toward(direction)
        return None if link is None else link.describe() + (" (once)" if self.once else "")

    def mirrored(self) -> Self:
        """The same as it is for a flow in the other direction."""
        return self.model_copy(update={"uplink": self.downlink, "downlink": self.uplink})


class TransferSizeBase(Declared):
    """A law of sizes, which the native core draws from for what draws outside a run, too."""

    def mean_bytes(self) -> float:
        """The mean, bytes. Raises ValueError where the values do not fit each other."""
        return _core.mean_size(json.dumps(self.native()))

    def sampler(self, uniform: Callable[[], float]) -> Callable[[], int]:
        """Draws sizes, bytes, from what ``uniform`` gives: numbers from 0 up to, not including, 1."""
        law = json.dumps(self.native())
        return lambda: _core.draw_size(law, uniform)


class FlowBase(Strict):
    """A flow; its form for the core depends on the path."""


class HostBase(Declared):
    """A host may be the name of one of :data:`HOSTS`."""

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
"""Hosts by name, as measured (``docs/guides/flows.md#hosts``)."""


# --- Agents -------------------------------------------------------------------------------------------------------


class OrName(Declared):
    """May be written as just a name."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "string"}]}


class FeatureBase(OrName):
    """A feature may be the name of a signal with usual bounds."""

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
                hint=f"without one: {', '.join(USUAL_BOUNDS)}, as they are",
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
"""Bounds and empty value of signals that are used as they are; the first three as PCC-RL publishes them."""


class InnerBase(OrName):
    """The scheme below may be its name."""

    @model_validator(mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        return {"scheme": value} if isinstance(value, str) else value
