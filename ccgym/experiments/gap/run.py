"""Running a gap: every backend is an evaluation in a directory of its own."""

from __future__ import annotations

import json
from typing import Any, Final

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation.backends import BACKENDS, SIMULATED, backend
from ccgym.evaluation.directory import held_parameters
from ccgym.evaluation.engine import Observer, Silent
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import Contender
from ccgym.experiments.comparison import Counting, run_evaluation
from ccgym.experiments.gap.results import Gap, counterpart
from ccgym.experiments.gap.spec import GapSpec
from ccgym.experiments.request import Request, default_schemes
from ccgym.files import atomic_write
from ccgym.units import Nanoseconds

GAP_FILE: Final = "ccgym_gap.json"


def run_gap(spec: GapSpec, request: Request, observer: Observer | None = None) -> Gap:
    """Run what is not there yet on each backend, and write ``ccgym_gap.json``.

    Raises:
        ConfigError: Nothing can be run, or the request names a backend.
        ResultsError: A directory holds another experiment's results.
    """
    observer = observer or Silent()
    if request.backend != SIMULATED:
        raise ConfigError(
            f"backend {request.backend}",
            where="backend",
            expected=f"none: {spec.name} has a list of backends",
            hint="leave it out, or use ccgym gap --backends",
        )
    schemes = request.schemes or default_schemes(spec.schemes)
    results: dict[str, ResultSet] = {}
    left_out: dict[str, str] = {}
    without_runs: dict[str, str] = {}
    for name in spec.backends or BACKENDS:
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
            "nothing ran", where="backends", expected="one or more that work here", hint="; ".join(reasons)
        )
    gap = Gap(spec, schemes, results, {name: request.out / name for name in results}, left_out, without_runs)
    atomic_write(request.out / GAP_FILE, json.dumps(gap.to_json(), indent=1, ensure_ascii=False) + "\n")
    return gap


def _evaluation(spec: GapSpec, request: Request, schemes: tuple[Contender, ...], name: str) -> Experiment | None:
    """What is run on a backend; None where none of the schemes can be."""
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
    """The path with every acknowledgement delayed by up to ``max_ns`` nanoseconds, at random."""
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
