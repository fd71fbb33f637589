"""An agent that steers a flow, as users declare it: the section ``agent:`` of a configuration.

An agent is data: when it decides, what it sees, what it does, what it is rewarded for, how the flow starts and what
rescues it. The native core alone evaluates it, for training and for trained policies alike; this module reads it with
units and errors that say the line, and hands it over as JSON (:meth:`AgentConfig.native`).
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from typing_extensions import Self

from ccgym.config.agent_action import Action, with_known_kind
from ccgym.config.agent_expert import AnyExpert, SchemeExpert, read_expert
from ccgym.config.agent_observation import Feature, Observation, Strict, given
from ccgym.config.agent_reward import Reward
from ccgym.config.packet_rates import PACKET_RATE_UNITS, FlowRateField, parse_flow_rate
from ccgym.config.quantities import PeriodField, ProbabilityField, TimeField
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, PlatformError, did_you_mean, shown
from ccgym.units import NS_PER_MS, NS_PER_S, is_number, parse_size, parse_time

# --- When it decides ----------------------------------------------------------------------------------------------


class FixedClock(Strict):
    """Decide at equal distances."""

    kind: Literal["fixed"] = "fixed"
    interval: PeriodField
    """Time between decisions."""
    on_ack: bool = False
    """Decide at the first acknowledgement more than ``interval`` after the last decision, instead of by a timer."""
    tick: TimeField = 0
    """With ``on_ack``: compare times cut to whole ticks, as Indigo's clock of milliseconds does; 0 is exact."""


class RttClock(Strict):
    """Decide at multiples of a round trip."""

    kind: Literal["rtt"] = "rtt"
    multiple: float = Field(gt=0, le=1000)
    """Interval over round trip."""
    of: Literal["mean", "smoothed", "min"] = "mean"
    """Which: mean of the previous interval, smoothed (RFC 6298), or smallest."""
    floor: PeriodField = 10 * NS_PER_MS
    """Shortest interval."""
    ceiling: PeriodField | None = None
    """Longest interval; none by default. After a silence the mean round trip is as long as that was."""
    warm_up_rtts: float = Field(default=0.0, ge=0, le=1000)
    """Round trips before the first decision, which nothing records; the agent then sees an empty history."""
    first_rtts: float | None = Field(default=None, gt=0, le=1000)
    """Length of the first recorded interval in round trips; ``multiple`` by default."""
    no_ack: PeriodField = NS_PER_S
    """Interval while no acknowledgement has come."""


class PerAckClock(Strict):
    """Decide at acknowledgements."""

    kind: Literal["per_ack"] = "per_ack"
    every: int = Field(default=1, ge=1, le=2**31)
    """Acknowledgements per decision."""


AnyClock: TypeAlias = FixedClock | RttClock | PerAckClock
"""Every clock."""

_CLOCKS: Final = ("fixed", "rtt", "per_ack")
_RTTS: Final = re.compile(r"([0-9]*\.?[0-9]+)\s*rtts?", re.IGNORECASE)


def _read_clock(value: Any) -> Any:
    if isinstance(value, str):
        rtts = _RTTS.fullmatch(value.strip()) if len(value) < 100 else None
        if rtts is not None:
            return {"kind": "rtt", "multiple": float(rtts.group(1))}
        if value == "per_ack":
            return {"kind": "per_ack"}
    if isinstance(value, str) or is_number(value):
        parse_time(value)
        return {"kind": "fixed", "interval": value}
    return with_known_kind(value, _CLOCKS, "clock")


# --- How the flow starts ------------------------------------------------------------------------------------------


class StartAtRate(Strict):
    """Start with a rate."""

    kind: Literal["rate"] = "rate"
    rate: FlowRateField
    """The rate; a path distribution's ``start_rate`` replaces it."""


class StartWithWindow(Strict):
    """Start with a window."""

    kind: Literal["window"] = "window"
    packets: float = Field(default=10.0, ge=1, le=1e9)
    """The window, packets."""


class StartPerRtt(Strict):
    """Start with some packets at once, then at so many per round trip."""

    kind: Literal["packets_per_rtt"] = "packets_per_rtt"
    packets: float = Field(default=10.0, ge=1, le=1e9)
    """Packets."""


class SlowStart(Strict):
    """Double every round trip until a sign says to stop; the agent is not asked before."""

    kind: Literal["slow_start"] = "slow_start"
    packets: float = Field(default=10.0, ge=1, le=1e9)
    """First window, packets."""
    exit: tuple[Literal["loss", "plateau", "delay"], ...] = Field(default=("loss", "plateau", "delay"), min_length=1)
    """The signs: a loss, a delivery rate that no longer grows, a round trip that does."""


