"""Running flows over a path in virtual time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ccgym.config.path import CompiledPath, NetworkPath
from ccgym.errors import ConfigError, SimulationError, shown
from ccgym.evaluation.capacity import link_capacity, slowest_link
from ccgym.evaluation.ccperf_metrics import CcperfMetrics, FlowInput, RunInput, ccperf_metrics
from ccgym.evaluation.flow_spec import FlowSpec, flow_spec
from ccgym.evaluation.metrics import PacketLog, RunMetrics, run_metrics
from ccgym.evaluation.run_record import FlowRecord, LinkRecord, RunRecord
from ccgym.evaluation.schemes import SchemeChoice
from ccgym.units import parse_time

__all__ = ["Flow", "Job", "Record", "RunRecord", "simulate", "simulate_many"]

Flow: TypeAlias = FlowSpec | SchemeChoice | str | Mapping[str, Any]
"""A flow, or a short form of one: ``"cubic"``, ``{"scheme": "reno", "start": "5s"}``."""

MAX_SEED = 2**64 - 1
"""Largest seed of the native core."""


@dataclass(frozen=True)
class Record:
    """What a run remembers beside its counters."""

    packets: bool = True
    """Every packet, from which Pantheon's metrics are computed."""
    series: str | int = "10ms"
    """Spacing of the sampled series, from which ccperf's metrics are computed; ``0``: none."""
    link_events: bool = False
    """Every event of the links, which mahimahi's logs and the ``#`` lines of Pantheon's need."""


@dataclass(frozen=True)
class Job:
    """The arguments of one :func:`simulate` call, for :func:`simulate_many`."""

    path: NetworkPath
    """The path."""
    flows: Sequence[Flow]
    """The flows on it."""
    duration: str | int = "30s"
    """Length of the run, with a unit, or nanoseconds."""
    seed: int = 1
    """Root of every random stream."""


def simulate(
    path: NetworkPath,
    flows: Sequence[Flow] = ("cubic",),
    duration: str | int = "30s",
    seed: int = 1,
    record: Record | None = None,
) -> RunRecord:
    """Run flows over a path, in virtual time and from a seed: the same arguments give the same packets.

    Args:
        path: The path, e.g. ``NetworkPath.named("77.72mbps")``.
        flows: One entry per flow: the name of a scheme or policy, or a mapping with the fields of :class:`FlowSpec`.
        duration: Length of the run in virtual time, with a unit (``"30s"``), or whole nanoseconds.
        seed: Root of every random stream: losses, jitter, on/off sources.
        record: What to remember; by default packets and series every 10 ms.

    Returns:
        The run's record: ``run.flows[0].throughput_mbps``, ``run.total``, ``run.link.drops``, ``run.ccperf()``.

    Raises:
        ConfigError: An argument is wrong.
        SchemeNotFoundError: No scheme has that name.
        SimulationError: The simulator refused the run.

    Example::

        path = ccgym.NetworkPath(rate="32mbps", rtt="15ms", queue="40p")
        run = ccgym.simulate(path, flows=["cubic", {"scheme": "reno", "start": "5s"}], duration="30s", seed=1)
    """
    from ccgym import _core

    record = record or Record()
    if isinstance(flows, (str, Mapping)) or not flows:
        raise ConfigError(
            shown(flows), where="flows", expected="a list with at least one flow", hint="write flows=['cubic']"
        )
    if not 0 <= seed <= MAX_SEED:
        raise ConfigError(f"{seed}", where="seed", expected=f"a whole number from 0 to {MAX_SEED}")
    duration_ns = _positive_time(duration, "duration")
    step_ns = parse_time(record.series) if isinstance(record.series, str) else record.series
    compiled = path.compile(duration_ns)
    specs = [flow_spec(flow, f"flows[{place}]") for place, flow in enumerate(flows)]
    for place, spec in enumerate(specs):
        if spec.start >= duration_ns:
            raise ConfigError(
                f"the flow starts at {spec.start / 1e9:g} s, the run ends at {duration_ns / 1e9:g} s",
                where=f"flows[{place}].start",
                expected="a start before the end of the run",
            )
    base_rtt = int(compiled.facts["base_rtt"])
    native_flows = [spec.native(base_rtt, f"flows[{place}]") for place, spec in enumerate(specs)]
    policies = {policy.key: policy.native for spec in specs if (policy := spec.choice.policy) is not None}
    document = {
        "seed": seed,
        "duration": duration_ns,
        "uplink": compiled.uplink,
        "downlink": compiled.downlink,
        "flows": native_flows,
        "record": {"packets": record.packets, "series": step_ns, "link_events": record.link_events},
        # A path without a link has no capacity that a scheme could know.
        "facts": compiled.facts if compiled.facts["capacity"] else None,
    }
    try:
        result = _core.simulate(json.dumps(document), compiled.traces, policies)
    except ValueError as error:
        raise SimulationError(
            f"the simulator refused the run: {error}", hint="`ccgym path show` says how a path is understood"
        ) from error
    return _record_of(result, path, compiled, specs, native_flows, duration_ns, step_ns, seed, record)


