"""The gap between simulation and real packets: the same schemes and seeds on every backend, side by side.

Every backend is an evaluation in its own directory. The means over runs that count are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ccgym.config.declared import HOSTS
from ccgym.config.models import Host
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation.backends import BACKENDS, REMOTE, SIMULATED, backend, is_real
from ccgym.evaluation.directory import held_parameters
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.results_file import Measurement, as_document, write_results
from ccgym.evaluation.run import Contender, contender, contenders
from ccgym.evaluation.scheme_summary import SchemeSummary
from ccgym.evaluation.spread import Spread
from ccgym.experiments.comparison import Counting, run_evaluation
from ccgym.experiments.gap_spec import GapSpec
from ccgym.experiments.request import Request
from ccgym.schemes.registry import registry
from ccgym.units import Nanoseconds

THROUGHPUT_TOLERANCE: Final = 0.05
"""Tolerance of throughputs, a fraction."""
DELAY_TOLERANCE_MS: Final = 2.0
"""Tolerance of 95th percentiles of the delay, ms."""
LOSS_TOLERANCE: Final = 0.01
"""Tolerance of losses, absolute: a fraction, one percentage point."""


@dataclass(frozen=True)
class Deviation:
    """Difference of one measured number from another."""

    absolute: float
    """This number minus the other number, in their unit; loss is a fraction."""
    relative: float | None
    """The difference as a fraction of the other number; None if that number is zero."""
    beyond: bool
    """Whether the difference is beyond the tolerance."""


@dataclass(frozen=True)
class GapRow:
    """A scheme on a backend."""

    scheme: str
    label: str
    backend: str
    runs: int
    """Number of runs that count."""
    throughput_mbps: Spread | None
    delay_p95_ms: Spread | None
    loss: Spread | None
    """Loss, a fraction."""
    note: str
    """Why there are no numbers, or a remark on them; usually empty."""
    limited: bool
    """Whether the machine could not keep the schedule in some run."""
    against: Mapping[str, Mapping[str, Deviation]]
    """Differences by backend and by quantity (``throughput_mbps``, ``delay_p95_ms``, ``loss``)."""


@dataclass(frozen=True)
class HostRow:
    """A scheme simulated with a host, compared with reality."""

    scheme: str
    label: str
    host: str
    """Name of the host; empty: the usual simulator without a host."""
    backend: str
    """The backend that counts as reality."""
    against: Mapping[str, Deviation]
    """Differences by quantity."""
    apart: float
    """The differences as one number: :func:`apart_by`."""
    closest: bool
    """Whether this host is the closest for the scheme."""


@dataclass(frozen=True)
class Gap:
    """The results on each backend."""

    spec: GapSpec
    schemes: tuple[Contender, ...]
    """The schemes, in the order of the table."""
    results: Mapping[str, ResultSet]
    directories: Mapping[str, Path]
    left_out: Mapping[str, str]
    """Backends that could not take part, with reasons."""
    without_runs: Mapping[str, str] = field(default_factory=dict)
    """Backends that took part but have no run, with reasons."""
    hosts: Mapping[str, ResultSet] = field(default_factory=dict)
    """Results of the simulator with each named host (:data:`~ccgym.config.declared.HOSTS`)."""

    @property
    def path(self) -> NetworkPath:
        """Path of the comparison."""
        return self.spec.path

    @property
    def failures(self) -> list[str]:
        """Runs that ended in an error, and requested backends without runs."""
        missing = self.without_runs if self.spec.backends is None else {**self.left_out, **self.without_runs}
        found = [f"nothing ran on {name}: {reason}" for name, reason in missing.items()]
        if self.spec.backends is None and len(self.results) == 1:
            found.append(f"only {next(iter(self.results))} ran: there is nothing to compare it with")
        for name, results in self.results.items():
            found += [f"{name}: {one.scheme}, run {one.run}: {one.error}" for one in results.failures]
        return found

    @property
    def reference(self) -> str | None:
        """The backend that counts as reality: mahimahi if it took part, else the emulated path, else None."""
        real = [name for name in BACKENDS if is_real(name) and name in self.results]
        return real[-1] if real else None

    @property
    def references(self) -> tuple[str, ...]:
        """The reference backends: the simulator and reality, if they took part."""
        if len(self.results) < 2:
            return ()
        return tuple(name for name in (SIMULATED, self.reference) if name is not None and name in self.results)

    def trace_leads(self, name: str) -> tuple[int, int, int] | None:
        """Return how long before the flows the traces of a backend's links started, ms: min and max over its runs, and
        the max lead after alignment. None if links start with the flows."""
        reports = [(cell.record.path_report or {}).get("traces") for cell in self.results[name].cells]
        found = [report for report in reports if report is not None]
        if not found:
            return None
        leads = [report["lead_ms"] for report in found]
        ahead = [abs(ms) for report in found for link in report["ahead_ms"] for ms in link]
        return min(leads), max(leads), max(ahead)

    def summary(self, scheme: Contender, name: str, host: str = "") -> SchemeSummary | None:
        """Return a scheme's numbers on a backend, or simulated with a host; None if it was not run there."""
        there = counterpart(scheme, name)
        rows = (self.hosts[host] if host else self.results[name]).schemes if there is not None else ()
        return next((one for one in rows if there is not None and one.style.key == there.key), None)

    def compared(self) -> list[GapRow]:
        """Return the rows, scheme by scheme, backend by backend."""
        rows = []
        for scheme in self.schemes:
            summaries = {name: self.summary(scheme, name) for name in self.results}
            rows += [self._row(scheme, name, summaries) for name in self.results]
        return rows

    def host_rows(self) -> list[HostRow]:
        """Return each host's difference from reality, scheme by scheme; first without a host."""
        if self.reference is None:
            return []
        rows = []
        for scheme in self.schemes:
            real = self.summary(scheme, self.reference)
            hosts = {host: self.summary(scheme, SIMULATED, host) for host in ("", *self.hosts)}
            found = {host: differences(summary, real) for host, summary in hosts.items()}
            apart = {host: apart_by(one) for host, one in found.items() if one}
            closest = min(apart, key=lambda host: apart[host], default=None)
            rows += [
                HostRow(scheme.key, scheme.label, host, self.reference, found[host], apart[host], host == closest)
                for host in apart
            ]
        return rows

    def _row(self, scheme: Contender, name: str, summaries: Mapping[str, SchemeSummary | None]) -> GapRow:
        summary = summaries[name]
        return GapRow(
            scheme=scheme.key,
            label=scheme.label,
            backend=name,
            runs=0 if summary is None else len(summary.valid_runs),
            throughput_mbps=getattr(summary, "throughput_mbps", None),
            delay_p95_ms=getattr(summary, "delay_p95_ms", None),
            loss=getattr(summary, "loss", None),
            note=self._note(scheme, name, summary),
            limited=summary is not None and bool(summary.limited_runs),
            against={
                other: differences(summary, summaries.get(other))
                for other in self.references
                if other != name and summary is not None and summaries.get(other) is not None
            },
        )

    def _note(self, scheme: Contender, name: str, summary: SchemeSummary | None) -> str:
        kernel = " and ".join(dict.fromkeys(choice.kernel for choice in scheme.choices if choice.kernel))
        if summary is None:
            return f"ccgym has no implementation of {kernel} to simulate" if kernel else "not run"
        if summary.unavailable is not None:
            return f"unavailable: {summary.unavailable}"
        failed = [one for one in self.results[name].failures if one.scheme == summary.style.key]
        if failed:
            return f"{len(failed)} runs failed: {failed[0].error.splitlines()[0]}"
        return f"ccgym's {kernel}: the simulator has no kernel" if kernel and not is_real(name) else ""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        first = next(iter(self.results.values()))
        return as_document({
            "kind": "gap",
            "parameters": dict(first.parameters),
            "provenance": dict(first.provenance),
            "path": self.path.describe(),
            "path_name": self.path.name,
            "schemes": [asdict(scheme.style) for scheme in self.schemes],
            "tolerances": {
                "throughput_mbps": {"relative": THROUGHPUT_TOLERANCE},
                "delay_p95_ms": {"absolute": DELAY_TOLERANCE_MS},
                "loss": {"absolute": LOSS_TOLERANCE},
            },
            "reference": self.reference,
            "rows": [asdict(row) for row in self.compared()],
            "hosts": [asdict(row) for row in self.host_rows()],
            "left_out": dict(self.left_out),
            "without_runs": dict(self.without_runs),
            "trace_leads_ms": {name: leads for name in self.results if (leads := self.trace_leads(name)) is not None},
            "results": {name: str(directory) for name, directory in self.directories.items()},
            "failures": self.failures,
        })  # fmt: skip

    def rows(self) -> Iterator[Measurement]:
        """Yield the measurements on each backend, and in the simulator with each host."""
        hosts = {f"{SIMULATED}-{host}": results for host, results in self.hosts.items()}
        for name, results in {**self.results, **hosts}.items():
            yield from results.rows(condition=name)


