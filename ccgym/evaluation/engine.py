"""The measurement engine: finished runs are reused, missing runs are made, and each is kept when it ends.

:func:`measure` makes all measurements: evaluations, experiments, scorecards, gaps. Its arguments are the runs
(:class:`~ccgym.evaluation.run.Run`), their store (:class:`~ccgym.evaluation.store.RunStore`), and a
:class:`Reduction`, which computes the kept data from a record: a record with packets and series is large.

Runs are made in threads, or by processes of a cluster (:mod:`ccgym.evaluation.cluster`), with the same results.

A failed run does not stop the others. After an interruption, by an exception or by the machine, the same call
continues. For simulations, kept results equal the results of a new run. For real packets, which never repeat exactly,
they are the earlier measurements.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ccgym.errors import CcgymError
from ccgym.evaluation.backends import Backend, backend
from ccgym.evaluation.budget import Budget
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.progress_file import ProgressFile
from ccgym.evaluation.run import Run
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.store import Damage, RunStore, StoredRun, run_file
from ccgym.evaluation.threads import in_threads
from ccgym.units import Nanoseconds

SIMULATING: Final = "simulating"
"""The stage of :func:`measure`, for observers."""
RUNNING: Final = "running"
"""The stage of :func:`measure` with real packets."""

REPEATED: Final = "repeated, since the machine could not hold the schedule in an earlier try"
"""Note of a run after discarded tries; ``repeats`` in its report is their number."""


@dataclass(frozen=True)
class Reduced:
    """Result of a reduction that has arrays in addition to plain data."""

    data: Any
    """Plain data that JSON can represent."""
    arrays: bytes | None = None
    """The content of an ``.npz`` file to be kept with the data (:func:`~ccgym.evaluation.store.packed`)."""


@dataclass(frozen=True)
class Reduction:
    """The function that computes the kept data from a record.

    The same run with another reduction is run again.
    """

    name: str
    """Name in the store."""
    version: int
    """Version; increases when :attr:`reduce` computes different data from the same record."""
    reduce: Callable[[Run, RunRecord], Any]
    """Returns plain data or :class:`Reduced` for a record. It is called in a thread, or in another process."""
    missing: Callable[[Run, StoredRun], str | None] | None = None
    """Returns the problem of a kept run's files outside the store; None if they can be used. An empty text means that
    the run never wrote the files that are required now."""

    @property
    def text(self) -> str:
        """Name and version."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run: data, an error, or unavailable on this machine."""

    run: Run
    stored: StoredRun | None = None
    """The kept data; None if there are none."""
    error: str | None = None
    """The error; None without an error."""
    unavailable: str | None = None
    """Reason why this machine cannot make the run: the kernel lacks its algorithm."""
    left: bool = False
    """Whether the time budget ran out before the run began."""
    kept: bool = False
    """Whether an earlier call made the run."""
    file: str = ""
    """File of the run, relative to the store's directory; empty without a store."""

    @property
    def data(self) -> Any:
        """Data from the reduction; None if there are none."""
        return None if self.stored is None else self.stored.data

    @property
    def arrays_file(self) -> str:
        """File of the arrays, relative to the store's directory; empty if there are none."""
        return self.file if self.file.endswith(".npz") else ""


@dataclass(frozen=True)
class Made:
    """The result of a run, before it is kept."""

    stored: StoredRun | None
    """Kept data; None if the run could not be made."""
    unavailable: str | None = None
    """Reason why the run could not be made."""
    arrays: bytes | None = None
    took_s: float = 0.0
    """Duration, seconds, earlier tries included."""


class RemoteExecutor(Protocol):
    """A cluster: processes on other machines that make runs."""

    def require(self, runs: Sequence[Run]) -> None:
        """Check that the cluster can make these runs.

        Raises:
            CcgymError: It cannot.
        """
        ...

    def at_a_time(self, jobs: int | None) -> int:
        """Return the number of runs that it makes at the same time, at most ``jobs``."""
        ...

    def each(
        self,
        runs: Sequence[Run],
        begins: Mapping[str, float],
        reduce: Reduction,
        jobs: int | None,
        begin: Callable[[Run], bool],
        keep: Callable[[Run, Made], RunOutcome],
        notice: Callable[[str], None],
    ) -> Generator[tuple[Run, Future[RunOutcome]], None, None]:
        """Make the runs, and yield each run with its outcome, in the order of their ends.

        Args:
            runs: The runs.
            begins: Start of each run in virtual time, by digest.
            reduce: The reduction of each record, computed on the cluster.
            jobs: Maximum number of runs at the same time; None: the number of processors.
            begin: Called before a run is sent; if it returns False, the run is left out.
            keep: Called with each result.
            notice: Called with messages for the user.
        """
        ...


