"""The description of a flow: scheme, start, round-trip time, source and transport.

Runs, environments and experiments describe their flows with :class:`FlowSpec`. A flow that an agent controls is a
:class:`LearnerFlow`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)

from ccgym.config import models
from ccgym.config.declared import Direction, plain
from ccgym.config.quantities import RateField, TimeField
from ccgym.config.random_variables import TIME, RandomTime, RandomVariable
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, shown
from ccgym.schemes import policies, python_classes
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.python_classes import PythonClass
from ccgym.schemes.reading import read_scheme, scheme_of
from ccgym.schemes.scheme import Scheme
from ccgym.units import format_time

AT_ONCE: Final = RandomVariable(TIME, "constant", (0.0,), written="0s")


LATER: Final = ("route", "reverse", "send_buffer", "recovery", "ack_copies", "ack_ahead", "hide_loss", "host")
"""Fields that were added to flows in later versions."""


class Flow(models.Flow):
    """Fields of all flows."""

    start: RandomTime = AT_ONCE
    """Start time. In an environment, also a distribution from which every episode draws, such as
    ``{uniform: [0s, 1s]}``."""
    rtt: TimeField | None = None
    """Total round-trip propagation delay of the flow, at least the path's own delay. Default: the path's own delay."""
    handshake: bool | None = None
    """Whether a handshake precedes the data. It takes one round trip and gives the first RTT sample. Default: depends
    on the profile (``tcp`` and ``ns3``: yes, ``udp``: no)."""
    probability: float = Field(default=1.0, gt=0, le=1)
    """Probability that the flow takes part in an episode of an environment."""

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write the flow without later fields that have their default, so that its digest does not change."""
        plain: dict[str, Any] = handler(self)
        fields = models.Flow.model_fields
        absent = [name for name in LATER if name in plain and getattr(self, name) == fields[name].default]
        if isinstance(plain.get("source"), dict):
            plain["source"] = {name: value for name, value in plain["source"].items() if value is not None}
        return {name: value for name, value in plain.items() if name not in absent}

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        if self.rtt is not None and self.extra_rtt:
            raise ValueError("rtt and extra_rtt are both given; expected only one of them")
        if self.stop is not None and self.stop <= self.latest_start_ns:
            raise ValueError(f"stop {format_time(self.stop)} is not after start {format_time(self.latest_start_ns)}")
        return self

    @property
    def packet_bytes(self) -> int:
        """IP bytes of a full packet."""
        return self.mss + self.header

    @property
    def start_ns(self) -> int:
        """Start time, nanoseconds.

        Raises:
            ConfigError: The start is a distribution, which is possible only in environments.
        """
        if self.start.distribution != "constant":
            raise ConfigError(
                "wrong-type",
                f"the distribution {self.start.describe()} ms",
                where="start",
                expected="a time, such as 5s",
                hint="use a distribution only in environments, whose episodes draw the start",
            )
        return round(self.start.values[0])

    @property
    def latest_start_ns(self) -> int:
        """Latest possible start time, nanoseconds."""
        return round(self.start.bounds()[1])

    def added_rtt(self, base_rtt_ns: int, where: str = "") -> int:
        """Return the round-trip time added to the RTT of the path, nanoseconds.

        Args:
            base_rtt_ns: Round-trip propagation delay of the path.
            where: Name of the flow, for errors.
        """
        if self.rtt is None:
            return self.extra_rtt
        if self.rtt < base_rtt_ns:
            raise ConfigError(
                "out-of-range",
                f"rtt {format_time(self.rtt)} is shorter than the path's {format_time(base_rtt_ns)}",
                where=where,
                expected="at least the round-trip time of the path",
                hint="give the path the shortest RTT of all flows, or use extra_rtt, which is possible on every path",
            )
        return self.rtt - base_rtt_ns

    @property
    def direction(self) -> Direction:
        """The direction in which the flow's data crosses links."""
        return "downlink" if self.reverse else "uplink"

    def takes_part(self, rng: np.random.Generator) -> bool:
        """Return whether the flow takes part in an episode; draw only if its probability is below 1."""
        return self.probability == 1 or bool(rng.random() < self.probability)

    def _native(self, base_rtt_ns: int, where: str, rng: np.random.Generator | None) -> dict[str, Any]:
        return {
            **{name: plain(getattr(self, name)) for name in models.Flow.model_fields},
            "start": self.start_ns if rng is None else round(self.start.sampler()(rng)),
            "extra_rtt": self.added_rtt(base_rtt_ns, where),
            "transport": {"handshake": self.handshake},
        }