def counterpart(scheme: Contender, name: str) -> Contender | None:
    """Return a scheme's counterpart on a backend: for the kernel's TCP, the simulator runs ccgym's, if it exists."""
    if is_real(name) or not any(choice.kernel for choice in scheme.choices):
        return scheme
    if any(choice.kernel and choice.kernel not in registry() for choice in scheme.choices):
        return None
    return contender([flow.model_copy(update={"scheme": flow.choice.kernel or flow.scheme}) for flow in scheme.flows])


def differences(ours: SchemeSummary | None, theirs: SchemeSummary | None) -> dict[str, Deviation]:
    """Return the differences between two measurements, by quantity, if both have numbers."""
    found: dict[str, Deviation] = {}
    if ours is None or theirs is None:
        return found
    for quantity in ("throughput_mbps", "delay_p95_ms", "loss"):
        one, other = getattr(ours, quantity), getattr(theirs, quantity)
        if one is None or other is None:
            continue
        absolute = one.mean - other.mean
        relative = absolute / other.mean if other.mean else None
        if quantity == "throughput_mbps":
            beyond = relative is None or abs(relative) > THROUGHPUT_TOLERANCE
        else:
            beyond = abs(absolute) > (DELAY_TOLERANCE_MS if quantity == "delay_p95_ms" else LOSS_TOLERANCE)
        found[quantity] = Deviation(absolute, relative, beyond)
    return found


