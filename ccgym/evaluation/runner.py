"""Running an experiment: many cells at a time, each written as it completes, all of it resumable."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from ccgym.config.path import NetworkPath
from ccgym.emulation.report import PathReport, limited_reason
from ccgym.errors import CcgymError
from ccgym.evaluation import mahimahi_log, pantheon
from ccgym.evaluation.backends import Backend, backend
from ccgym.evaluation.experiment import Cell, Experiment, LogsPolicy
from ccgym.evaluation.flags import flag_dicts, flags, path_facts
from ccgym.evaluation.frames import result_table, series_table, to_csv
from ccgym.evaluation.prepared_run import MAX_MEMORY, Record, memory_bytes
from ccgym.evaluation.provenance import git_summary, provenance
from ccgym.evaluation.results import (
    RESULTS_CSV,
    RESULTS_FILE,
    CellFailure,
    CellResult,
    CellUnavailable,
    PublishedPoint,
    ResultSet,
    atomic_write,
    ordered,
)
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.store import Damage, ResultStore, holder
from ccgym.schemes.registry import SchemeChoice, styles
from ccgym.units import NS_PER_MS, Nanoseconds

REPEATED: Final = "repeated, since the machine could not hold the schedule of an earlier try"
"""Note of a run before which others were discarded; ``repeats`` in its report says how many."""

SERIES_STEP_NS: Final = 100 * NS_PER_MS
"""Intervals of the CSV of a run: a tenth of the recorded series, some 20 kB per flow and 30 s."""

Outcome = CellResult | CellFailure | CellUnavailable
"""How a run can end."""


class Observer(Protocol):
    """Who wants to know how a sweep goes; called from the main thread only."""

    def notice(self, text: str) -> None:
        """Something worth a line: a damaged result that is run again."""
        ...

    def begin(self, done: int, total: int) -> None:
        """The sweep begins; ``done`` runs were there already."""
        ...

    def cell(self, outcome: Outcome, done: int, total: int) -> None:
        """A run ended, well or not."""
        ...


@dataclass(frozen=True)
class Silent:
    """An observer that does nothing."""

    def notice(self, text: str) -> None:
        """See :class:`Observer`."""

    def begin(self, done: int, total: int) -> None:
        """See :class:`Observer`."""

    def cell(self, outcome: Outcome, done: int, total: int) -> None:
        """See :class:`Observer`."""


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    jobs: int | None = None,
    logs: LogsPolicy = "none",
    observer: Observer | None = None,
    command: Sequence[str] = (),
    grow: bool = False,
    repeat_limited: int = 0,
    max_memory: str = MAX_MEMORY,
) -> ResultSet:
    """Run what is not there yet, and write Pantheon's files and ``ccgym_results.json``.

    Runs go to threads: the simulator releases the interpreter's lock, a real run has a process of its own. A run that
    fails does not stop the others; it is in :attr:`ResultSet.failures`. Schemes that this machine cannot run are in
    :attr:`ResultSet.unavailable`. Interrupted, by an exception or by the machine, call it again with the same
    arguments: what is finished is kept. Of simulations that is what would come out again; of runs over real packets,
    which never come out the same, it is what was measured then.

    Args:
        experiment: What to run.
        out: The results directory; made if it does not exist.
        jobs: Runs at a time; by default all processors simulate, and real packets have the machine to themselves.
        logs: Of which runs packet logs are written.
        observer: Who is told how it goes.
        command: The command line, for the record.
        grow: Whether the directory may hold the same experiment with other schemes or runs; those are used, and kept.
        repeat_limited: How often a run of real packets is tried again whose schedule the machine could not hold, also
            one that is there from before. The first that it held counts, otherwise the last; what the packets came to
            plays no part.
        max_memory: What each simulation may hold; see :class:`ccgym.evaluation.prepared_run.Record`.

    Raises:
        CcgymError: The backend cannot run this path here, or the directory is another experiment's.
    """
    memory_bytes(max_memory, "max_memory")
    observer = observer or Silent()
    started = time.time()
    runs_on = backend(experiment.backend)
    begun = holder(out) is not None
    if not begun:  # Before anything is written.
        runs_on.require(experiment.path, experiment.runtime_ns)
    with ResultStore(out, experiment, grow=grow) as store:
        # Asked only now: an answer may take a look at the machine.
        unavailable = {
            choice.key: reason for choice in experiment.schemes if (reason := runs_on.why_unavailable(choice))
        }
        finished, missing = _look(experiment, store, logs, observer, unavailable, repeat_limited > 0)
        if missing and begun:
            runs_on.require(experiment.path, experiment.runtime_ns)
        total = len(finished) + len(missing)
        observer.begin(len(finished), total)
        failures: list[CellFailure] = []
        # Threads, not processes: nothing is pickled, a library user needs no `if __name__` guard, and what is not in
        # the simulator is numpy, which releases the lock where it matters.
        workers = jobs or (1 if experiment.real else os.cpu_count() or 1)
        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="cell") as pool:
            # In virtual time runs follow one another, as those of Pantheon do, however many are simulated at once.
            begin = 0.0 if experiment.real or not missing else max(started, store.last_end())
            futures: dict[Future[CellResult | CellUnavailable], Cell] = {
                pool.submit(
                    _run_cell,
                    experiment,
                    cell,
                    runs_on,
                    store,
                    begin + place * experiment.runtime_ns / 1e9,
                    _record(logs, cell, max_memory),
                    repeat_limited,
                ): cell
                for place, cell in enumerate(missing)
            }
            try:
                for future, cell in _as_completed(futures):
                    outcome = _outcome(future, cell)
                    if isinstance(outcome, CellResult):
                        finished.append(outcome)
                    elif isinstance(outcome, CellUnavailable):
                        unavailable[outcome.scheme] = outcome.reason
                        total -= 1
                    else:
                        failures.append(outcome)
                    observer.cell(outcome, len(finished) + len(failures), total)
            except BaseException:
                runs_on.halt()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        results = _result_set(experiment, finished, failures, unavailable, command, started)
        results = _with_flags(results, experiment)
        write_pantheon_files(results, experiment, out)
        write_results(results, out)
    return results


def _result_set(
    experiment: Experiment,
    finished: Sequence[CellResult],
    failures: Sequence[CellFailure],
    unavailable: Mapping[str, str],
    command: Sequence[str],
    started: float,
) -> ResultSet:
    looks = styles(experiment.schemes)
    wall_s = time.time() - started
    return ResultSet(
        parameters=experiment.parameters(),
        provenance={
            **provenance(experiment.path.describe(), command, started, wall_s, experiment.backend),
            "policies": {
                choice.key: choice.policy.provenance() for choice in experiment.schemes if choice.policy is not None
            },
        },
        styles=looks,
        cells=ordered(finished, looks),
        failures=tuple(sorted(failures, key=lambda failure: (failure.scheme, failure.run))),
        # What was published is of one flow; beside several it would invite a wrong comparison.
        published=published_points(experiment.path, experiment.schemes) if experiment.flows == 1 else {},
        published_source=experiment.path.published_source if experiment.flows == 1 else "",
        unavailable=dict(unavailable),
    )


def wants_logs(policy: LogsPolicy, cell: Cell) -> bool:
    """Whether the packet logs of a run are to be written."""
    return policy == "all" or (policy == "first" and cell.run == 1)


def _record(policy: LogsPolicy, cell: Cell, max_memory: str) -> Record:
    """What a run remembers: what metrics need, and for packet logs the rest."""
    with_logs = wants_logs(policy, cell)
    return Record(acks=with_logs, link_events=with_logs, max_memory=max_memory)


def _look(
    experiment: Experiment,
    store: ResultStore,
    logs: LogsPolicy,
    observer: Observer,
    unavailable: Mapping[str, str],
    limited_again: bool,
) -> tuple[list[CellResult], list[Cell]]:
    """What is there already, and what remains to be run."""
    finished: list[CellResult] = []
    missing: list[Cell] = []
    for cell in experiment.cells():
        found = store.read(cell, with_logs=wants_logs(logs, cell))
        if found is None and experiment.real and isinstance(kept := store.read(cell, with_logs=False), CellResult):
            # A simulation would be repeated for its logs, packet by packet. This cannot be.
            observer.notice(f"{cell.name}: kept without packet logs, which nobody asked for when it ran")
            found = kept
        if isinstance(found, CellResult) and not experiment.real and not store.series_file(cell).exists():
            found = Damage(cell.name, f"{store.series_file(cell).name} is missing")
        if isinstance(found, CellResult):
            if found.limited is None or not limited_again or cell.choice.key in unavailable:
                finished.append(found)
                continue
            observer.notice(f"{cell.name}: emulator-limited; running it again")
        if isinstance(found, Damage):
            observer.notice(f"{found.cell}: {found.reason}; running it again")
        if cell.choice.key not in unavailable:
            missing.append(cell)
    return finished, missing


def _as_completed(futures: Mapping[Future[CellResult | CellUnavailable], Cell]) -> Any:
    """Futures as they complete. Waiting in short turns lets Ctrl-C through."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            yield future, futures[future]