class FlowSpec(Flow):
    """A flow of a scheme.

    The scheme sets the defaults of profile, packet size, initial window and source
    (:attr:`~ccgym.schemes.scheme.Scheme.transport`).
    """

    scheme: str
    """Name of the congestion-control scheme, optionally with parameters, as in ``fixed_window:cwnd=100``. Or: a
    pretrained policy, a run directory or an exported ``.onnx`` file; ``FILE.py:CLASS``, a scheme in Python. On real
    paths also ``tcp:NAME`` (kernel), ``quic:NAME`` (QUIC library) and ``program:NAME`` (external program)."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    """Parameters of the scheme that differ from its defaults."""
    source: models.SourceField = models.GreedySource()
    """The application of the flow; short forms are ``"greedy"``, ``"media"`` and ``"5MB"``. Default: the source for
    which the scheme is made, mostly ``greedy``."""

    @property
    def choice(self) -> Scheme:
        """The scheme and its parameters."""
        return scheme_of(self.scheme, dict(self.params))

    @property
    def simulated_only(self) -> str | None:
        """A feature of the flow that real paths do not support; ``None`` if they support all of its features."""
        if self.ack_copies > 1 or self.ack_ahead or self.hide_loss:
            return "a receiver that misbehaves"
        if self.host != models.Host():
            return "a host"
        if self.send_buffer is not None:
            return "a send buffer"
        return "a source that makes several transfers" if self.makes_transfers else None

    @property
    def makes_transfers(self) -> bool:
        """Whether the source makes several transfers over its connection."""
        made = self.source
        return isinstance(made, models.RequestsSource) or (
            isinstance(made, models.PoissonSource) and made.size is not None
        )

    def resolved(self, where: str = "") -> FlowSpec:
        """Return a copy with the scheme resolved; for the name of a policy, with scheme, parameters and transport.

        Raises:
            ConfigError: The scheme does not accept these parameters, or the policy cannot be used.
            SchemeNotFoundError: No scheme has that name.
        """
        choice = self.choice.checked(where)
        changes: dict[str, Any] = {}
        if choice != self.choice:
            changes |= {"scheme": choice.name, "params": choice.params}
        changes |= {name: value for name, value in choice.transport.items() if name not in self.model_fields_set}
        if "source" in changes:
            changes["source"] = _SOURCE.validate_python(changes["source"])
        return self.model_copy(update=changes) if changes else self

    def native(self, base_rtt_ns: int, where: str = "", rng: np.random.Generator | None = None) -> dict[str, Any]:
        """Return the flow in the native core's specification (``crates/ccgym-run/src/spec.rs``).

        Args:
            base_rtt_ns: Round-trip propagation delay of the path.
            where: Name of the flow, for errors.
            rng: Draws the start. If ``None``, the start must be a time.
        """
        return {
            "scheme": self.scheme,
            "params": self.choice.native_params,
            "source": self.source.native(),
            **self._native(base_rtt_ns, where, rng),
        }


_SOURCE: Final[TypeAdapter[models.AnySource]] = TypeAdapter(models.SourceField)


class LearnerFlow(Flow):
    """A flow that an agent controls."""

    profile: Literal["udp", "tcp"] = "udp"
    """Transport: ``udp`` (datagrams, one receipt per packet) or ``tcp`` (reliable, as in Linux)."""
    start_rate: RateField | None = None
    """Sending rate at the start, in place of the agent's. A start rate drawn by the distribution has priority."""
    start_window: int | None = Field(default=None, ge=1)
    """Window at the start in packets, in place of the agent's."""

    def native(
        self,
        base_rtt_ns: int,
        where: str = "learner",
        rng: np.random.Generator | None = None,
        start_rate_mbps: float | None = None,
    ) -> dict[str, Any]:
        """Return the flow as in :meth:`FlowSpec.native`; ``start_rate_mbps``: start rate drawn with the path."""
        params: dict[str, Any] = {}
        if start_rate_mbps is not None:
            params["start_rate_mbps"] = start_rate_mbps
        elif self.start_rate is not None:
            params["start_rate_mbps"] = self.start_rate / 1e6
        if self.start_window is not None:
            params["start_cwnd"] = self.start_window
        return {
            "scheme": policies.SCHEME,
            "params": params,
            **self._native(base_rtt_ns, where, rng),
        }


