"""The gap between simulation and reality, measured: the same schemes and seeds on every backend, side by side.

Each backend's runs are an experiment of their own in a folder of their own, so that what is finished is kept and a gap
that was interrupted goes on. What is compared are the means over runs that count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ccgym.config.path import NetworkPath, PathLike
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation.backends import BACKENDS, SIMULATED, backend, check_name, is_real
from ccgym.evaluation.directory import MARKERS, held_parameters, refuse_other_kinds
from ccgym.evaluation.engine import Observer, Silent
from ccgym.evaluation.experiment import MAX_RUNS, Experiment
from ccgym.evaluation.results import ResultSet, SchemeSummary, Spread
from ccgym.evaluation.run import Contender, contender, contenders
from ccgym.evaluation.runner import run_experiment
from ccgym.files import atomic_write
from ccgym.schemes.registry import registry
from ccgym.units import Nanoseconds

GAP_FILE: Final = MARKERS["gap"][0]
FORMAT: Final = "ccgym-gap"
FORMAT_VERSION: Final = 1

THROUGHPUT_TOLERANCE: Final = 0.05
"""Throughputs that differ by more than this fraction are apart."""
DELAY_TOLERANCE_MS: Final = 2.0
"""95th percentiles of the delay that differ by more milliseconds are apart."""
LOSS_TOLERANCE: Final = 0.01
"""Losses that differ by more (a fraction: one point) are apart."""


@dataclass(frozen=True)
class Difference:
    """One measured number against another."""

    absolute: float
    """This one less the other, in their unit; loss is a fraction."""
    relative: float | None
    """The same as a fraction of the other; None where that is zero."""
    beyond: bool
    """Whether it is beyond the tolerance."""


@dataclass(frozen=True)
class GapRow:
    """A scheme on a backend."""

    scheme: str
    """Key of the scheme."""
    label: str
    """Its name for people."""
    backend: str
    """The backend."""
    runs: int
    """Runs that count."""
    throughput_mbps: Spread | None
    """Total average throughput, Mbit/s."""
    delay_p95_ms: Spread | None
    """95th percentile of the one-way delay, ms."""
    loss: Spread | None
    """Loss, a fraction."""
    note: str
    """Why there are no numbers, or what they stand for; mostly empty."""
    limited: bool
    """Whether the machine could not hold the schedule in some run."""
    against: Mapping[str, Mapping[str, Difference]]
    """By backend, by quantity (``throughput_mbps``, ``delay_p95_ms``, ``loss``): how far from it."""


@dataclass(frozen=True)
class Gap:
    """What was measured on each backend."""

    path: NetworkPath
    """The path."""
    schemes: tuple[Contender, ...]
    """The schemes, in the order of the table."""
    results: Mapping[str, ResultSet]
    """Results by backend."""
    directories: Mapping[str, Path]
    """Their directories."""
    left_out: Mapping[str, str]
    """Why backends could not take part, by name."""
    without_runs: Mapping[str, str] = field(default_factory=dict)
    """Why no run came out of backends that took part, by name."""

    @property
    def reference(self) -> str | None:
        """The backend that counts as reality: mahimahi where it took part, else our emulated path; None without."""
        real = [name for name in BACKENDS if is_real(name) and name in self.results]
        return real[-1] if real else None

    @property
    def references(self) -> tuple[str, ...]:
        """The backends that others are compared with: the simulator and reality, as far as they took part."""
        if len(self.results) < 2:
            return ()
        return tuple(name for name in (SIMULATED, self.reference) if name is not None and name in self.results)

    def summary(self, scheme: Contender, name: str) -> SchemeSummary | None:
        """A scheme's numbers on a backend; None where it was not run there."""
        there = counterpart(scheme, name)
        rows = self.results[name].schemes if there is not None else ()
        return next((one for one in rows if there is not None and one.style.key == there.key), None)

    def rows(self) -> list[GapRow]:
        """Scheme by scheme, backend by backend."""
        rows = []
        for scheme in self.schemes:
            summaries = {name: self.summary(scheme, name) for name in self.results}
            rows += [self._row(scheme, name, summaries) for name in self.results]
        return rows

    def _row(self, scheme: Contender, name: str, summaries: Mapping[str, SchemeSummary | None]) -> GapRow:
        summary = summaries[name]
        return GapRow(
            scheme=scheme.key,
            label=scheme.label,
            backend=name,
            runs=0 if summary is None else len(summary.valid_runs),
            throughput_mbps=None if summary is None else summary.throughput_mbps,
            delay_p95_ms=None if summary is None else summary.delay_p95_ms,
            loss=None if summary is None else summary.loss,
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
            return f"we have no {kernel} of our own to simulate" if kernel else "not run"
        if summary.unavailable is not None:
            return f"unavailable: {summary.unavailable}"
        failed = [one for one in self.results[name].failures if one.scheme == summary.style.key]
        if failed:
            return f"{len(failed)} runs failed: {failed[0].error.splitlines()[0]}"
        return f"our own {kernel}: the simulator has no kernel" if kernel and not is_real(name) else ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "path": self.path.describe(),
            "path_name": self.path.name,
            "schemes": [scheme.text for scheme in self.schemes],
            "tolerances": {
                "throughput_mbps": {"relative": THROUGHPUT_TOLERANCE},
                "delay_p95_ms": {"absolute": DELAY_TOLERANCE_MS},
                "loss": {"absolute": LOSS_TOLERANCE},
            },
            "reference": self.reference,
            "rows": [asdict(row) for row in self.rows()],
            "left_out": dict(self.left_out),
            "without_runs": dict(self.without_runs),
            "results": {name: str(directory) for name, directory in self.directories.items()},
            "parameters": {name: dict(results.parameters) for name, results in self.results.items()},
            "provenance": {name: dict(results.provenance) for name, results in self.results.items()},
        }

    def write(self, directory: Path) -> None:
        """Write ``ccgym_gap.json``."""
        atomic_write(directory / GAP_FILE, json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n")


def counterpart(scheme: Contender, name: str) -> Contender | None:
    """What stands for a scheme on a backend: the simulator runs our own for the kernel's, if there is one."""
    if is_real(name) or not any(choice.kernel for choice in scheme.choices):
        return scheme
    if any(choice.kernel and choice.kernel not in registry() for choice in scheme.choices):
        return None
    return contender([flow.model_copy(update={"scheme": flow.choice.kernel or flow.scheme}) for flow in scheme.flows])


def with_host_jitter(path: NetworkPath, most_ns: int) -> NetworkPath:
    """The path with acknowledgements that reach the sender up to ``most_ns`` nanoseconds late, each by its own."""
    if most_ns <= 0:
        return path
    jitter = {
        "kind": "jitter",
        "distribution": {"kind": "uniform", "max": Nanoseconds(most_ns)},
        "direction": "downlink",
    }
    return NetworkPath(chain=[*path.chain, jitter], name=path.name, title=path.title, source=path.source)


def differences(ours: SchemeSummary | None, theirs: SchemeSummary | None) -> dict[str, Difference]:
    """How far one measurement is from another, by quantity, where both have numbers."""
    found: dict[str, Difference] = {}
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
        found[quantity] = Difference(absolute, relative, beyond)
    return found


def run_gap(
    path: PathLike,
    schemes: Sequence[object],
    backends: Sequence[str],
    out: Path,
    *,
    runs: int = 3,
    runtime_ns: int = 30_000_000_000,
    seed: int = 1,
    repeat_limited: int = 0,
    host_jitter_ns: int = 0,
    host_start_ns: int = 0,
    sim_runs: int | None = None,
    observe: Callable[[Experiment], AbstractContextManager[Observer]] | None = None,
    command: Sequence[str] = (),
) -> Gap:
    """Run the same schemes and seeds on several backends, as far as that was not done before.

    Args:
        path: The path, however :meth:`NetworkPath.from_any` understands it.
        schemes: The schemes.
        backends: The backends; those that do not work here are left out, and the gap says why.
        out: Where results go, a folder for each backend.
        runs: Runs per scheme and backend.
        runtime_ns: Length of a run, nanoseconds.
        seed: Root of every random stream.
        repeat_limited: As in :func:`~ccgym.evaluation.engine.measure`.
        host_jitter_ns: In the simulator, acknowledgements reach the sender later by up to this, nanoseconds, each by
            its own. No host is as exact as the simulator: where such trifles decide what a scheme does, one simulated
            run is one of many possible ones, and only means over runs compare.
        host_start_ns: In the simulator, flows begin later by up to this, nanoseconds, each run by its own. With real
            packets a flow never begins when the clock of its path does.
        sim_runs: Runs in the simulator, as many as elsewhere by default.
        observe: Makes the observer of a backend's runs.
        command: The command line, for the record.

    Raises:
        ConfigError: An argument is wrong.
        ResultsError: The directory holds something else, or a folder in it is another experiment's.
    """
    path = NetworkPath.from_any(path)
    if not backends:
        raise ConfigError("no backend", where="backends", expected=f"some of {', '.join(BACKENDS)}")
    for name in backends:
        check_name(name, "backends")
    if sim_runs is not None and not 1 <= sim_runs <= MAX_RUNS:
        raise ConfigError(f"{sim_runs}", where="sim-runs", expected=f"a whole number from 1 to {MAX_RUNS}")
    if not 0 <= host_start_ns < runtime_ns:
        raise ConfigError(f"{host_start_ns / 1e6:g} ms", where="host-start", expected="less than the run time")
    refuse_other_kinds(out, "gap")
    chosen = contenders(schemes, "schemes")
    results: dict[str, ResultSet] = {}
    left_out: dict[str, str] = {}
    without_runs: dict[str, str] = {}
    for name in dict.fromkeys(name for name in BACKENDS if name in backends):
        there = {one.key: one for scheme in chosen if (one := counterpart(scheme, name)) is not None}
        if not there:
            left_out[name] = "none of the schemes can be simulated"
            continue
        simulated = name == SIMULATED
        experiment = Experiment(
            path=with_host_jitter(path, host_jitter_ns) if simulated else path,
            schemes=tuple(there.values()),
            runs=sim_runs if simulated and sim_runs is not None else runs,
            runtime_ns=runtime_ns,
            seed=seed,
            backend=name,
            late_start_ns=host_start_ns if simulated else 0,
        )
        try:
            if held_parameters(out / name) is None:  # Before the observer begins to show anything.
                backend(name).require(path, runtime_ns)
            with nullcontext(Silent()) if observe is None else observe(experiment) as observer:
                measured = run_experiment(
                    experiment, out / name, observer=observer, command=command, repeat_limited=repeat_limited
                )
        except (ConfigError, PlatformError, RealPathError) as error:
            left_out[name] = "; ".join(filter(None, (error.found, error.hint)))
            continue
        if measured.cells:
            results[name] = measured
        else:
            without_runs[name] = _why_nothing_ran(measured)
    gap = Gap(path, chosen, results, {name: out / name for name in results}, left_out, without_runs)
    if results:
        gap.write(out)
    return gap


def _why_nothing_ran(results: ResultSet) -> str:
    if results.failures:
        return f"every run failed: {results.failures[0].error}"
    return "; ".join(["no scheme can be run", *dict.fromkeys(results.unavailable.values())])