def _outcome(future: Future[CellResult | CellUnavailable], cell: Cell) -> Outcome:
    try:
        return future.result()
    except CcgymError as error:
        text = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native core is no Exception
        text = f"{type(error).__name__}: {error}"
    return CellFailure(scheme=cell.choice.key, run=cell.run, seed=cell.seed, error=text)


def _run_cell(
    experiment: Experiment,
    cell: Cell,
    runs_on: Backend,
    store: ResultStore,
    begin: float,
    recorded: Record,
    repeat_limited: int,
) -> CellResult | CellUnavailable:
    """Run a cell and store it; ``begin`` is when it begins in virtual time, seconds since the epoch."""
    repeats = 0
    while True:
        started = time.time() if experiment.real else begin
        clock = time.perf_counter()
        record = runs_on.run(
            experiment.path,
            experiment.cell_flows(cell),
            Nanoseconds(experiment.runtime_ns),
            cell.seed,
            recorded,
        )
        if limited_reason(record.path_report) is None or repeats == repeat_limited:
            break
        repeats += 1
    if repeats:
        assert record.path_report is not None
        notes = [*record.path_report.get("notes", ()), REPEATED]
        record = replace(record, path_report={**record.path_report, "repeats": repeats, "notes": notes})
    if record.path_report is not None:
        missing = PathReport(record.path_report).unavailable
        if missing:
            return CellUnavailable(cell.choice.key, cell.run, next(iter(missing.values())))
        started = float(record.path_report.get("started_epoch_ms") or started * 1e3) / 1e3
    assert record.metrics is not None
    logs = _write_logs(experiment, cell, record, store.directory, started) if recorded.link_events else []
    atomic_write(store.series_file(cell), to_csv(series_table(record, Nanoseconds(SERIES_STEP_NS))))
    result = CellResult(
        scheme=cell.choice.key,
        run=cell.run,
        record=record,
        invalid=record.metrics.invalid_reason(experiment.runtime_ns / 1e9),
        started_epoch_s=started,
        wall_s=time.perf_counter() - clock,
    )
    store.write(cell, result, record.curves(), logs)
    return result.without_packets()


