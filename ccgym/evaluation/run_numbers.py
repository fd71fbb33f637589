"""The numbers of a run, and the columns of its tables.

``docs/reference/results.md`` is made from the columns here and from the fields of :class:`FlowRecord`.
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
"""What stands before the fields of a :class:`FlowRecord` in the table of flows."""

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
    " and where there is none",
    "in_flight_bytes": "sent and not yet acknowledged or declared lost at the end of the interval, bytes of IP packets;"
    " missing before the flow starts",
    "pacing_rate_mbps": "pacing rate at the end of the interval, Mbit/s; missing where packets are not paced",
    "lost_packets": "packets that the sender declared lost in the interval",
    "state": "state that the scheme is in at the end of the interval, by the name of its specification (of `bbr` and"
    " `bbr3`); missing for others, and before the flow starts",
    "queue_packets": "packets of all flows in the queue of the flow's bottleneck, mean of the recorded samples in the"
    " interval; missing where nothing tells: without a link, and with mahimahi",
    "queue_max_packets": "the largest of these samples; missing in the same case",
    "dropped_packets": "packets of all flows that this queue dropped in the interval; missing in the same case",
}
"""Columns of the table of series, one row per interval and flow."""

PACKET_COLUMNS: Final[Mapping[str, str]] = {
    **FLOW_COLUMN,
    "entered_s": "when the packet entered the path, seconds since the start of the run",
    "left_s": "when it left the path, seconds; missing for one that was lost or still on its way at the end",
    "one_way_delay_ms": "time between the two, ms: propagation and queueing",
    "size_bytes": "length of the IP packet, bytes",
}
"""Columns of the table of packets: those of the data direction, one row each, in the order in which they entered."""


@dataclass(frozen=True)
class FlowRecord:
    """One flow's results. Mbit are 10⁶ bits; packets are those of the flow's own full size.

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
    """Pantheon's 95th percentile of the one-way delay, ms; None when nothing left."""
    loss: float | None
    """Pantheon's loss, a fraction of the entered bytes; what is in flight at the end counts as lost."""
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
    """Unique payload at the receiver / life of the flow, Mbit/s (ccperf's throughput); None, as the next six, in a run
    of Pantheon's, which logged packets only."""
    sent_packets: int | None = None
    """Data packets sent, retransmissions included."""
    lost_packets: int | None = None
    """Packets that the sender declared lost; 0 for external programs, as in the next four."""
    retransmissions: int | None = None
    """Packets sent again."""
    rtos: int | None = None
    """Retransmission timeouts."""
    recoveries: int | None = None
    """Episodes of fast recovery."""
    mean_recovery_ms: float | None = None
    """Mean stay in fast recovery, ms; 0 without one."""
    completion_s: float | None = None
    """Seconds from the start to the last acknowledgement, for a flow of limited bytes that finished."""
    frame_delay_ms: float | None = None
    """Mean time from the capture of a video frame to the arrival of its last packet, ms, of frames that arrived whole;
    this and the next three are None for a flow without a video encoder, and where no packets were recorded."""
    frame_delay_p95_ms: float | None = None
    """95th percentile of the same, ms."""
    frame_loss: float | None = None
    """Fraction of the captured frames that did not arrive whole: skipped, lost in part, or on their way at the end."""
    bit_rate_mbps: float | None = None
    """Mean payload rate of the encoder, Mbit/s."""
    transfers: int | None = None
    """Transfers that were acknowledged in full, of a source that makes several; this and the next four are None for
    other sources."""
    transfer_ms: float | None = None
    """Mean time from the request or the arrival of a transfer to its last acknowledgement, ms."""
    transfer_p50_ms: float | None = None
    """Median of the same, ms."""
    transfer_p95_ms: float | None = None
    """95th percentile of the same, ms."""
    transfer_p99_ms: float | None = None
    """99th percentile of the same, ms."""
    bottleneck: str | None = None
    """Name of the slowest link that its data crosses, on a path of several links or with flows in both directions."""

    def __repr__(self) -> str:
        return f"FlowRecord({self.scheme}, {self.start_s:g} to {self.stop_s:g} s: {self.summary()})"

    def summary(self) -> str:
        """Throughput, 95th percentile of the one-way delay, and loss, on one line."""
        if self.throughput_mbps is None:
            return "" if self.goodput_mbps is None else f"goodput {self.goodput_mbps:.2f} Mbit/s"
        return flow_summary(self.throughput_mbps, self.delay_p95_ms, self.loss)


@dataclass(frozen=True)
class LinkRecord:
    """A link: the bottleneck of the data direction, or one of several."""

    capacity_mbps: float | None
    """Average capacity over the run, Mbit/s; None where the path has no link."""
    utilization: float | None
    """Total throughput / capacity; of one of several links, what it forwarded / capacity."""
    drops: int | None = None
    """Packets its queue dropped; None, as the next three, in a run of Pantheon's."""
    forwarded_bytes: int | None = None
    """Wire bytes it forwarded."""
    mean_queue_packets: float | None = None
    """Time mean of the queue's length, packets."""
    mean_queue_delay_ms: float | None = None
    """Mean sojourn per packet, ms."""

    def __repr__(self) -> str:
        of = "" if self.capacity_mbps is None else f"{self.capacity_mbps:.2f} Mbit/s, "
        used = "" if self.utilization is None else f"{self.utilization:.1%} used, "
        queued = "" if self.drops is None else f"{self.drops} drops, mean queue {self.mean_queue_packets:.1f} packets"
        return f"LinkRecord({of}{used}{queued})"


