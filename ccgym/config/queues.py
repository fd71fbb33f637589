"""Queue disciplines as users write them: ``"94p"``, ``"30000B"``, ``"1.5bdp"``, ``"codel"`` or a mapping.

Each model compiles to a ``QueueSpec`` of the native core (``crates/ccgym-link/src/spec.rs``). A limit in
bandwidth-delay products becomes packets of 1500 bytes, rounded up, once the path is known.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator
from typing_extensions import override

from ccgym.config.quantities import PeriodField
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.units import NS_PER_MS, Size, format_size, format_time, is_number, parse_size


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limit(_Strict):
    """How much may wait. All limits that are given hold at once; none means no limit."""

    packets: int | None = Field(default=None, ge=1, le=2**32)
    """Packets."""
    bytes: int | None = Field(default=None, ge=1, le=2**48)
    """Wire bytes: IP length and the link's overhead per packet (4 with mahimahi)."""
    bdp: float | None = Field(default=None, gt=0, le=1e6)
    """Bandwidth-delay products of the path, resolved to packets of 1500 bytes, rounded up."""

    @property
    def unlimited(self) -> bool:
        """Whether nothing is limited."""
        return self.packets is None and self.bytes is None and self.bdp is None

    def compiled(self, bdp_packets: Fraction) -> dict[str, int]:
        """The native form.

        Args:
            bdp_packets: The path's bandwidth-delay product in packets of 1500 bytes.

        Raises:
            ConfigError: The limit is in bandwidth-delay products, and the path has none.
        """
        packets = self.packets
        if self.bdp is not None:
            if bdp_packets <= 0:
                raise ConfigError(
                    f"a queue of {self.bdp:g} bandwidth-delay products on a path without delay",
                    expected="a path with an RTT, or a queue in packets or bytes like '100p'",
                )
            share = max(1, math.ceil(Fraction(repr(self.bdp)) * bdp_packets))
            packets = share if packets is None else min(packets, share)
        return {name: size for name, size in (("packets", packets), ("bytes", self.bytes)) if size is not None}

    def __str__(self) -> str:
        sizes = (Size(packets=self.packets), Size(bytes=self.bytes), Size(bdp=self.bdp))
        return " and ".join(format_size(size) for size in sizes if size != Size()) or "unlimited"


def _limit(value: object) -> object:
    if isinstance(value, str) or is_number(value):
        size = parse_size(value)
        return Limit(packets=size.packets, bytes=size.bytes, bdp=size.bdp)
    return value


def _write_limit(limit: Limit) -> str | dict[str, Any]:
    given = limit.model_dump(exclude_none=True)
    return str(limit) if len(given) == 1 else given


LimitField: TypeAlias = Annotated[Limit, BeforeValidator(_limit), PlainSerializer(_write_limit)]


class _Discipline(_Strict):
    kind: str

    @abstractmethod
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        """The native ``QueueSpec``."""

    @abstractmethod
    def describe(self) -> str:
        """A few words."""


class Infinite(_Discipline):
    """Unbounded FIFO: mahimahi's default."""

    kind: Literal["infinite"] = "infinite"

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {"kind": self.kind}

    @override
    def describe(self) -> str:
        return "infinite queue"


class _Limited(_Discipline):
    limit: LimitField

    @model_validator(mode="after")
    def _needs_limit(self) -> _Limited:
        if self.limit.unlimited:
            raise ConfigError(
                f"{self.kind} without a limit", expected="a limit like '94p', '30000B' or '1bdp'", where="limit"
            )
        return self


class Droptail(_Limited):
    """FIFO that drops arrivals beyond its limit."""

    kind: Literal["droptail"] = "droptail"

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {"kind": self.kind, "limit": self.limit.compiled(bdp_packets)}

    @override
    def describe(self) -> str:
        return f"droptail {self.limit}"


class Drophead(_Limited):
    """FIFO that accepts, then drops from its head until the limit holds."""

    kind: Literal["drophead"] = "drophead"

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {"kind": self.kind, "limit": self.limit.compiled(bdp_packets)}

    @override
    def describe(self) -> str:
        return f"drophead {self.limit}"


def _whole_ms(time_ns: int, what: str) -> int:
    if time_ns % NS_PER_MS or time_ns == 0:
        raise ConfigError(
            f"{what} of {format_time(time_ns)}", expected="whole milliseconds above zero, as mahimahi counts"
        )
    return time_ns // NS_PER_MS


class MahimahiCodel(_Limited):
    """mahimahi's ``codel``, with its deviations from RFC 8289."""

    kind: Literal["mahimahi_codel"] = "mahimahi_codel"
    target: PeriodField
    """Target delay, whole milliseconds."""
    interval: PeriodField
    """Interval, whole milliseconds."""

    @model_validator(mode="after")
    def _milliseconds(self) -> MahimahiCodel:
        _whole_ms(self.target, "a target")
        _whole_ms(self.interval, "an interval")
        return self

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "limit": self.limit.compiled(bdp_packets),
            "target_ms": self.target // NS_PER_MS,
            "interval_ms": self.interval // NS_PER_MS,
        }

    @override
    def describe(self) -> str:
        target, interval = format_time(self.target), format_time(self.interval)
        return f"mahimahi's CoDel {self.limit} (target {target}, interval {interval})"