def simulate_many(
    jobs: Iterable[Job], threads: int | None = None, record: Record | None = None, *, keep: bool = False
) -> list[RunRecord]:
    """Run many simulations at once; records come in the order of the jobs, and do not depend on ``threads``.

    Args:
        jobs: The runs.
        threads: How many at a time; all processors by default.
        record: What each run remembers, as in :func:`simulate`.
        keep: Whether to keep packets, series and the native result. They take about 10 MB per 30 s run at
            80 Mbit/s, so that by default only the numbers are kept.
    """

    def run(job: Job) -> RunRecord:
        done = simulate(job.path, job.flows, job.duration, job.seed, record)
        return done if keep else replace(done, packets=None, series=None, native=None, capacity=None)

    with ThreadPoolExecutor(max_workers=threads or os.cpu_count() or 1) as pool:
        return list(pool.map(run, jobs))


def _positive_time(value: str | int, where: str) -> int:
    nanoseconds = parse_time(value) if isinstance(value, str) else value
    if nanoseconds <= 0:
        raise ConfigError(shown(value), where=where, expected="a positive time with its unit, like '30s'")
    return nanoseconds


def _record_of(
    result: Any,
    path: NetworkPath,
    compiled: CompiledPath,
    specs: Sequence[FlowSpec],
    native_flows: Sequence[Mapping[str, Any]],
    duration_ns: int,
    step_ns: int,
    seed: int,
    record: Record,
) -> RunRecord:
    counters = json.loads(result.summary())
    capacity = link_capacity(compiled.uplink, compiled.traces)
    log = metrics = None
    if record.packets:
        log = PacketLog.from_packets(result.packets("data"), len(specs))
        metrics = run_metrics(log, None if capacity is None else capacity.average_mbps(duration_ns))
    series = ccperf = None
    if step_ns:
        series = result.series()
        link = slowest_link(compiled.uplink, compiled.traces)
        ccperf = ccperf_metrics(
            RunInput(
                t_ns=series["t_ns"],
                step_ns=step_ns,
                duration_ns=duration_ns,
                flows=[
                    FlowInput(
                        series=series["flows"][place],
                        counters=counters["flows"][place],
                        start_ns=spec.start,
                        stop_ns=min(spec.stop or duration_ns, duration_ns),
                        base_rtt_ns=int(compiled.facts["base_rtt"]) + int(native_flows[place]["extra_rtt"]),
                        mss=spec.mss,
                        packet_bytes=spec.packet_bytes,
                    )
                    for place, spec in enumerate(specs)
                ],
                link_counters=counters["link"],
                capacity=capacity,
                link_overhead=0 if link is None else int(link.get("overhead", 0)),
            )
        )
    return RunRecord(
        path=path.describe(),
        seed=seed,
        duration_s=duration_ns / 1e9,
        trajectory_hash=counters["trajectory_hash"],
        flows=tuple(
            _flow_record(spec, counters["flows"][place], place, metrics, ccperf, duration_ns)
            for place, spec in enumerate(specs)
        ),
        link=_link_record(counters["link"], metrics),
        metrics=metrics,
        ccperf_tables=ccperf,
        counters=counters,
        packets=log,
        capacity=capacity,
        series=series,
        native=result,
    )


def _flow_record(
    spec: FlowSpec,
    counters: Mapping[str, Any],
    place: int,
    metrics: RunMetrics | None,
    ccperf: CcperfMetrics | None,
    duration_ns: int,
) -> FlowRecord:
    pantheon = None if metrics is None else metrics.flows[place + 1]
    table = {} if ccperf is None else ccperf.flows[place]
    stop_ns = min(spec.stop or duration_ns, duration_ns)
    recoveries = int(counters["recoveries"])
    finish = counters["finish_ns"]

    def from_series(name: str) -> float | None:
        return table[name].value if name in table else None

    return FlowRecord(
        scheme=spec.choice.title,
        start_s=spec.start / 1e9,
        stop_s=stop_ns / 1e9,
        throughput_mbps=None if pantheon is None else pantheon.throughput_mbps,
        delay_p95_ms=None if pantheon is None else pantheon.delay_p95_ms,
        loss=None if pantheon is None else pantheon.loss,
        ingress_mbps=None if pantheon is None else pantheon.ingress_mbps,
        mean_rtt_ms=from_series("mean_srtt_l4"),
        min_rtt_ms=None if counters["min_rtt_ns"] is None else counters["min_rtt_ns"] / 1e6,
        mean_cwnd_packets=from_series("mean_cwnd_l4"),
        mean_in_flight_packets=from_series("mean_in_flight_l4"),
        goodput_mbps=counters["received_unique_bytes"] * 8000 / (stop_ns - spec.start),
        sent_packets=counters["sent_packets"],
        lost_packets=counters["lost_packets"],
        retransmissions=counters["retransmissions"],
        rtos=counters["rtos"],
        recoveries=recoveries,
        mean_recovery_ms=counters["recovery_ns"] / recoveries / 1e6 if recoveries else 0.0,
        completion_s=None if finish is None else (finish - spec.start) / 1e9,
    )


def _link_record(counters: Mapping[str, Any] | None, metrics: RunMetrics | None) -> LinkRecord:
    counters = counters or {"drops": 0, "forwarded_bytes": 0, "mean_queue_packets": 0.0, "mean_sojourn_ms": 0.0}
    return LinkRecord(
        capacity_mbps=None if metrics is None else metrics.capacity_mbps,
        utilisation=None if metrics is None else metrics.utilisation,
        drops=counters["drops"],
        forwarded_bytes=counters["forwarded_bytes"],
        mean_queue_packets=counters["mean_queue_packets"],
        mean_queue_delay_ms=counters["mean_sojourn_ms"],
    )
