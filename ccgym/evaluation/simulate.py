"""Run flows over a path in virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ccgym.config.path import PathLike
from ccgym.emulation import python_schemes
from ccgym.errors import SimulationError, explained
from ccgym.evaluation.prepared_run import Flow, PreparedRun, Record, prepare
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.threads import in_threads
from ccgym.units import TimeLike

if TYPE_CHECKING:
    from ccgym import _core

__all__ = ["Flow", "Job", "Record", "RunRecord", "simulate", "simulate_many"]


@dataclass(frozen=True)
class Job:
    """The arguments of one :func:`simulate` call, for :func:`simulate_many`."""

    path: PathLike
    """The path, in any form that :meth:`NetworkPath.from_any` accepts."""
    flows: Sequence[Flow]
    """The flows on it."""
    duration: TimeLike = "30s"
    """Length of the run: seconds, or text with a unit."""
    seed: int = 1
    """Root of every random stream."""


def simulate(
    path: PathLike,
    flows: Sequence[Flow] = ("cubic",),
    duration: TimeLike = "30s",
    seed: int = 1,
    record: Record | None = None,
) -> RunRecord:
    """Run flows over a path in virtual time. The same arguments, seed included, give the same packets.

    Args:
        path: The path: its name (``"77.72mbps"``), a :class:`NetworkPath`, a mahimahi command line, or anything else
            that :meth:`NetworkPath.from_any` accepts.
        flows: One entry per flow: the name of a scheme or policy, or a mapping with the fields of :class:`FlowSpec`.
        duration: Length of the run in virtual time: seconds (``30``), or with a unit (``"500ms"``).
        seed: Root of every random stream: losses, jitter, on/off sources.
        record: The data to record; by default packets, and series every 10 ms.

    Returns:
        The run's record: ``run.flows[0].throughput_mbps``, ``run.total``, ``run.link.drops``, ``run.ccperf()``.

    Raises:
        ConfigError: An argument is wrong.
        SchemeNotFoundError: No scheme has that name.
        SimulationError: The simulator refused the run, or the run would need more memory than ``record.max_memory``.

    Example::

        path = ccgym.NetworkPath(rate="32mbps", rtt="15ms", queue="40p")
        run = ccgym.simulate(path, flows=["cubic", {"scheme": "reno", "start": "5s"}], duration="30s", seed=1)
    """
    return simulate_prepared(prepare(path, flows, duration, seed, record))


def simulate_prepared(run: PreparedRun, halt: _core.Halt | None = None) -> RunRecord:
    """Run a prepared run; see :func:`simulate`.

    Args:
        run: The run.
        halt: Ends the run early, from another thread. Ctrl-C ends it if it runs in the main thread.
    """
    from ccgym import _core

    for place, spec in enumerate(run.flows):
        spec.choice.refuse("simulator", f"flows[{place}]")
    try:
        result = _core.simulate(
            json.dumps(run.document),
            run.compiled.traces,
            {key: policy.native for key, policy in run.policies.items()},
            {key: scheme.made for key, scheme in run.python.items()},
            halt,
        )
    except _core.SchemeFailure as error:
        raise python_schemes.explained(error) from error
    except MemoryError as error:
        refused = explained(SimulationError, error, "memory-exceeded", where="simulation")
        refused.hint = refused.hint or (
            "look for an unlimited queue or flow (`ccgym paths show`), make the run shorter, record less, or allow "
            "more with --max-memory, in Python record=Record(max_memory='8GB')"
        )
        raise refused from None
    except RuntimeError as error:
        raise explained(SimulationError, error, "run-abandoned", where="simulation") from None
    except ValueError as error:
        raise explained(SimulationError, error, "simulation-refused", where="simulation") from error
    return run.run_record(result)


def simulate_many(
    jobs: Iterable[Job], threads: int | None = None, record: Record | None = None, *, keep: bool = False
) -> list[RunRecord]:
    """Run many simulations in parallel. Records are in the order of the jobs, and do not depend on ``threads``.

    Args:
        jobs: The runs.
        threads: Number of simulations at the same time; by default one per processor.
        record: The data that each run records, as in :func:`simulate`.
        keep: Whether to keep packets, series and the native result. They take about 10 MB per 30 s run at
            80 Mbit/s; by default only the numbers are kept.
    """
    from ccgym import _core

    halt = _core.Halt()

    def run(job: Job) -> RunRecord:
        done = simulate_prepared(prepare(job.path, job.flows, job.duration, job.seed, record), halt)
        if done.ccperf_tables is not None and not keep:
            done.ccperf_tables.scopes()  # computed from the series, so before they are dropped
        return done if keep else replace(done, series=None, native=None, capacity=None)

    asked = list(jobs)
    records: dict[int, RunRecord] = {}
    with closing(in_threads(lambda place: run(asked[place]), range(len(asked)), threads, halt.set)) as ended:
        for place, future in ended:
            records[place] = future.result()
    return [records[place] for place in range(len(asked))]
