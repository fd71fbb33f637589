"""The numbers of a run, and the columns of its tables.

``docs/reference/results.md`` is generated from these columns and from the fields of :class:`FlowRecord`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

from ccgym.config.display import html_table
from ccgym.evaluation.ccperf_metrics import CcperfMetrics
from ccgym.evaluation.metrics import RunMetrics

FLOW_COLUMN: Final = {"flow": "number of the flow, from 1, in the order in which flows were given"}
"""Column before the fields of a :class:`FlowRecord` in the table of flows."""

SERIES_COLUMNS: Final[Mapping[str, str]] = {
    "time_s": "end of the interval, seconds since the start of the run",
    **FLOW_COLUMN,
    "scheme": "name of its congestion-control scheme",
    "throughput_mbps": "IP packets that reached the receiver in the interval, Mbit/s (10⁶ bits)",
    "goodput_mbps": "payload that reached the receiver for the first time in the interval, Mbit/s",
    "sending_rate_mbps": "IP packets that the sender sent in the interval, retransmissions included, Mbit/s",
    "one_way_delay_ms": "mean one-way delay of the packets that left the path in the interval, ms; missing if none did,"
    " or if no packets were recorded",
    "one_way_delay_min_ms": "the smallest of these delays, ms; missing in the same case",
    "one_way_delay_max_ms": "the largest of these delays, ms; missing in the same case",
    "srtt_ms": "smoothed round-trip time at the end of the interval, ms; missing before the first sample",
    "cwnd_bytes": "congestion window at the end of the interval, bytes of IP packets; missing before the flow starts,"
    " and if the scheme has no window",
    "in_flight_bytes": "bytes of IP packets sent and not yet acknowledged or declared lost at the end of the interval;"
    " missing before the flow starts",
    "pacing_rate_mbps": "pacing rate at the end of the interval, Mbit/s; missing where packets are not paced",
    "lost_packets": "packets that the sender declared lost in the interval",
    "state": "state of the scheme at the end of the interval, with its name in the scheme's specification (`bbr` and"
    " `bbr3`); missing for other schemes, and before the flow starts",
    "queue_packets": "packets of all flows in the queue of the flow's bottleneck, mean of the recorded samples in the"
    " interval; missing where unknown: without a link, and with mahimahi",
    "queue_max_packets": "the largest of these samples; missing in the same case",
    "dropped_packets": "packets of all flows that this queue dropped in the interval; missing in the same case",
}
"""Columns of the table of series, one row per interval and flow."""

PACKET_COLUMNS: Final[Mapping[str, str]] = {
    **FLOW_COLUMN,
    "entered_s": "when the packet entered the path, seconds since the start of the run",
    "left_s": "when it left the path, seconds; missing if it was lost or still in flight at the end",
    "one_way_delay_ms": "time from entering to leaving the path, ms: propagation and queueing",
    "size_bytes": "length of the IP packet, bytes",
}
"""Columns of the table of packets: one row per packet of the data direction, in the order of entering."""


@dataclass(frozen=True)
class FlowRecord:
    """One flow's results. Mbit are 10⁶ bits; packets are full-size packets of the flow.

    Pantheon's four numbers are None in a run that recorded no packets.
    """

    scheme: str
    """Name of its congestion-control scheme."""
    start_s: float
    """When it started, seconds."""
    stop_s: float
    """When it stopped, seconds."""
    throughput_mbps: float | None
    """Pantheon's throughput: bits that left the path / (last − first departure), Mbit/s."""
    delay_p95_ms: float | None
    """Pantheon's 95th percentile of the one-way delay, ms; None if no packet left the path."""
    loss: float | None
    """Pantheon's loss, a fraction of the entered bytes; bytes in flight at the end count as lost."""
    ingress_mbps: float | None
    """Bits that entered the path / (last − first entry), Mbit/s."""
    mean_rtt_ms: float | None = None
    """Time mean of the smoothed round-trip time, ms; None without series."""
    min_rtt_ms: float | None = None
    """Minimum round-trip time that the sender measured, ms."""
    mean_cwnd_packets: float | None = None
    """Time mean of the congestion window, packets; None without series, and for external programs."""
    mean_in_flight_packets: float | None = None
    """Time mean of the unacknowledged data, packets; None without series, and for external programs."""
    goodput_mbps: float | None = None
    """Unique payload at the receiver / life of the flow, Mbit/s (ccperf's throughput). This and the next six are None
    in a run made by Pantheon, which logs only packets."""
    sent_packets: int | None = None
    """Data packets sent, retransmissions included."""
    lost_packets: int | None = None
    """Packets that the sender declared lost; this and the next four are 0 for external programs."""
    retransmissions: int | None = None
    """Packets sent again."""
    rtos: int | None = None
    """Retransmission timeouts."""
    recoveries: int | None = None
    """Episodes of fast recovery."""
    mean_recovery_ms: float | None = None
    """Mean time in fast recovery, ms; 0 if there was none."""
    completion_s: float | None = None
    """Seconds from the start to the last acknowledgement, for a flow of limited bytes that finished."""
    frame_delay_ms: float | None = None
    """Mean time from capture of a video frame to arrival of its last packet, ms, for completely received frames.
    This and the next three are None for a flow without a video encoder, and if no packets were recorded."""
    frame_delay_p95_ms: float | None = None
    """95th percentile of the same frame delays, ms."""
    frame_loss: float | None = None
    """Fraction of the captured frames that did not arrive completely: skipped, partly lost, or in flight at the end."""
    bit_rate_mbps: float | None = None
    """Mean payload rate of the encoder, Mbit/s."""
    transfers: int | None = None
    """Number of completely acknowledged transfers, for a source with several transfers. This and the next four are None
    for other sources."""
    transfer_ms: float | None = None
    """Mean time from the request or the arrival of a transfer to its last acknowledgement, ms."""
    transfer_p50_ms: float | None = None
    """Median of the same times, ms."""
    transfer_p95_ms: float | None = None
    """95th percentile of the same times, ms."""
    transfer_p99_ms: float | None = None
    """99th percentile of the same times, ms."""
    bottleneck: str | None = None
    """Name of the slowest link that its data crosses, if the path has several links or flows in both directions."""

    def __repr__(self) -> str:
        return f"FlowRecord({self.scheme}, {self.start_s:g} to {self.stop_s:g} s: {self.summary()})"

    def summary(self) -> str:
        """Return throughput, 95th percentile of the one-way delay, and loss on one line."""
        if self.throughput_mbps is None:
            return "" if self.goodput_mbps is None else f"goodput {self.goodput_mbps:.2f} Mbit/s"
        return flow_summary(self.throughput_mbps, self.delay_p95_ms, self.loss)