def apart_by(found: Mapping[str, Deviation]) -> float:
    """Return the root mean square of differences, each in units of its tolerance."""
    sizes = {"throughput_mbps": THROUGHPUT_TOLERANCE, "delay_p95_ms": DELAY_TOLERANCE_MS, "loss": LOSS_TOLERANCE}
    units = [(one.relative if name == "throughput_mbps" else one.absolute) or 0.0 for name, one in found.items()]
    parts = [value / sizes[name] for name, value in zip(found, units, strict=True)]
    return math.sqrt(sum(part * part for part in parts) / len(parts)) if parts else 0.0


def run_gap(spec: GapSpec, request: Request, observer: Observer | None = None) -> Gap:
    """Make the missing runs on each backend, and write the results.

    Raises:
        ConfigError: No run is possible, or the request names a backend.
        ResultsError: A directory contains another experiment's results.
    """
    observer = observer or Silent()
    if request.backend != SIMULATED:
        raise ConfigError(
            "options-conflict",
            f"backend {request.backend}",
            where="backend",
            expected=f"none: {spec.name} has a list of backends",
            hint="leave out the backend, or use ccgym compare backends --backends",
        )
    schemes = request.schemes or contenders(spec.schemes, "schemes")
    results: dict[str, ResultSet] = {}
    left_out: dict[str, str] = {}
    without_runs: dict[str, str] = {}
    for name in spec.backends or [name for name in BACKENDS if name != REMOTE]:
        experiment = _evaluation(spec, request, schemes, name)
        if experiment is None:
            left_out[name] = "none of the schemes can be simulated"
            continue
        out = request.out / name
        try:
            if held_parameters(out) is None:  # Before the observer shows anything.
                backend(name).require(experiment.path, experiment.runtime_ns)
            measured = run_evaluation(
                experiment, out, request, Counting(observer, name, len(experiment.planned())), name
            )
        except (ConfigError, PlatformError, RealPathError) as error:
            left_out[name] = "; ".join(filter(None, (error.found, error.hint)))
            continue
        if measured.cells:
            results[name] = measured
        else:
            without_runs[name] = _why_nothing_ran(measured)
    if not results:
        reasons = [f"{name}: {reason}" for name, reason in {**left_out, **without_runs}.items()]
        raise ConfigError(
            "run-failed",
            "nothing ran",
            where="backends",
            expected="at least one that works on this machine",
            hint="; ".join(reasons),
        )
    gap = Gap(spec, schemes, results, {name: request.out / name for name in results}, left_out, without_runs)
    if SIMULATED in results and gap.reference is not None:
        gap = replace(gap, hosts=_with_hosts(spec, request, schemes, observer))
    write_results(request.out, gap.to_json(), gap.rows())
    return gap