def _write_logs(experiment: Experiment, cell: Cell, record: RunRecord, directory: Path, started: float) -> list[str]:
    """Write the packet logs of a run; their names."""
    assert record.native is not None
    native = record.native
    names: list[str] = []

    def write(name: str, writer: Any) -> None:
        partial = directory / f".{name}.partial"
        writer(partial)
        partial.replace(directory / name)
        names.append(name)

    epoch_ms = started * 1e3
    compiled = experiment.path.compile()
    command = ["ccgym", experiment.path_name]
    ways: tuple[tuple[str, Literal["data", "ack"], mahimahi_log.Direction], ...] = (
        ("datalink", "data", "up"),
        ("acklink", "ack", "down"),
    )
    for link, packets, direction in ways:
        write(
            pantheon.tunnel_log_file(cell.choice.key, cell.run, link),
            lambda file, packets=packets: native.write_tunnel_log(file, packets, epoch_ms),
        )
        name = pantheon.mm_log_file(cell.choice.key, cell.run, link)
        header = mahimahi_log.mm_log_header(compiled.uplink, compiled.downlink, direction, epoch_ms, command, name)
        if header is not None:
            write(
                name,
                lambda file, direction=direction, header=header: native.write_mm_log(file, direction, header),
            )
    return names


def published_points(path: NetworkPath, schemes: Sequence[SchemeChoice] = ()) -> dict[str, PublishedPoint]:
    """The published numbers of a path, by scheme key.

    A report's name of a scheme is ours, with hyphens or underscores: ``synthesized-bbr``. What Pantheon published of
    Cubic and BBR was the kernel's, and of a learned scheme whatever version of it there was. So the numbers stand
    beside the kernel's and beside every policy of that name, too, and then not in a row of their own.

    Args:
        path: The path.
        schemes: The schemes that are evaluated on it.
    """
    points = {
        _plain(key): PublishedPoint(
            label=entry.label,
            runs=entry.runs,
            throughput_mbps=entry.throughput_mbps,
            delay_p95_ms=entry.delay_p95_ms,
            loss=entry.loss,
        )
        for key, entry in path.published.items()
    }
    # With other parameters than the defaults it is not what was measured.
    names = {choice.key: _plain(choice.kernel or choice.title) for choice in schemes if not choice.settings}
    beside = {key: points[name] for key, name in names.items() if name in points}
    alone = {name: point for name, point in points.items() if name not in names.values()}
    return {**alone, **beside}


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _with_flags(results: ResultSet, experiment: Experiment) -> ResultSet:
    facts = path_facts(experiment.path, results)
    return replace(results, flags=flag_dicts(flags(results, facts)))


