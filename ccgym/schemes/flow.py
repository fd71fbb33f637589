"""The description of a flow: which scheme, when, how far away, with how much to send.

Runs, environments and experiments all describe their flows with :class:`FlowSpec`; a flow that an agent steers is a
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
"""Fields that flows have not had from the start."""


class Flow(models.Flow):
    """What all flows have, however they are steered."""

    start: RandomTime = AT_ONCE
    """When it starts. An environment also takes a distribution that every episode draws from, like
    ``{uniform: [0s, 1s]}``."""
    rtt: TimeField | None = None
    """Its whole round-trip propagation time, not below the path's own. Absent: the path's."""
    handshake: bool | None = None
    """Whether a handshake comes before the data: it costs a round trip and gives the first round-trip sample. Absent:
    as the profile has it (``tcp`` and ``ns3``: yes, ``udp``: no)."""
    probability: float = Field(default=1.0, gt=0, le=1)
    """Probability that it takes part: every episode of an environment draws whether it does."""

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what came later and is absent: a flow keeps the digest that it always had."""
        plain: dict[str, Any] = handler(self)
        fields = models.Flow.model_fields
        absent = [name for name in LATER if name in plain and getattr(self, name) == fields[name].default]
        if isinstance(plain.get("source"), dict):
            plain["source"] = {name: value for name, value in plain["source"].items() if value is not None}
        return {name: value for name, value in plain.items() if name not in absent}

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        if self.rtt is not None and self.extra_rtt:
            raise ValueError("rtt and extra_rtt are both given; expected one of them")
        if self.stop is not None and self.stop <= self.latest_start_ns:
            raise ValueError(f"stop {format_time(self.stop)} is not after start {format_time(self.latest_start_ns)}")
        return self

    @property
    def packet_bytes(self) -> int:
        """IP bytes of a full packet."""
        return self.mss + self.header

    @property
    def start_ns(self) -> int:
        """When it starts, nanoseconds.

        Raises:
            ConfigError: Its start is a distribution, which only environments draw from.
        """
        if self.start.distribution != "constant":
            raise ConfigError(
                "wrong-type",
                f"the distribution {self.start.describe()} ms",
                where="start",
                expected="a time, such as 5s",
                hint="only the episodes of an environment draw their starts",
            )
        return round(self.start.values[0])

    @property
    def latest_start_ns(self) -> int:
        """The latest time at which it may start, nanoseconds."""
        return round(self.start.bounds()[1])

    def added_rtt(self, base_rtt_ns: int, where: str = "") -> int:
        """Nanoseconds of round-trip time added to the path's.

        Args:
            base_rtt_ns: The path's own propagation round trip.
            where: Which flow, for the error.
        """
        if self.rtt is None:
            return self.extra_rtt
        if self.rtt < base_rtt_ns:
            raise ConfigError(
                "out-of-range",
                f"rtt {format_time(self.rtt)} is shorter than the path's {format_time(base_rtt_ns)}",
                where=where,
                expected="the path's own round-trip time or more",
                hint="give the path the shortest round-trip time of all flows; extra_rtt suits any path",
            )
        return self.rtt - base_rtt_ns

    @property
    def direction(self) -> Direction:
        """The direction of each link that its data crosses."""
        return "downlink" if self.reverse else "uplink"

    def takes_part(self, rng: np.random.Generator) -> bool:
        """Whether it takes part in an episode; draws only where that is not certain."""
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

    Profile, packet size, initial window and source that a flow does not give are those that its scheme is carried by
    (:attr:`~ccgym.schemes.scheme.Scheme.transport`).
    """

    scheme: str
    """Name of its congestion-control scheme; parameters may follow, as in ``fixed_window:cwnd=100``. Also the name of
    a pretrained policy, a run directory or an exported ``.onnx`` file; ``FILE.py:CLASS``, a scheme in Python; on real
    paths also ``tcp:NAME``, the kernel's, ``quic:NAME``, a QUIC library's, and ``program:NAME``, one of others."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    """Parameters of the scheme that differ from its defaults."""
    source: models.SourceField = models.GreedySource()
    """What its application does; the short forms ``"greedy"``, ``"media"`` and ``"5MB"`` are understood. Absent: what
    its scheme is made for, ``greedy`` for most."""

    @property
    def choice(self) -> Scheme:
        """The scheme and its parameters."""
        return scheme_of(self.scheme, dict(self.params))

    @property
    def simulated_only(self) -> str | None:
        """What of it no real path has; None where real paths have all of it."""
        if self.ack_copies > 1 or self.ack_ahead or self.hide_loss:
            return "a receiver that misbehaves"
        if self.host != models.Host():
            return "a host"
        if self.send_buffer is not None:
            return "a send buffer"
        return "a source that makes several transfers" if self.makes_transfers else None

    @property
    def makes_transfers(self) -> bool:
        """Whether its source makes several transfers over its connection."""
        made = self.source
        return isinstance(made, models.RequestsSource) or (
            isinstance(made, models.PoissonSource) and made.size is not None
        )

    def resolved(self, where: str = "") -> FlowSpec:
        """The same flow with its scheme looked up: of a policy's name, scheme, parameters and transport follow.

        Raises:
            ConfigError: The scheme does not take these parameters, or the policy cannot be used.
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
        """The flow in the native core's specification (``crates/ccgym-run/src/spec.rs``).

        Args:
            base_rtt_ns: The path's own propagation round trip.
            where: Which flow, for errors.
            rng: Draws the start. Without it the start must be a time.
        """
        return {
            "scheme": self.scheme,
            "params": self.choice.native_params,
            "source": self.source.native(),
            **self._native(base_rtt_ns, where, rng),
        }