def _with_hosts(
    spec: GapSpec, request: Request, schemes: tuple[Contender, ...], observer: Observer
) -> dict[str, ResultSet]:
    """Repeat the simulated runs with each host, for flows without a host."""
    found = {}
    for host in HOSTS:
        served = Host.model_validate(host)
        plain = [one for scheme in schemes if (one := counterpart(scheme, SIMULATED)) is not None]
        hosted = tuple(
            one.with_flows(
                flow.model_copy(update={"host": served}) if flow.host == Host() else flow for flow in one.flows
            )
            for one in plain
        )
        experiment = _evaluation(spec, request, hosted, SIMULATED)
        if experiment is not None:
            name = f"{SIMULATED}-{host}"
            counting = Counting(observer, name, len(experiment.planned()))
            found[host] = run_evaluation(experiment, request.out / name, request, counting, name)
    return found


def _evaluation(spec: GapSpec, request: Request, schemes: tuple[Contender, ...], name: str) -> Experiment | None:
    """Return the evaluation on a backend; None if it can run none of the schemes."""
    there = {one.key: one for scheme in schemes if (one := counterpart(scheme, name)) is not None}
    if not there:
        return None
    changes: dict[str, Any] = {"backend": name}
    path = spec.path
    if name == SIMULATED:
        path = with_host_jitter(path, spec.host_jitter)
        changes["late_start_ns"] = spec.host_start
        if spec.sim_runs is not None:
            changes["runs"] = spec.sim_runs
    return spec.evaluation(path, tuple(there.values()), request, **changes)


def with_host_jitter(path: NetworkPath, max_ns: int) -> NetworkPath:
    """Return the path with every ACK delayed at random by up to ``max_ns`` nanoseconds."""
    if max_ns <= 0:
        return path
    jitter = {
        "kind": "jitter",
        "distribution": {"kind": "uniform", "max": Nanoseconds(max_ns)},
        "direction": "downlink",
    }
    return NetworkPath(chain=[*path.chain, jitter], name=path.name, title=path.title, source=path.source)


def _why_nothing_ran(results: ResultSet) -> str:
    if results.failures:
        return f"every run failed: {results.failures[0].error}"
    return "; ".join(["no scheme can be run", *dict.fromkeys(results.unavailable.values())])
