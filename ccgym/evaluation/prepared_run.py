"""Check and compile the arguments of a run, for every backend, and make the record from its result.

The simulator and the real paths get the same specification and return the same kind of result. Their differences
are in :mod:`ccgym.evaluation.backends`; their common part is here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ccgym.config.chain import CompiledPath
from ccgym.config.models import MediaSource
from ccgym.config.path import NetworkPath, PathLike
from ccgym.errors import ConfigError, located, shown
from ccgym.evaluation.capacity import LinkCapacity, link_capacity, slowest_link
from ccgym.evaluation.ccperf_metrics import GAP_WEIGHT, FlowInput, MeasuredCcperf, RunInput, Samples
from ccgym.evaluation.metrics import MediaMetrics, RunMetrics, media_metrics, recorded_metrics, transfer_metrics
from ccgym.evaluation.run_numbers import FlowRecord, LinkRecord
from ccgym.evaluation.run_record import RunRecord
from ccgym.schemes.flow import FlowSpec, flow_spec, policies_of, python_of
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.python_classes import PythonClass
from ccgym.schemes.scheme import Scheme
from ccgym.units import TimeLike, is_whole, parse_positive_time, parse_size, parse_time

if TYPE_CHECKING:
    from ccgym._core import SimResult

Flow: TypeAlias = FlowSpec | Scheme | str | Mapping[str, Any]
"""A flow, or a short form of one: ``"cubic"``, ``{"scheme": "reno", "start": "5s"}``."""

MAX_SEED: Final = 2**64 - 1
"""Largest seed of the native core."""


MAX_MEMORY: Final = "4GB"
"""Default memory limit of a simulation; the same on every machine, so that results do not depend on the machine."""


@dataclass(frozen=True)
class Record:
    """The data that a run records in addition to its counters."""

    packets: bool = True
    """Whether to record every packet. Pantheon's metrics are computed from packets."""
    series: TimeLike = "10ms"
    """Sampling interval of the series, a time. ccperf's metrics are computed from series. ``0``: no series."""
    acks: bool = False
    """Whether to record every ACK, too, if packets are recorded. No metric needs ACKs; packet files do."""
    link_events: bool = False
    """Whether to record every event of the links. mahimahi's logs and the ``#`` lines of Pantheon's logs need them."""
    max_memory: str = MAX_MEMORY
    """Maximum memory of the simulator for the run, with a unit: packets in flight, logs, series. A run that needs more
    ends in an error that names the cause. Real paths ignore it."""