@dataclass(frozen=True)
class LinkRecord:
    """A link: the bottleneck of the data direction, or one of several."""

    capacity_mbps: float | None
    """Average capacity over the run, Mbit/s; None where the path has no link."""
    utilization: float | None
    """Total throughput / capacity; for one of several links, forwarded bits / capacity."""
    drops: int | None = None
    """Packets that its queue dropped; this and the next three are None in a run made by Pantheon."""
    forwarded_bytes: int | None = None
    """Wire bytes that it forwarded."""
    mean_queue_packets: float | None = None
    """Time mean of the queue's length, packets."""
    mean_queue_delay_ms: float | None = None
    """Mean time per packet in the queue, ms."""

    def __repr__(self) -> str:
        of = "" if self.capacity_mbps is None else f"{self.capacity_mbps:.2f} Mbit/s, "
        used = "" if self.utilization is None else f"{self.utilization:.1%} used, "
        queued = "" if self.drops is None else f"{self.drops} drops, mean queue {self.mean_queue_packets:.1f} packets"
        return f"LinkRecord({of}{used}{queued})"


@dataclass(frozen=True)
class RunNumbers:
    """The numbers of a run that its JSON contains."""

    path: str
    """The path, as :meth:`NetworkPath.describe` prints it."""
    seed: int | None
    """The root seed; None in a run made by Pantheon."""
    duration_s: float
    """Length of the run, seconds."""
    trajectory_hash: str
    """Hash of all events; equal hashes mean equal runs. Two runs in real time never have equal hashes."""
    flows: tuple[FlowRecord, ...]
    """The results of the flows, in the given order."""
    link: LinkRecord
    """The bottleneck of the data direction; with several links or flows in both directions, the first flow's."""
    metrics: Annotated[RunMetrics | None, Field(alias="pantheon")]
    """Pantheon's numbers, for all flows together and for each flow; None without packets."""
    ccperf_tables: Annotated[CcperfMetrics | None, Field(alias="ccperf")] = None
    """ccperf's numbers; None without series."""
    counters: Mapping[str, Any] = field(default_factory=dict)
    """The native core's counters, per flow and per path element."""
    # Records of versions that had only the simulator do not contain this field.
    backend: str = "sim"
    """The backend: ``sim``, ``emulated``, ``mahimahi`` or ``remote``; ``pantheon`` in a run made by Pantheon."""
    links: Mapping[str, LinkRecord] = field(default_factory=dict)
    """The links by name, if the path has several links or flows in both directions. ``NAME:reverse`` is the direction
    of the ACKs, and of the data of reverse flows. Empty for other paths."""
    path_report: Mapping[str, Any] | None = None
    """The report of a real path: release errors, drops in devices, whether the path was ``limited`` by the machine,
    flows that were ``unavailable``, ``notes``; between two machines, the ``clocks``; with mahimahi, the start of the
    ``traces``. None in the simulator."""

    @property
    def title(self) -> str:
        """Length, seed and backend of the run, as text."""
        where = "simulated" if self.backend == "sim" else self.backend
        return f"{self.duration_s:g} s, seed {self.seed}, {where}"

    @property
    def path_title(self) -> str:
        """The path on one line: its name, or its elements in the data direction."""
        first, *rest = self.path.split("\n")
        return rest[0].strip().removeprefix("data").strip() if rest and first == "unnamed path" else first

    def text(self) -> str:
        """Return the results of the run as text for one screen."""
        width = max((len(flow.scheme) for flow in self.flows), default=0)
        lines = [f"RunRecord: {self.title}", f"  path    {self.path_title}"]
        lines += [f"  flow {at}  {one.scheme:<{width}}  {one.summary()}" for at, one in enumerate(self.flows, start=1)]
        if self.metrics is not None and len(self.flows) > 1:
            total = self.metrics.total
            numbers = flow_summary(total.throughput_mbps, total.delay_p95_ms, total.loss)
            lines.append(f"  total   {'':<{width}}  {numbers}")
        return "\n".join(lines)

    def html(self, picture: str = "") -> str:
        """Return HTML for a notebook: a table of the flows, with a picture below it."""
        rows: list[tuple[str, Any]] = [(f"{at} {one.scheme}", one) for at, one in enumerate(self.flows, start=1)]
        if self.metrics is not None and len(self.flows) > 1:
            rows.append(("total", self.metrics.total))
        cells = [(name, *flow_cells(one.throughput_mbps, one.delay_p95_ms, one.loss)) for name, one in rows]
        return html_table(f"RunRecord: {self.path_title}, {self.title}", ("flow", *NUMBER_HEADS), cells, picture)


def flow_summary(throughput_mbps: float, delay_p95_ms: float | None, loss: float | None) -> str:
    """Return throughput, delay and loss on one line."""
    delay = "no packet arrived" if delay_p95_ms is None else f"p95 one-way delay {delay_p95_ms:.2f} ms"
    lost = "" if loss is None else f", loss {loss:.2%}".replace("%", " %")
    return f"{throughput_mbps:.2f} Mbit/s, {delay}{lost}"


NUMBER_HEADS: Final = ("throughput (Mbit/s)", "p95 one-way delay (ms)", "loss (%)")
"""Column heads for :func:`flow_cells`."""


def flow_cells(throughput_mbps: float | None, delay_p95_ms: float | None, loss: float | None) -> list[str]:
    """Return throughput, delay and loss as cells of a table; a dash for an unknown value."""
    percent = None if loss is None else 100 * loss
    return ["–" if value is None else f"{value:.2f}" for value in (throughput_mbps, delay_p95_ms, percent)]