class StartAsInner(Strict):
    """Start as the scheme below does; the agent is not asked before that has left slow start."""

    kind: Literal["inner"] = "inner"


class NoStart(Strict):
    """Start as the scheme below does, the agent being asked from the first interval on."""

    kind: Literal["none"] = "none"


AnyStart: TypeAlias = StartAtRate | StartWithWindow | StartPerRtt | SlowStart | StartAsInner | NoStart
"""Every start."""

_STARTS: Final = tuple(cls.model_fields["kind"].default for cls in get_args(AnyStart))


def _read_start(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        if not text[:1].isdigit():
            if text == "rate" or text not in _STARTS:
                raise ConfigError(
                    "a start at a rate without rate" if text == "rate" else f"unknown start {shown(value)}",
                    expected=f"a rate like 3mbps, a window like 10p, or one of {', '.join(_STARTS)}",
                    hint=did_you_mean(text, _STARTS) if text != "rate" else "",
                )
            return {"kind": text}
        if text.endswith(PACKET_RATE_UNITS) or not text.endswith(("p", "pkt", "pkts", "packet", "packets")):
            parse_flow_rate(text)
            return {"kind": "rate", "rate": text}
        return {"kind": "window", "packets": parse_size(text).packets}
    return with_known_kind(value, _STARTS, "start")


# --- What rescues it ----------------------------------------------------------------------------------------------


class NoGuard(Strict):
    """Nothing rescues the flow."""

    kind: Literal["none"] = "none"


class FloorRecovery(Strict):
    """Lift a flow that stands at its lower bound although the path is clear."""

    kind: Literal["floor_recovery"] = "floor_recovery"
    steps: int = Field(default=20, ge=1, le=2**31)
    """Clear intervals at the lower bound before it is lifted."""
    loss: ProbabilityField = 0.05
    """An interval is clear up to this loss …"""
    latency_ratio: float = Field(default=1.2, ge=1)
    """… and up to this ratio of mean to smallest round trip."""
    lift: float = Field(default=0.5, gt=0, le=1)
    """Share of the greatest delivery rate that it is lifted to."""
    after_timeout: bool = True
    """Whether one clear interval is enough after a timeout."""


class Recovery(Strict):
    """Search upwards from a rate that is low for no visible reason, as slow start does."""

    kind: Literal["recovery"] = "recovery"
    share: float = Field(default=0.125, gt=0, le=1)
    """A rate is low up to this share of the greatest one that the path carried lately …"""
    near: float = Field(default=2.0, ge=1, le=1e6)
    """… and up to this multiple of the lower bound."""
    memory: PeriodField = 60 * NS_PER_S
    """How long "lately" is; silence does not count."""
    patience: PeriodField = 500 * NS_PER_MS
    """How long the rate must be low on a clear path before the first search."""
    loss: ProbabilityField = 0.1
    """A path is clear up to this loss over that time; a search ends where loss rises by more."""
    lift: float = Field(default=0.9, gt=0, le=1)
    """Share of the rate found that is held."""
    hold: PeriodField = NS_PER_S
    """How long it is held; doubles each time the agent falls back at once."""
    longest: PeriodField = 16 * NS_PER_S
    """Longest hold, longest wait between searches that find nothing, and how long a rate may be low on a path that is
    not clear (twice that the second time, then four times)."""


AnyGuard: TypeAlias = NoGuard | FloorRecovery | Recovery
"""Every guard."""

_GUARDS: Final = tuple(cls.model_fields["kind"].default for cls in get_args(AnyGuard))


def _read_guard(value: Any) -> Any:
    return with_known_kind({"kind": value} if isinstance(value, str) else value, _GUARDS, "guard")


class Phases(Strict):
    """Thresholds of the phases that features and reward terms may refer to."""

    window: int = Field(default=10, ge=1, le=10_000)
    """Intervals over which the greatest delivery rate is taken."""
    growth: float = Field(default=0.25, ge=0)
    """Growth of it below which an interval counts as flat."""
    plateau_steps: int = Field(default=3, ge=1, le=10_000)
    """Flat intervals that end start-up."""
    exit_queue: float | None = Field(default=None, ge=0)
    """A single one ends it if the mean round trip exceeds the smallest by more than this part of that; not if None."""
    reenter_growth: float = Field(default=0.25, ge=0)
    """Growth of it above its lowest value since start-up, from which on start-up begins again …"""
    reenter_steps: int = Field(default=2, ge=1, le=10_000)
    """… if it is seen in so many intervals in a row, without a queue."""


# --- All of it ----------------------------------------------------------------------------------------------------


class AgentConfig(Strict):
    """An agent.

    Raises:
        ConfigError: Something is missing, unknown or contradictory, here or in the core's eyes.
        UnitError: A quantity that cannot be read.
        PlatformError: The native core is not built.
    """

    name: str = Field(default="agent", min_length=1, max_length=100, pattern=r"[A-Za-z0-9][\w.+-]*")
    """Name."""
    clock: Annotated[AnyClock, Field(discriminator="kind"), BeforeValidator(_read_clock)]
    """When it decides: a clock, or short ``10ms`` (fixed), ``0.5 rtt``, ``per_ack``."""
    decision_latency: TimeField = 0
    """Time from a decision to its effect."""
    observation: Observation
    """What it sees."""
    action: Action
    """What it does."""
    reward: Reward = Reward()
    """What it is rewarded for."""
    startup: Annotated[AnyStart, Field(discriminator="kind"), BeforeValidator(_read_start)]
    """How the flow starts: a start, or short ``3mbps``, ``10p``, ``slow_start``, ``inner``."""
    guard: Annotated[AnyGuard, Field(discriminator="kind"), BeforeValidator(_read_guard)] = NoGuard()
    """What rescues it; a name alone is enough."""
    phases: Phases = Phases()
    """Thresholds of the phases."""
    min_rtt_window: int | None = Field(default=None, ge=1, le=100_000)
    """Intervals over which the smallest round trip is taken, for everything that says ``min_rtt``; the flow's life by
    default, which is wrong for ever where the path's round trip grows."""
    expert: Annotated[Annotated[AnyExpert, Field(discriminator="kind")] | None, BeforeValidator(read_expert)] = None
    """Who teaches it, for trainers that imitate; a kind's name alone is enough where that needs no more."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        self.check()
        return self

    def native(self) -> dict[str, Any]:
        """The core's ``AgentSpec``: times in nanoseconds, rates in bit/s, windows in packets."""
        return given(self)

    def json_text(self) -> str:
        """:meth:`native` as the text that the core takes."""
        return json.dumps(self.native(), allow_nan=False)

    def check(self) -> None:
        """Let the core check the agent; a model that exists has passed.

        Raises:
            ConfigError: With the key path of what the core refused.
            PlatformError: The native core is not built.
        """
        core = _core()
        expert = self.expert if isinstance(self.expert, SchemeExpert) else None
        for place, named in (("action.inner", self.action.inner), ("expert", expert)):
            if named is None:
                continue
            try:
                core.check_scheme(named.scheme, json.dumps(named.params))
            except ValueError as error:
                raise _refused(str(error), place) from None
        try:
            core.check_agent(self.json_text())
        except ValueError as error:
            raise _refused(str(error)) from None

    def describe(self) -> dict[str, Any]:
        """What the agent observes, does and optimizes, in the core's words.

        Returns:
            ``observation``: rows with index, name, unit, low, high and formula; ``action`` likewise; ``reward``: rows
            with name, unit, weight and formula; ``clock``, ``startup``, ``guard``: texts; ``expert``: text or ``None``.
        """
        described: dict[str, Any] = json.loads(_core().describe_agent(self.json_text()))
        return described


def vocabulary() -> dict[str, Any]:
    """All signals, transforms, maps and terms that the core knows, with unit, range and formula."""
    words: dict[str, Any] = json.loads(_core().agent_vocabulary())
    return words


def read_agent(value: object) -> AgentConfig:
    """Understand an agent given as mapping or model. Raises :class:`ConfigError`."""
    if isinstance(value, AgentConfig):
        return value
    try:
        return AgentConfig.model_validate(value)
    except ValidationError as error:
        raise config_error(error, AgentConfig) from None


def _core() -> Any:
    try:
        from ccgym import _core
    except ImportError as error:
        raise PlatformError(
            f"the native module ccgym._core is missing ({error})", expected="a built ccgym", hint="run `make setup`"
        ) from None
    return _core


def _refused(message: str, where: str = "") -> ConfigError:
    """Read the core's ``PLACE: found FOUND, expected EXPECTED; HINT``; ``where`` replaces its place."""
    match = re.fullmatch(r"([^:]+): found (.*), expected (.*?)(?:; ((?:did you mean|leave it) .*))?", message, re.S)
    if match is None:
        return ConfigError(message, expected="an agent that the native core accepts", where=where)
    place, found, expected, hint = match.groups()
    return ConfigError(found, expected=expected, hint=hint or "", where=where or place)


__all__ = ["AgentConfig", "Feature", "read_agent", "vocabulary"]