@dataclass(frozen=True)
class RunNumbers:
    """What JSON has of a run."""

    path: str
    """The path, as :meth:`NetworkPath.describe` prints it."""
    seed: int | None
    """The root seed; None in a run of Pantheon's."""
    duration_s: float
    """Length of the run, seconds."""
    trajectory_hash: str
    """Hash of everything that happened; equal hashes mean equal runs. Runs in real time never repeat theirs."""
    flows: tuple[FlowRecord, ...]
    """In the order in which they were given."""
    link: LinkRecord
    """The bottleneck of the data direction; with several links or flows in both directions, that of the first flow."""
    metrics: Annotated[RunMetrics | None, Field(alias="pantheon")]
    """Pantheon's numbers, all flows together and each; None without packets."""
    ccperf_tables: Annotated[CcperfMetrics | None, Field(alias="ccperf")] = None
    """ccperf's numbers; None without series."""
    counters: Mapping[str, Any] = field(default_factory=dict)
    """The native core's counters, per flow and per path element."""
    # Records of versions that knew only the simulator do not say so.
    backend: str = "sim"
    """Where packets traveled: ``sim``, ``emulated``, ``mahimahi``, ``remote``; ``pantheon`` in a run of Pantheon's."""
    links: Mapping[str, LinkRecord] = field(default_factory=dict)
    """The links of a path of several, or with flows in both directions, by name; ``NAME:reverse`` is the direction that
    acknowledgements take, and the data of reverse flows. Empty for other paths."""
    path_report: Mapping[str, Any] | None = None
    """What a real path says about itself: release errors, drops in devices, whether it was ``limited`` by the machine,
    flows that were ``unavailable``, ``notes``; between two machines, what its ``clocks`` were; with mahimahi, when its
    ``traces`` began. None in the simulator."""

    @property
    def title(self) -> str:
        """How long, from which seed and where it ran, in words."""
        where = "simulated" if self.backend == "sim" else self.backend
        return f"{self.duration_s:g} s, seed {self.seed}, {where}"

    @property
    def path_title(self) -> str:
        """The path in a line: its name, or what lies in the direction of the data."""
        first, *rest = self.path.split("\n")
        return rest[0].strip().removeprefix("data").strip() if rest and first == "unnamed path" else first

    def text(self) -> str:
        """The run on one screen."""
        width = max((len(flow.scheme) for flow in self.flows), default=0)
        lines = [f"RunRecord: {self.title}", f"  path    {self.path_title}"]
        lines += [f"  flow {at}  {one.scheme:<{width}}  {one.summary()}" for at, one in enumerate(self.flows, start=1)]
        if self.metrics is not None and len(self.flows) > 1:
            total = self.metrics.total
            numbers = flow_summary(total.throughput_mbps, total.delay_p95_ms, total.loss)
            lines.append(f"  total   {'':<{width}}  {numbers}")
        return "\n".join(lines)

    def html(self, picture: str = "") -> str:
        """The run in a notebook: a table of its flows, and a picture below it."""
        rows: list[tuple[str, Any]] = [(f"{at} {one.scheme}", one) for at, one in enumerate(self.flows, start=1)]
        if self.metrics is not None and len(self.flows) > 1:
            rows.append(("total", self.metrics.total))
        cells = [(name, *flow_cells(one.throughput_mbps, one.delay_p95_ms, one.loss)) for name, one in rows]
        return html_table(f"RunRecord: {self.path_title}, {self.title}", ("flow", *NUMBER_HEADS), cells, picture)


def flow_summary(throughput_mbps: float, delay_p95_ms: float | None, loss: float | None) -> str:
    """Throughput, delay and loss on one line."""
    delay = "no packet arrived" if delay_p95_ms is None else f"p95 one-way delay {delay_p95_ms:.2f} ms"
    lost = "" if loss is None else f", loss {loss:.2%}".replace("%", " %")
    return f"{throughput_mbps:.2f} Mbit/s, {delay}{lost}"


NUMBER_HEADS: Final = ("throughput (Mbit/s)", "p95 one-way delay (ms)", "loss (%)")
"""Heads of the columns of :func:`flow_cells`."""


def flow_cells(throughput_mbps: float | None, delay_p95_ms: float | None, loss: float | None) -> list[str]:
    """Throughput, delay and loss as cells of a table; a dash where one is not known."""
    percent = None if loss is None else 100 * loss
    return ["–" if value is None else f"{value:.2f}" for value in (throughput_mbps, delay_p95_ms, percent)]
