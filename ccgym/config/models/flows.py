"""Flows, however they are steered.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ccgym.config import declared
from ccgym.config.quantities import BytesField, PeriodField, TimeField


class Host(declared.HostBase):
    """A host with latency."""

    wakeup: TimeField = Field(
        default=0,
        description=(
            "The sender's loop serves a timer, its pacer's for instance, up to this late, at random; packets wake it "
            "at once. What fell due meanwhile leaves together."
        ),
    )
    batch: int = Field(
        default=1,
        ge=1,
        le=1000,
        description=(
            "Packets that a paced sender lets leave together, where its scheme does not say more (GSO). A receiver "
            "that acknowledges each packet acknowledges so many at once, if they come within 50 µs (GRO)."
        ),
    )
    busy: TimeField = Field(
        default=0,
        description=(
            "The sender's loop is blocked by other work: only once in each such period, at a random place of its first "
            "half, it reads what has come and sends what fell due."
        ),
    )


class Flow(declared.FlowBase):
    """A flow, however it is steered. Rates have their units; plain times are seconds."""

    stop: PeriodField | None = Field(default=None, description="End of sending; the end of the run if absent.")
    extra_rtt: TimeField = Field(
        default=0,
        description=(
            "Round-trip propagation time of its own access link, added to the path's; half of it counts in the one-way "
            "delay of data. Give this or `rtt`."
        ),
    )
    route: tuple[str, ...] = Field(
        default=(),
        description=(
            "Names of the links that it crosses, in the order in which its data does; acknowledgements come back over "
            "the same ones. Absent: all links of the path, in their order."
        ),
    )
    reverse: bool = Field(
        default=False,
        description="True if its data crosses its links in the other direction, that of other flows' acknowledgements.",
    )
    profile: Literal["tcp", "udp", "ns3"] = Field(
        default="tcp",
        description=(
            "Transport: `tcp` (reliable, as Linux), `udp` (datagrams with per-packet receipts) or `ns3` (reliable, as "
            "ns-3.37)."
        ),
    )
    ack_every: int = Field(default=1, ge=1, description="Acknowledge every n-th packet; 2: delayed acknowledgements.")
    ack_delay: TimeField = Field(default=40_000_000, description="… or after this time, whichever comes first.")
    quick_acks: int = Field(
        default=0,
        ge=0,
        description="Number of packets at the start that are acknowledged immediately anyway (Linux: 16).",
    )
    ack_copies: int = Field(
        default=1,
        ge=1,
        le=100,
        description=(
            "A receiver that misbehaves sends each acknowledgement so many times (ACK division, duplicate "
            "acknowledgements)."
        ),
    )
    ack_ahead: TimeField = Field(
        default=0,
        description=(
            "… acknowledges with each packet as many further ones as arrived in the latest so much time (optimistic "
            "acknowledgements, which hide loss, too)."
        ),
    )
    hide_loss: bool = Field(
        default=False, description="… or acknowledges all up to the newest packet, and reports no mark."
    )
    mss: int = Field(default=1448, ge=1, le=65_483, description="Payload bytes of a full packet.")
    header: int = Field(
        default=52,
        ge=0,
        le=1000,
        description="Header bytes of a packet from the IP header on; TCP with timestamps has 52.",
    )
    send_buffer: BytesField | None = Field(
        default=None,
        description=(
            "Bytes that the application may have written and that are not yet acknowledged; what is written and read, "
            "and the delay between the two, is then measured. A reliable profile and the source `greedy`; absent: no "
            "bound."
        ),
    )
    recovery: Literal["prr", "classic"] = Field(
        default="prr",
        description=(
            "Rule for sending during fast recovery, for schemes that leave it to the transport: `prr` (RFC 9937: a "
            "part of what arrives; with the profile `ns3` as ns-3.37 has it) or `classic` (RFC 6675: one segment, then "
            "nothing until no more than the reduced window is in flight)."
        ),
    )
    initial_window: int = Field(
        default=10, ge=1, description="Packets sent before the first acknowledgement (RFC 6928: 10)."
    )
    host: Host = Field(
        default=Host(),
        description="Its host: `program`, `kernel`, `quic`, or the parts of it with latency. Simulated only.",
    )