@dataclass(frozen=True)
class PreparedRun:
    """A run whose arguments have been checked and compiled."""

    path: NetworkPath
    compiled: CompiledPath
    flows: tuple[FlowSpec, ...]
    duration_ns: int
    seed: int
    record: Record
    base_rtts: tuple[int, ...]
    """Propagation round-trip time of each flow's route, nanoseconds."""
    document: Mapping[str, Any]
    """The specification for the native core (``crates/ccgym-run/src/spec.rs``)."""

    @property
    def step_ns(self) -> int:
        """Sampling interval of the series, nanoseconds; 0: no series."""
        return int(self.document["record"]["series"])

    @property
    def policies(self) -> dict[str, LearnedPolicy]:
        """The policies that control flows, by key."""
        return policies_of(self.flows)

    @property
    def python(self) -> dict[str, PythonClass]:
        """The schemes in Python, by key."""
        return python_of(self.flows)

    def run_record(
        self, result: SimResult, backend: str = "sim", path_report: Mapping[str, Any] | None = None
    ) -> RunRecord:
        """Return the record of a run: its result and the metrics.

        Args:
            result: The result of the simulator or of a real path.
            backend: Name of the backend that carried the packets.
            path_report: The report of a real path.
        """
        counters = json.loads(result.summary())
        elements = self.compiled.elements()
        names = [flow.get("bottleneck", next(iter(elements))) for flow in counters["flows"]]
        capacities = {name: link_capacity(elements[name], self.compiled.traces) for name in elements}
        capacity = capacities[names[0]]
        links = counters.get("links", {})
        # Numbers that only some sources have.
        measured: list[dict[str, Any]] = [
            transfer_metrics(result.transfers(place)) if spec.makes_transfers else {}
            for place, spec in enumerate(self.flows)
        ]
        metrics = series = given = None
        if self.record.packets:
            for place, numbers in enumerate(measured):
                media = self._media_metrics(result, place)
                numbers.update({} if media is None else vars(media))
            # The total throughput is no share of a link that only some flows cross.
            alone = capacity is not None and not links
            metrics = recorded_metrics(result, capacity.average_mbps(self.duration_ns) if capacity and alone else None)
        if self.step_ns:
            series = result.series()
            given = self._ccperf_input(result, series, counters, measured, names, capacities)
        samples = [None] * len(self.flows) if given is None else given.samples
        return RunRecord(
            path=self.path.describe(),
            seed=self.seed,
            duration_s=self.duration_ns / 1e9,
            trajectory_hash=counters["trajectory_hash"],
            flows=tuple(
                _flow_record(
                    spec, counters["flows"][place], place, metrics, samples[place], measured[place], self.duration_ns
                )
                for place, spec in enumerate(self.flows)
            ),
            link=self._of_link(names[0], links[names[0]], capacity)
            if links
            else _link_record(counters["link"], metrics),
            links={
                name: self._of_link(name, numbers, capacities[name])
                for name, numbers in links.items()
                if numbers is not None
            },
            metrics=metrics,
            ccperf_tables=None if given is None else MeasuredCcperf(given),
            counters=counters,
            backend=backend,
            path_report=path_report,
            capacity=capacity,
            series=series,
            native=result,
        )

    def _media_metrics(self, result: SimResult, place: int) -> MediaMetrics | None:
        spec = self.flows[place]
        if not isinstance(spec.source, MediaSource):
            return None
        packets = result.packets("data")
        own = packets["flow"] == place
        stop_ns = min(spec.stop or self.duration_ns, self.duration_ns)
        life_ns = stop_ns - spec.start_ns
        return media_metrics(result.frames(place), packets["left_ns"][own], life_ns)

    def _of_link(self, name: str, counters: Mapping[str, Any] | None, capacity: LinkCapacity | None) -> LinkRecord:
        """Return the record of one of several links. Packets count whole, so that utilization may slightly exceed 1."""
        mbps = None if capacity is None else capacity.average_mbps(self.duration_ns)
        forwarded = 0 if counters is None else counters["forwarded_bytes"] * 8000 / self.duration_ns
        return replace(_link_record(counters, None), capacity_mbps=mbps, utilization=forwarded / mbps if mbps else None)

    def _ccperf_input(
        self,
        result: SimResult,
        series: Mapping[str, Any],
        counters: Mapping[str, Any],
        measured: Sequence[Mapping[str, Any]],
        names: Sequence[str],
        capacities: Mapping[str, LinkCapacity | None],
    ) -> RunInput:
        elements = self.compiled.elements()

        def overhead(name: str) -> int:
            link = slowest_link(elements[name], self.compiled.traces)
            return 0 if link is None else int(link.get("overhead", 0))

        return RunInput(
            t_ns=series["t_ns"],
            step_ns=self.step_ns,
            duration_ns=self.duration_ns,
            flows=[
                FlowInput(
                    series=series["flows"][place],
                    counters=counters["flows"][place],
                    start_ns=spec.start_ns,
                    stop_ns=min(spec.stop or self.duration_ns, self.duration_ns),
                    base_rtt_ns=self.base_rtts[place] + int(self.document["flows"][place]["extra_rtt"]),
                    mss=spec.mss,
                    packet_bytes=spec.packet_bytes,
                    capacity=capacities[names[place]],
                    link_overhead=overhead(names[place]),
                    gaps_ms=partial(result.gap_average, place, GAP_WEIGHT) if self.record.packets else None,
                    transfers=measured[place] if spec.makes_transfers else None,
                )
                for place, spec in enumerate(self.flows)
            ],
            link_counters=counters["link"],
            links={name: numbers for name, numbers in counters.get("links", {}).items() if numbers is not None},
            # Utilization is defined only for a link that all flows cross.
            capacity=capacities[names[0]] if len(set(names)) == 1 else None,
        )


