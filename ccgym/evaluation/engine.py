"""The engine that measures: runs that are there already are kept, the others are made, each kept as it ends.

Everything is measured by :func:`measure`: evaluations, experiments, scorecards, gaps. It takes the runs
(:class:`~ccgym.evaluation.run.Run`), where they are kept (:class:`~ccgym.evaluation.store.RunStore`), and a
:class:`Reduction`, which says what to make of a record: that is large while it holds packets and series.

Runs are made in threads, or by processes of a cluster (:mod:`ccgym.evaluation.cluster`), which come to the same.

A run that fails does not stop the others. Interrupted, by an exception or by the machine, the same call goes on: of
simulations what is kept is what would come out again; of real packets, which never come out the same, it is what was
measured then.
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
"""The same where packets are real."""

REPEATED: Final = "repeated, since the machine could not hold the schedule of an earlier try"
"""Note of a run before which others were discarded; ``repeats`` in its report says how many."""


@dataclass(frozen=True)
class Reduced:
    """What a reduction leaves where plain data are not all."""

    data: Any
    """Plain data, as JSON has them."""
    arrays: bytes | None = None
    """The content of an ``.npz`` file to be kept with the data (:func:`~ccgym.evaluation.store.packed`)."""


@dataclass(frozen=True)
class Reduction:
    """What is made of a record, and kept.

    A run that is asked for with another reduction is run again.
    """

    name: str
    """What it is called in the store."""
    version: int
    """Rises when :attr:`reduce` makes something else of the same record."""
    reduce: Callable[[Run, RunRecord], Any]
    """Makes plain data of a record, or :class:`Reduced`. It is called in a thread, or in a process elsewhere."""
    missing: Callable[[Run, StoredRun], str | None] | None = None
    """What is missing or wrong with what a kept run left outside of the store, None if it can be used. An empty text:
    it never wrote what is wanted now."""

    @property
    def text(self) -> str:
        """Name and version."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: with data, in an error, or not at all on this machine."""

    run: Run
    stored: StoredRun | None = None
    """What is kept of it; None where it left nothing."""
    error: str | None = None
    """What went wrong; None where nothing did."""
    unavailable: str | None = None
    """Why this machine cannot make it: the kernel lacks its algorithm."""
    left: bool = False
    """Whether time was up before it began."""
    kept: bool = False
    """Whether it was there from before."""
    file: str = ""
    """Its file, relative to the store's directory; empty without a store."""

    @property
    def data(self) -> Any:
        """What the reduction made of it; None where it left nothing."""
        return None if self.stored is None else self.stored.data

    @property
    def arrays_file(self) -> str:
        """The file of its arrays, relative to the store's directory; empty where there are none."""
        return self.file if self.file.endswith(".npz") else ""


@dataclass(frozen=True)
class Made:
    """The result of a run, before it is kept."""

    stored: StoredRun | None
    """None where it could not be made."""
    unavailable: str | None = None
    """Why it could not."""
    arrays: bytes | None = None
    took_s: float = 0.0
    """Seconds, with all that was tried before."""


class RemoteExecutor(Protocol):
    """Processes on other machines that make runs: a cluster."""

    def require(self, runs: Sequence[Run]) -> None:
        """Make sure that it can make these runs.

        Raises:
            CcgymError: It cannot.
        """
        ...

    def at_a_time(self, jobs: int | None) -> int:
        """How many runs it makes at a time, no more than ``jobs``."""
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
        """Make each run, and give each with what came of it, in the order in which they end.

        Args:
            runs: The runs.
            begins: When each begins in virtual time, by digest.
            reduce: What is made of each record, there.
            jobs: How many at a time; None: as many as it has processors.
            begin: Called before a run is sent; it is left if the answer is no.
            keep: Called with what comes back.
            notice: Told what is worth a line.
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
    """Run what is not there yet; the outcomes are in the order of the runs.

    Args:
        runs: The runs, all on one backend. Equal ones are run once.
        reduce: What is made of each record.
        store: Where runs are kept, open; None: nowhere, and then a reduction may leave any object.
        jobs: Runs at a time; by default all processors simulate, and real packets have the machine to themselves.
        observer: Receives the progress.
        repeat_limited: How often a run of real packets is tried again whose schedule the machine could not hold, also
            one that is there from before. The first that it held counts, otherwise the last; the result of the packets
            plays no part.
        retries: How often a run of real packets that ends in an error is tried again. A simulation would end in the
            same one.
        budget: Time for what is missing; None: as much as it takes.
        cluster: Where runs are made; None: in threads here. Only this process writes into the store.
        progress: Gets what other processes may read of it; None: they may not.

    Raises:
        CcgymError: The backend cannot run one of the paths here, or the cluster one of the runs.
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
    """What is known of a run without running it; None where it has to be run."""
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
    """When runs begin, seconds since the epoch. In virtual time they follow one another, however many are simulated at
    once, and come after those that are there."""
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
    """What went wrong with a run, in words."""
    return str(error) if isinstance(error, CcgymError) else f"{type(error).__name__}: {error}"


def make(
    run: Run, reduce: Reduction, begin: float, repeat_limited: int = 0, retries: int = 0, runs_on: Backend | None = None
) -> Made:
    """Run it, and make of it what is kept.

    Args:
        run: The run.
        reduce: What is made of its record.
        begin: When it begins in virtual time, seconds since the epoch.
        repeat_limited: As in :func:`measure`.
        retries: The same.
        runs_on: Its backend, which others may halt.
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
    """The outcome of a run, which is in the store from then on."""
    stored = made.stored
    if stored is None or store is None:
        return RunOutcome(run, stored, unavailable=made.unavailable)
    return RunOutcome(run, store.save(run, stored, made.arrays), file=_file(run, stored))


def _file(run: Run, stored: StoredRun) -> str:
    return run_file(run, stored.reduction, arrays=stored.arrays_sha256 is not None)


def _with_repeats(report: Mapping[str, Any], repeats: int) -> Mapping[str, Any]:
    return {**report, "repeats": repeats, "notes": [*report.get("notes", ()), REPEATED]} if repeats else report
