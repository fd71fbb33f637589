"""Find causes of very low throughput: repeat a scheme's first run without random loss, and with a longer duration."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ccgym.config.path import NetworkPath
from ccgym.config.path_arguments import changed
from ccgym.errors import CcgymError
from ccgym.evaluation.capacity import OPPORTUNITY_BYTES
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.flags import LONGER, Cause, is_starved
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import Run
from ccgym.evaluation.simulate import Job, simulate_many
from ccgym.schemes.python_classes import PythonScheme
from ccgym.units import Nanoseconds

RELIEF: Final = 2.0
"""A cause is confirmed if the run without it carries at least this many times as much."""

MAX_PACKETS: Final = 400_000
"""Maximum number of packets of such a run, which takes a fraction of a second. It is not a time limit, so that the
same seed gives the same flags."""


def causes(experiment: Experiment, results: ResultSet) -> dict[str, Cause]:
    """Return the causes of very low throughput of simulated schemes, by key, if another run confirms them."""
    starved = {one.style.key: one.valid_runs[0] for one in results.schemes if is_starved(one)}
    runs = {run.contender.key: run for run in experiment.planned() if run.number == 1} if starved else {}
    asked = [
        (key, cause, other)
        for key, cell in starved.items()
        if cell.run == 1 and not any(isinstance(one, PythonScheme) for one in runs[key].contender.choices)
        for cause, other in _others(runs[key], cell.record.link.capacity_mbps or 0.0)
    ]
    jobs = [Job(run.path, run.contender.flows, Nanoseconds(run.duration_ns), run.seed) for *_, run in asked]
    found: dict[str, Cause] = {}
    try:
        records = simulate_many(jobs)
    except CcgymError:  # Such a run may need more memory. The user did not request it.
        return found
    for (key, cause, _), record in zip(asked, records, strict=True):
        carried = record.total.throughput_mbps
        if carried >= RELIEF * starved[key].record.total.throughput_mbps:
            found.setdefault(key, replace(cause, told=f"{cause.told} {carried:.2f} Mbit/s"))
    return found


def _others(run: Run, capacity_mbps: float) -> list[tuple[Cause, Run]]:
    """Return runs that differ in one parameter, with the cause that they would confirm."""
    path, length_s = run.path, run.duration_ns / 1e9
    others = []
    if path.loss > 0 and path.chain:
        lossless = NetworkPath(chain=changed(path.chain, {"loss": 0}, "chain"))
        cause = Cause("random loss", "without random loss", f"loss=0,{path.loss:g}")
        others.append((cause, replace(run, path=lossless)))
    long_s = LONGER * length_s
    cause = Cause("the length of the run", f"over {long_s:g} s", f"runtime={length_s:g}s,{long_s:g}s")
    others.append((cause, replace(run, duration_ns=LONGER * run.duration_ns)))
    packets = capacity_mbps * 1e6 / 8 / OPPORTUNITY_BYTES
    return [(cause, other) for cause, other in others if packets * other.duration_ns / 1e9 <= MAX_PACKETS]