class MahimahiPie(_Limited):
    """mahimahi's ``pie``, with its deviations from RFC 8033 and a seeded random stream."""

    kind: Literal["mahimahi_pie"] = "mahimahi_pie"
    qdelay_ref: PeriodField
    """Reference delay, whole milliseconds."""
    max_burst: PeriodField
    """Burst allowance, whole milliseconds."""

    @model_validator(mode="after")
    def _milliseconds(self) -> MahimahiPie:
        _whole_ms(self.qdelay_ref, "a reference delay")
        _whole_ms(self.max_burst, "a burst allowance")
        return self

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "limit": self.limit.compiled(bdp_packets),
            "qdelay_ref_ms": self.qdelay_ref // NS_PER_MS,
            "max_burst_ms": self.max_burst // NS_PER_MS,
        }

    @override
    def describe(self) -> str:
        reference, burst = format_time(self.qdelay_ref), format_time(self.max_burst)
        return f"mahimahi's PIE {self.limit} (reference {reference}, burst {burst})"


class Codel(_Discipline):
    """CoDel as in RFC 8289."""

    kind: Literal["codel"] = "codel"
    limit: LimitField = Limit(packets=1000)
    """Tail-drop limit; Linux's default is 1000 packets."""
    target: PeriodField = 5 * NS_PER_MS
    """Target sojourn time (RFC: 5 ms)."""
    interval: PeriodField = 100 * NS_PER_MS
    """Interval (RFC: 100 ms)."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping."""

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "limit": self.limit.compiled(bdp_packets),
            "target": self.target,
            "interval": self.interval,
            "ecn": self.ecn,
        }

    @override
    def describe(self) -> str:
        target, interval = format_time(self.target), format_time(self.interval)
        return f"CoDel {self.limit} (target {target}, interval {interval}{', ECN' if self.ecn else ''})"


class FqCodel(_Discipline):
    """Flow queueing with CoDel as in RFC 8290."""

    kind: Literal["fq_codel"] = "fq_codel"
    limit: LimitField = Limit(packets=10240)
    """Limit over all flow queues (RFC: 10240 packets)."""
    target: PeriodField = 5 * NS_PER_MS
    """Target sojourn time (RFC: 5 ms)."""
    interval: PeriodField = 100 * NS_PER_MS
    """Interval (RFC: 100 ms)."""
    quantum: int = Field(default=1514, ge=1, le=2**31)
    """Bytes per round-robin turn (RFC: 1514)."""
    flows: int = Field(default=1024, ge=1, le=2**20)
    """Number of flow queues (RFC: 1024)."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping."""

    @override
    def compiled(self, bdp_packets: Fraction) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "limit": self.limit.compiled(bdp_packets),
            "target": self.target,
            "interval": self.interval,
            "quantum": self.quantum,
            "flows": self.flows,
            "ecn": self.ecn,
        }

    @override
    def describe(self) -> str:
        target, interval = format_time(self.target), format_time(self.interval)
        return f"FQ-CoDel {self.limit} (target {target}, interval {interval}{', ECN' if self.ecn else ''})"


AnyQueue: TypeAlias = Infinite | Droptail | Drophead | MahimahiCodel | MahimahiPie | Codel | FqCodel
"""Every queue discipline."""

KINDS: Final[dict[str, type[_Discipline]]] = {cls.model_fields["kind"].default: cls for cls in get_args(AnyQueue)}
"""The disciplines by ``kind``."""


def parse_queue(value: object) -> object:
    """Read a queue: a size (droptail), the name of a discipline with defaults, a mapping with ``kind``, or a model.

    Raises:
        ConfigError: An unknown discipline, or one that needs parameters.
        UnitError: A size without unit or with an unknown one.
    """
    if isinstance(value, str):
        name = value.strip()
        if not name[:1].isdigit() and name[:1] not in "+-.":
            return _by_name(name)
        return {"kind": "droptail", "limit": name}
    if is_number(value):
        parse_size(value)  # raises: it has no unit
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        _by_name(value["kind"], alone=False)
    return value


def _by_name(name: str, alone: bool = True) -> dict[str, Any]:
    cls = KINDS.get(name)
    if cls is None:
        hint = did_you_mean(name, KINDS)
        if name.casefold() == "pie":
            hint = "mahimahi's PIE is called mahimahi_pie; textbook PIE is not there"
        elif name.casefold() in ("fifo", "taildrop", "tail_drop", "drop_tail", "droptailqueue"):
            hint = "did you mean 'droptail'? A size alone, like '94p', is one"
        elif name.casefold() in ("red", "ared", "wred", "blue", "choke", "aqm"):
            hint = "the active queue management that is here: codel, fq_codel and mahimahi_pie"
        raise ConfigError(
            f"unknown queue {shown(name)}",
            expected=f"a size like '94p', '30000B' or '1bdp', or one of {', '.join(KINDS)}",
            hint=hint,
        )
    needed = [key for key, field in cls.model_fields.items() if field.is_required()]
    if alone and needed:
        raise ConfigError(
            f"queue {shown(name)} without {' and '.join(needed)}",
            expected="a mapping like {kind: " + name + ", " + ", ".join(f"{key}: …" for key in needed) + "}",
            hint="a size alone, like '94p' or '1bdp', is a droptail queue" if name == "droptail" else "",
        )
    return {"kind": name}


QueueField: TypeAlias = Annotated[AnyQueue, Field(discriminator="kind"), BeforeValidator(parse_queue)]
"""A queue discipline in a model."""

__all__ = [
    "KINDS",
    "AnyQueue",
    "Codel",
    "Drophead",
    "Droptail",
    "FqCodel",
    "Infinite",
    "Limit",
    "MahimahiCodel",
    "MahimahiPie",
    "QueueField",
    "parse_queue",
]