def read_flow(flow: object, where: str = "flow") -> FlowSpec:
    """Read a flow in any form, without resolving its scheme: a policy keeps its name or path.

    Args:
        flow: A :class:`FlowSpec`, a :class:`~ccgym.schemes.scheme.Scheme`, a scheme's name, or a mapping of the fields.
        where: Name of the flow in errors.

    Raises:
        ConfigError: A field is wrong; the message contains its name.
    """
    if isinstance(flow, FlowSpec):
        return flow
    if isinstance(flow, str):
        flow = read_scheme(flow, where)
    if isinstance(flow, Scheme):
        flow = {"scheme": flow.name, "params": dict(flow.params)}
    elif isinstance(flow, Mapping) and isinstance(flow.get("scheme"), str) and ":" in flow["scheme"]:
        choice = read_scheme(flow["scheme"], where)
        flow = {**flow, "scheme": choice.name, "params": {**choice.params, **flow.get("params", {})}}
    elif not isinstance(flow, Mapping):
        raise ConfigError(
            "wrong-type",
            f"{shown(flow)} is not a flow",
            where=where,
            expected="a scheme's name, or a mapping like {'scheme': 'reno', 'start': '5s'}",
        )
    try:
        return FlowSpec.model_validate(flow)
    except ValidationError as error:
        raise config_error(error, FlowSpec).at(where) from None


def flow_spec(flow: object, where: str = "flow") -> FlowSpec:
    """Read and check a flow: ``"cubic"`` or ``{"scheme": "reno", "start": "5s"}``.

    Args:
        flow: As in :func:`read_flow`.
        where: Name of the flow in errors.

    Raises:
        ConfigError: A field is wrong; the message contains its name.
        SchemeNotFoundError: No scheme has that name.
    """
    spec = read_flow(flow, where).resolved(where)
    try:
        spec.start_ns  # noqa: B018 (a run does not draw its start)
    except ConfigError as error:
        raise error.at(where) from None
    if spec.probability < 1:
        raise ConfigError(
            "out-of-range",
            f"probability {spec.probability:g}",
            where=where,
            expected="1: the flow takes part",
            hint="use a probability only in environments, whose episodes draw the flows",
        )
    return spec


def read_flows(flows: object, where: str = "flows") -> tuple[FlowSpec, ...]:
    """Read and check a list of flows, without resolving their schemes.

    Raises:
        ConfigError: The value is not a list, or a flow is wrong.
        SchemeNotFoundError: No scheme has that name.
    """
    if flows is None:
        return ()
    if isinstance(flows, (str, Mapping)) or not isinstance(flows, Sequence):
        raise ConfigError(
            "wrong-type", shown(flows), where=where, expected="a list of flows", hint="write flows=['cubic']"
        )
    read = tuple(read_flow(flow, f"{where}[{place}]") for place, flow in enumerate(flows))
    for place, flow in enumerate(read):
        flow.resolved(f"{where}[{place}]")
    return read


def policies_of(flows: Iterable[FlowSpec]) -> dict[str, LearnedPolicy]:
    """Return the policies of resolved flows, by key."""
    return {policy.key: policy for flow in flows if (policy := flow.choice.policy) is not None}


def python_of(flows: Iterable[FlowSpec]) -> dict[str, PythonClass]:
    """Return the schemes in Python of resolved flows, by key."""
    return {flow.scheme: python_classes.find(flow.scheme) for flow in flows if python_classes.is_key(flow.scheme)}
