"""The flows on an environment's path: those that learn, and those in the background."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ccgym.config.distribution_numbers import TIME, Number, TimeNumber
from ccgym.config.quantities import BytesField, PeriodField, RateField, TimeField
from ccgym.config.yaml_loader import config_error
from ccgym.emulation import kernel_tcp
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, shown
from ccgym.units import format_time

LEARNED = "learned"
"""Registry name of the scheme that an agent steers."""

KERNEL = "tcp:"
"""What the names of the kernel's own schemes begin with; only real paths have them."""


AT_ONCE = Number(TIME, "constant", (0.0,), written="0s")


class _Flow(BaseModel):
    """What learners and background flows have in common. Plain times are seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: TimeNumber = AT_ONCE
    """When it starts: a time, or a law that every episode draws from, like ``{uniform: [0s, 1s]}``."""
    stop: PeriodField | None = None
    """When it stops sending; at the end of the episode if absent."""
    rtt: TimeField | None = None
    """Its whole round-trip propagation time; at least the path's own. Absent: the path's."""
    extra_rtt: TimeField = 0
    """Round-trip propagation time of its own access link, beside the path's. Give this or ``rtt``."""
    mss: int = Field(default=1448, ge=1, le=65483)
    """Payload bytes of a full packet."""
    header: int = Field(default=52, ge=0, le=1000)
    """Header bytes of a packet from the IP header on."""

    @model_validator(mode="after")
    def _consistent(self) -> _Flow:
        if self.rtt is not None and self.extra_rtt:
            raise ValueError("rtt and extra_rtt are both given; expected one of them")
        if self.stop is not None and self.stop <= self.latest_start:
            raise ValueError(f"stop {format_time(self.stop)} is not after start {format_time(self.latest_start)}")
        return self

    @property
    def latest_start(self) -> int:
        """When it starts at the latest, nanoseconds."""
        return round(self.start.bounds()[1])

    def _native(self, base_rtt_ns: int, rng: np.random.Generator, where: str) -> dict[str, Any]:
        added = self.extra_rtt if self.rtt is None else self.rtt - base_rtt_ns
        if added < 0:
            raise ConfigError(
                f"rtt {format_time(self.rtt or 0)} is shorter than the path's {format_time(base_rtt_ns)}",
                where=where,
                expected="at least the path's own round-trip time",
                hint="give extra_rtt instead where paths are drawn",
            )
        return {
            "start": round(self.start.sampler()(rng)),
            "stop": self.stop,
            "extra_rtt": added,
            "mss": self.mss,
            "header": self.header,
        }


class LearnerFlow(_Flow):
    """A flow whose sender is the agent."""

    profile: Literal["tcp", "udp"] = "udp"
    """Transport: ``udp`` (datagrams with per-packet receipts) or ``tcp`` (reliable, as Linux)."""
    start_rate: RateField | None = None
    """Sending rate at the start, in place of the agent's own. A path distribution that draws one goes before it."""
    start_window: int | None = Field(default=None, ge=1)
    """Window at the start in packets, in place of the agent's own."""

    def native(
        self, base_rtt_ns: int, rng: np.random.Generator, start_rate_mbps: float | None = None, where: str = "learner"
    ) -> dict[str, Any]:
        """The flow as the simulator's specification has it.

        Args:
            base_rtt_ns: The path's own propagation round trip.
            rng: Draws the start, if a law is given.
            start_rate_mbps: The drawn sending rate at the start, if the path came with one.
            where: What to call the flow in errors.
        """
        params: dict[str, Any] = {}
        if start_rate_mbps is not None:
            params["start_rate_mbps"] = start_rate_mbps
        elif self.start_rate is not None:
            params["start_rate_mbps"] = self.start_rate / 1e6
        if self.start_window is not None:
            params["start_cwnd"] = self.start_window
        return {"scheme": LEARNED, "params": params, "profile": self.profile, **self._native(base_rtt_ns, rng, where)}