def prepare(
    path: PathLike,
    flows: Sequence[Flow],
    duration: TimeLike = "30s",
    seed: int = 1,
    record: Record | None = None,
) -> PreparedRun:
    """Check the arguments of a run and compile them; see :func:`ccgym.evaluation.simulate.simulate`.

    Raises:
        ConfigError: An argument is wrong.
        SchemeNotFoundError: No scheme has that name.
    """
    path = NetworkPath.from_any(path)
    record = Record() if record is None else record
    if not isinstance(record, Record):
        raise ConfigError("wrong-type", shown(record), where="record", expected="ccgym.Record(packets=…, series=…)")
    given: object = flows
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ConfigError(
            "wrong-type",
            shown(flows),
            where="flows",
            expected="a list with at least one flow",
            hint="write flows=['cubic']",
        )
    if not is_whole(seed) or not 0 <= seed <= MAX_SEED:
        raise ConfigError("out-of-range", shown(seed), where="seed", expected=f"a whole number from 0 to {MAX_SEED}")
    seed = int(seed)
    with located("duration"):
        duration_ns = parse_positive_time(duration)
    with located("record.series"):
        step_ns = parse_time(record.series)
    compiled = path.compile(duration_ns)
    specs = tuple(flow_spec(flow, f"flows[{place}]") for place, flow in enumerate(flows))
    for place, spec in enumerate(specs):
        if spec.start_ns >= duration_ns:
            raise ConfigError(
                "start-after-end",
                f"the flow starts at {spec.start_ns / 1e9:g} s, the run ends at {duration_ns / 1e9:g} s",
                where=f"flows[{place}].start",
                expected="a start before the end of the run",
            )
    natives, base_rtts = [], []
    for place, spec in enumerate(specs):
        facts = compiled.facts
        if spec.route or spec.reverse:
            with located(f"flows[{place}]"):
                facts = path.along(spec.route, spec.direction).facts(duration_ns)
        native = spec.native(int(facts["base_rtt"]), f"flows[{place}]")
        if facts is not compiled.facts and facts["capacity"]:
            native["facts"] = facts
        natives.append(native)
        base_rtts.append(int(facts["base_rtt"]))
    document = {
        "seed": seed,
        "duration": duration_ns,
        **compiled.as_dict(),
        "flows": natives,
        "record": {
            "packets": bool(record.packets),
            "acks": bool(record.acks),
            "series": step_ns,
            "link_events": bool(record.link_events),
        },
        "max_memory": memory_bytes(record.max_memory, "max_memory"),
        # A path without a link has no capacity to give to a scheme.
        "facts": compiled.facts if compiled.facts["capacity"] else None,
    }
    return PreparedRun(path, compiled, specs, duration_ns, seed, record, tuple(base_rtts), document)


def memory_bytes(value: str, where: str) -> int:
    """Return an amount of memory such as ``"4GB"`` or ``"512MiB"`` in bytes."""
    with located(where):
        size = parse_size(value).bytes
    if size is None:
        raise ConfigError(
            "quantity-malformed", shown(value), where=where, expected="an amount of memory with its unit, like '4GB'"
        )
    return size


def _flow_record(
    spec: FlowSpec,
    counters: Mapping[str, Any],
    place: int,
    metrics: RunMetrics | None,
    samples: Samples | None,
    of_source: Mapping[str, Any],
    duration_ns: int,
) -> FlowRecord:
    pantheon = None if metrics is None else metrics.flows[place + 1]
    stop_ns = min(spec.stop or duration_ns, duration_ns)
    recoveries = int(counters["recoveries"])
    finish = counters["finish_ns"]
    measured = ("throughput_mbps", "delay_p95_ms", "loss", "ingress_mbps")
    numbers: dict[str, Any] = {name: getattr(pantheon, name, None) for name in measured}

    windowed = samples if spec.choice.WINDOW_KNOWN else None
    return FlowRecord(
        scheme=spec.choice.title,
        start_s=spec.start_ns / 1e9,
        stop_s=stop_ns / 1e9,
        **numbers,
        mean_rtt_ms=None if samples is None else samples.mean_srtt_ms,
        min_rtt_ms=None if counters["min_rtt_ns"] is None else counters["min_rtt_ns"] / 1e6,
        mean_cwnd_packets=None if windowed is None else windowed.mean_cwnd,
        mean_in_flight_packets=None if windowed is None else windowed.mean_in_flight,
        goodput_mbps=counters["received_unique_bytes"] * 8000 / (stop_ns - spec.start_ns),
        sent_packets=counters["sent_packets"],
        lost_packets=counters["lost_packets"],
        retransmissions=counters["retransmissions"],
        rtos=counters["rtos"],
        recoveries=recoveries,
        mean_recovery_ms=counters["recovery_ns"] / recoveries / 1e6 if recoveries else 0.0,
        completion_s=None if finish is None else (finish - spec.start_ns) / 1e9,
        bottleneck=counters.get("bottleneck"),
        **of_source,
    )


def _link_record(counters: Mapping[str, Any] | None, metrics: RunMetrics | None) -> LinkRecord:
    counters = counters or {"drops": 0, "forwarded_bytes": 0, "mean_queue_packets": 0.0, "mean_sojourn_ms": 0.0}
    return LinkRecord(
        capacity_mbps=None if metrics is None else metrics.capacity_mbps,
        utilization=None if metrics is None else metrics.utilization,
        drops=counters["drops"],
        forwarded_bytes=counters["forwarded_bytes"],
        mean_queue_packets=counters["mean_queue_packets"],
        mean_queue_delay_ms=counters["mean_sojourn_ms"],
    )
