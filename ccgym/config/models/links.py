"""Bottlenecks: when they deliver, and what waits there.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ccgym.config import declared
from ccgym.config.models.queues import Infinite, QueueField


class LinkDirection(declared.LinkDirectionBase):
    """One direction of a bottleneck: when it may deliver, and what waits."""

    queue: QueueField = Field(default=Infinite(), description="The queue.")
    overhead: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Bytes charged per packet on top of its IP length: mahimahi 4 (the TUN prefix), PPP 2.",
    )
    device_packets: int = Field(
        default=0,
        ge=0,
        le=2_147_483_647,
        description=(
            "With a rate: packets in a device buffer below the queue discipline, out of its sight (ns-3's net device "
            "queue). The packet in transmission counts in neither."
        ),
    )


class Link(declared.LinkBase):
    """A bottleneck in one or both directions (mahimahi's ``mm-link``)."""

    kind: Literal["link"] = "link"
    uplink: LinkDirection | None = Field(default=None, description="The direction of the data; none: no limit.")
    downlink: LinkDirection | None = Field(
        default=None, description="The direction of the acknowledgements; none: no limit."
    )
    once: bool = Field(
        default=False, description="Stop at the end of the traces instead of repeating them (mahimahi's `--once`)."
    )

    def toward(self, direction: declared.Direction) -> LinkDirection | None:
        """The given direction of the link."""
        return self.uplink if direction == "uplink" else self.downlink