def measure(
    runs: Sequence[Run],
    *,
    reduce: Reduction,
    store: RunStore | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
    repeat_limited: int = 0,
    retries: int = 0,
    budget: Budget | None = None,
    cluster: RemoteExecutor | None = None,
    progress: ProgressFile | None = None,
) -> list[RunOutcome]:
    """Make the missing runs, and return the outcomes in the order of the runs.

    Args:
        runs: The runs, all on one backend. Equal runs are made once.
        reduce: The reduction of each record.
        store: The open store of runs; None: no store, and then a reduction may return any object.
        jobs: Runs at the same time; by default one per processor for simulations, and one for real packets.
        observer: Receives the progress.
        repeat_limited: Maximum number of further tries of a run of real packets whose schedule the machine could not
            hold, also of a run from an earlier call. The first try with a held schedule counts, otherwise the last try,
            independently of its measured numbers.
        retries: Maximum number of further tries of a run of real packets that ended in an error. A simulation would end
            in the same error.
        budget: Time limit for the missing runs; None: no limit.
        cluster: The cluster that makes the runs; None: threads of this process. Only this process writes to the store.
        progress: Writes the progress for other processes; None: nothing is written.

    Raises:
        CcgymError: The backend cannot run one of the paths here, or the cluster cannot make one of the runs.
    """
    if not runs:
        return []
    progress = progress or ProgressFile(None)
    observer = observer or Silent()
    real = runs[0].real
    runs_on = backend(runs[0].backend)
    schemes = {choice.name: choice for run in runs for choice in run.contender.choices}
    unavailable = {name: reason for name, choice in schemes.items() if (reason := runs_on.why_unavailable(choice))}
    outcomes: dict[str, RunOutcome] = {}
    missing: list[Run] = []
    distinct: dict[str, Run] = {}
    for run in runs:
        distinct.setdefault(run.digest, run)
    for key, run in distinct.items():
        lacking = next((unavailable[one.name] for one in run.contender.choices if one.name in unavailable), None)
        outcome = _look(run, store, reduce, lacking, observer, repeat_limited > 0)
        if outcome is None:
            missing.append(run)
        else:
            outcomes[key] = outcome
    for run in {(run.path, run.duration_ns): run for run in missing}.values():
        runs_on.require(run.path, run.duration_ns)
    what = RUNNING if real else SIMULATING
    kept = [outcome.stored for outcome in outcomes.values() if outcome.stored is not None]
    observer.begin(what, len(kept) + len(missing), len(kept))
    progress.begin(what, len(kept) + len(missing), len(kept))
    begins = dict(zip((run.digest for run in missing), _begins(missing, outcomes.values()), strict=True))

    if cluster is not None:
        cluster.require(missing)
        at_a_time = cluster.at_a_time(jobs)
    else:
        at_a_time = jobs or (1 if real else os.cpu_count() or 1)
    if budget is not None:
        budget.plan(missing, [one.wall_s for one in kept])

    def begin(run: Run) -> bool:
        if budget is not None and not budget.admits(run, at_a_time):
            return False
        progress.run_begins(run.name)
        return True

    def keep(run: Run, made: Made) -> RunOutcome:
        if budget is not None:
            budget.ended(made.took_s)
        return _keep(run, made, store)

    def work(run: Run) -> RunOutcome:
        if not begin(run):
            return RunOutcome(run, left=True)
        return keep(run, make(run, reduce, begins[run.digest], repeat_limited, retries, runs_on))

    with closing(
        in_threads(work, missing, at_a_time, runs_on.halt)
        if cluster is None
        else cluster.each(missing, begins, reduce, jobs, begin, keep, observer.notice)
    ) as ended:
        for run, future in ended:
            outcome = outcomes[run.digest] = _outcome(run, future)
            if not outcome.left:
                observer.advance(what, 1, run.name)
                progress.run_ends(run.name, outcome.error)
    # Equal runs may have different names.
    return [replace(outcomes[run.digest], run=run) for run in runs]