_SOURCE: Final[TypeAdapter[models.AnySource]] = TypeAdapter(models.SourceField)


class LearnerFlow(Flow):
    """A flow that an agent steers."""

    profile: Literal["udp", "tcp"] = "udp"
    """Transport: ``udp`` (datagrams with per-packet receipts) or ``tcp`` (reliable, as Linux)."""
    start_rate: RateField | None = None
    """Sending rate at the start, in place of the agent's own. A rate that the path's distribution draws comes first."""
    start_window: int | None = Field(default=None, ge=1)
    """Window at the start in packets, in place of the agent's own."""

    def native(
        self,
        base_rtt_ns: int,
        where: str = "learner",
        rng: np.random.Generator | None = None,
        start_rate_mbps: float | None = None,
    ) -> dict[str, Any]:
        """As :meth:`FlowSpec.native`; ``start_rate_mbps``: the starting rate that came with the path, if one did."""
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
    """A flow from its short forms, as it was written: a policy keeps its name or path.

    Args:
        flow: A :class:`FlowSpec`, a :class:`~ccgym.schemes.scheme.Scheme`, a scheme's name, or a mapping of the fields.
        where: What to call it in errors.

    Raises:
        ConfigError: A field is wrong; the message names it.
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
    """A checked flow from its short forms: ``"cubic"`` or ``{"scheme": "reno", "start": "5s"}``.

    Args:
        flow: As in :func:`read_flow`.
        where: What to call it in errors.

    Raises:
        ConfigError: Something in it is wrong; the message names the field.
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
            hint="only the episodes of an environment draw which flows take part",
        )
    return spec


def read_flows(flows: object, where: str = "flows") -> tuple[FlowSpec, ...]:
    """A list of flows in their short forms, checked and as they were written.

    Raises:
        ConfigError: It is not a list, or something in it is wrong.
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
    """The policies that resolved flows decide by, by key."""
    return {policy.key: policy for flow in flows if (policy := flow.choice.policy) is not None}


def python_of(flows: Iterable[FlowSpec]) -> dict[str, PythonClass]:
    """The schemes in Python of resolved flows, by key."""
    return {flow.scheme: python_classes.find(flow.scheme) for flow in flows if python_classes.is_key(flow.scheme)}