def write_pantheon_files(results: ResultSet, experiment: Experiment, out: Path) -> None:
    """Write metadata, performance, looks and the statistics of every run, as Pantheon names and formats them."""
    atomic_write(out / pantheon.CONFIG_FILE, pantheon.config_yml(results.styles))
    valid = {(cell.scheme, cell.run): cell.record.metrics for cell in results.cells if cell.invalid is None}
    atomic_write(
        out / pantheon.PERF_FILE,
        pantheon.perf_json(
            [style.key for style in results.styles],
            {key: metrics for key, metrics in valid.items() if metrics is not None},
        ),
    )
    parts = experiment.path.mahimahi_parts()
    atomic_write(
        out / pantheon.METADATA_FILE,
        pantheon.metadata_json(
            schemes=[style.key for style in results.styles],
            flows=experiment.flows,
            runtime_s=experiment.runtime_ns / 1e9,
            interval_s=experiment.interval_ns / 1e9,
            run_times=experiment.runs,
            git_summary=git_summary(),
            uplink_trace=parts["uplink_trace"] or "unconstrained",
            downlink_trace=parts["downlink_trace"] or "unconstrained",
            prepend_mm_cmds=parts["prepend_mm_cmds"],
            append_mm_cmds=parts["append_mm_cmds"],
            extra_mm_link_args=parts["extra_mm_link_args"],
        ),
    )
    # Runs in virtual time may end in the future of the wall clock; whoever computes statistics does so later.
    now = max([time.time(), *(cell.started_epoch_s + cell.record.duration_s for cell in results.cells)])
    for cell in results.cells:
        text = pantheon.stats_text(
            cell.record.metrics if cell.invalid is None else None,
            start_epoch_s=cell.started_epoch_s,
            end_epoch_s=cell.started_epoch_s + cell.record.duration_s,
            generated_epoch_s=now,
        )
        atomic_write(out / pantheon.stats_file(cell.scheme, cell.run), text)


def write_results(results: ResultSet, out: Path) -> None:
    """Write ``ccgym_results.json``, and the numbers of each flow as CSV."""
    atomic_write(out / RESULTS_CSV, to_csv(result_table(results)))
    atomic_write(out / RESULTS_FILE, json.dumps(results.as_dict(), indent=1, ensure_ascii=False) + "\n")