class BackgroundFlow(_Flow):
    """A flow of a known scheme that shares the path with the learners."""

    scheme: str
    """Name of its congestion-control scheme; parameters may follow, as in ``fixed_window:cwnd=100``."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    """Parameters of the scheme that differ from its defaults."""
    size: BytesField | None = None
    """Payload to send, like ``"5MB"``; without end if absent."""
    profile: Literal["tcp", "udp", "ns3"] = "tcp"
    """Transport."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"scheme": data}
        scheme = data.get("scheme") if isinstance(data, Mapping) else None
        if isinstance(scheme, str) and ":" in scheme and not scheme.startswith(KERNEL):
            name, *settings = data["scheme"].split(":")
            params = dict(data.get("params") or {})
            for setting in settings:
                key, equals, value = setting.partition("=")
                if not equals or not key.strip():
                    raise ConfigError(
                        f"{shown(setting)} is no parameter of a scheme",
                        expected="NAME:PARAMETER=VALUE, as in fixed_window:cwnd=100",
                    )
                params[key.strip()] = _number_or_text(value.strip())
            data = {**data, "scheme": name.strip(), "params": params}
        return data

    @model_validator(mode="after")
    def _known(self) -> BackgroundFlow:
        if self.is_kernel:
            _check_kernel(self.scheme, dict(self.params))
        else:
            _check_scheme(self.scheme, dict(self.params))
        return self

    @property
    def is_kernel(self) -> bool:
        """Whether the kernel's TCP carries it."""
        return self.scheme.startswith(KERNEL)

    def native(self, base_rtt_ns: int, rng: np.random.Generator, where: str = "flows") -> dict[str, Any]:
        """The flow as the simulator's specification has it; ``rng`` draws its start, if a law is given."""
        source = {"kind": "greedy"} if self.size is None else {"kind": "bytes", "bytes": self.size}
        return {
            "scheme": self.scheme,
            "params": dict(self.params),
            "profile": self.profile,
            "source": source,
            **self._native(base_rtt_ns, rng, where),
        }


def background_flows(flows: object, where: str = "flows") -> tuple[BackgroundFlow, ...]:
    """Read a list of background flows: names of schemes, or mappings like ``{"scheme": "bbr", "start": "5s"}``.

    Raises:
        ConfigError: It is no list, or something in it is wrong.
        SchemeNotFoundError: No scheme has that name.
    """
    if flows is None:
        return ()
    if isinstance(flows, (str, Mapping)) or not isinstance(flows, Sequence):
        raise ConfigError(shown(flows), where=where, expected="a list of flows", hint="write flows=['cubic']")
    return tuple(_one(flow, f"{where}[{place}]") for place, flow in enumerate(flows))


def _one(flow: object, where: str) -> BackgroundFlow:
    if isinstance(flow, BackgroundFlow):
        return flow
    if not isinstance(flow, (str, Mapping)):
        raise ConfigError(
            f"{shown(flow)} is no flow",
            where=where,
            expected="a scheme's name, or a mapping like {'scheme': 'reno', 'start': '5s'}",
        )
    try:
        return BackgroundFlow.model_validate(flow)
    except ValidationError as error:
        raise config_error(error, BackgroundFlow).at(where) from None
    except SchemeNotFoundError as error:
        raise error.at(where) from None


def _check_scheme(name: str, params: dict[str, Any]) -> None:
    from ccgym import _core

    known = [str(entry["name"]) for entry in json.loads(_core.schemes())]
    if name not in known or name == LEARNED:
        raise SchemeNotFoundError(
            f"no scheme for background flows is called {shown(name)}",
            expected=f"one of {', '.join(one for one in known if one != LEARNED)}",
            hint="" if name == LEARNED else did_you_mean(name, known, "`ccgym schemes` lists them"),
        )
    try:
        _core.check_scheme(name, json.dumps(params))
    except ValueError as error:
        raise ConfigError(str(error), hint="`ccgym schemes` lists the parameters of every scheme") from None


def _check_kernel(scheme: str, params: Mapping[str, Any]) -> None:
    reason = kernel_tcp.why_unavailable(scheme.removeprefix(KERNEL))
    if reason is not None:
        raise SchemeNotFoundError(
            f"{shown(scheme)} cannot be had: {reason}", hint="`ccgym doctor` lists those that can"
        )
    if params:
        raise ConfigError(
            f"{shown(scheme)} with {shown(dict(params))}", expected="a kernel's scheme without parameters"
        )


def _number_or_text(text: str) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, (bool, int, float)) else text