def _look(
    run: Run,
    store: RunStore | None,
    reduce: Reduction,
    unavailable: str | None,
    observer: Observer,
    limited_again: bool,
) -> RunOutcome | None:
    """Return the outcome of a run that needs no new run; None if it must be run."""
    found = None if store is None else store.load(run, reduce.text)
    if isinstance(found, StoredRun) and reduce.missing is not None:
        reason = reduce.missing(run, found)
        if reason is not None:
            found = Damage(reason) if reason else None
    if isinstance(found, StoredRun) and (found.limited is None or not limited_again or unavailable):
        return RunOutcome(run, found, kept=True, file=_file(run, found))
    if isinstance(found, StoredRun):
        observer.notice(f"{run.name}: emulator-limited; running it again")
    if isinstance(found, Damage):
        observer.notice(f"{run.name}: {found.reason}; running it again")
    return RunOutcome(run, unavailable=unavailable) if unavailable else None


def _begins(missing: Sequence[Run], known: Iterable[RunOutcome]) -> list[float]:
    """Return the start times of runs, seconds since the epoch. In virtual time, runs follow one another after the kept
    runs, independently of how many are simulated in parallel."""
    ends = [one.stored.started_epoch_s + one.run.duration_ns / 1e9 for one in known if one.stored is not None]
    begins, now = [], max([time.time(), *ends])
    for run in missing:
        begins.append(now)
        now += run.duration_ns / 1e9
    return begins


def _outcome(run: Run, future: Future[RunOutcome]) -> RunOutcome:
    try:
        return future.result()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native core is not an Exception
        return RunOutcome(run, error=reason(error))


def reason(error: BaseException) -> str:
    """Return the text of a run's error."""
    return str(error) if isinstance(error, CcgymError) else f"{type(error).__name__}: {error}"


def make(
    run: Run, reduce: Reduction, begin: float, repeat_limited: int = 0, retries: int = 0, runs_on: Backend | None = None
) -> Made:
    """Make a run, and return the data to keep.

    Args:
        run: The run.
        reduce: The reduction of its record.
        begin: Start in virtual time, seconds since the epoch.
        repeat_limited: As in :func:`measure`.
        retries: As in :func:`measure`.
        runs_on: The run's backend, which other threads may halt.
    """
    runs_on = runs_on or backend(run.backend)
    repeats, since = 0, time.perf_counter()
    while True:
        started, clock = time.time() if run.real else begin, time.perf_counter()
        try:
            record = runs_on.run(run.path, run.contender.flows, Nanoseconds(run.duration_ns), run.seed, run.record)
        except CcgymError:
            retries -= 1
            if retries < 0 or not run.real:
                raise
            continue
        if record.limited is None or repeats == repeat_limited:
            break
        repeats += 1
    if record.path_report is not None:
        for _, why in record.path_report.get("unavailable") or ():
            return Made(None, str(why), took_s=time.perf_counter() - since)
        started = float(record.path_report.get("started_epoch_ms") or started * 1e3) / 1e3
        record = replace(record, path_report=_with_repeats(record.path_report, repeats))
    record = replace(record, started_epoch_s=started)
    reduced = reduce.reduce(run, record)
    if not isinstance(reduced, Reduced):
        reduced = Reduced(reduced)
    now = time.perf_counter()
    stored = StoredRun(
        digest=run.digest,
        reduction=reduce.text,
        name=run.name,
        data=reduced.data,
        trajectory_hash=record.trajectory_hash,
        started_epoch_s=started,
        wall_s=now - clock,
        limited=record.limited,
        arrays_sha256=None if reduced.arrays is None else hashlib.sha256(reduced.arrays).hexdigest(),
    )
    return Made(stored, None, reduced.arrays, now - since)


def _keep(run: Run, made: Made, store: RunStore | None) -> RunOutcome:
    """Save a run in the store, and return its outcome."""
    stored = made.stored
    if stored is None or store is None:
        return RunOutcome(run, stored, unavailable=made.unavailable)
    return RunOutcome(run, store.save(run, stored, made.arrays), file=_file(run, stored))


def _file(run: Run, stored: StoredRun) -> str:
    return run_file(run, stored.reduction, arrays=stored.arrays_sha256 is not None)


def _with_repeats(report: Mapping[str, Any], repeats: int) -> Mapping[str, Any]:
    return {**report, "repeats": repeats, "notes": [*report.get("notes", ()), REPEATED]} if repeats else report
