"""Run an experiment on one path: the reduction of each run, and all result files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ccgym.config.catalog_file import PublishedResult
from ccgym.config.hosts import hosts_of
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, RealPathError
from ccgym.evaluation.backends import Backend, backend
from ccgym.evaluation.budget import Budget
from ccgym.evaluation.counterfactual import causes
from ccgym.evaluation.directory import claim, held_parameters
from ccgym.evaluation.engine import Reduced, Reduction, RemoteExecutor, RunOutcome, measure
from ccgym.evaluation.experiment import EDITED, Experiment, LogsPolicy, logged
from ccgym.evaluation.flags import flag_dicts, flags
from ccgym.evaluation.kept_arrays import packed
from ccgym.evaluation.kept_series import SERIES_STEP_NS, kept_series, series_file
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.pantheon.packet_logs import has_raw_logs, what_is_wrong, write_packet_logs
from ccgym.evaluation.pantheon.write import write_pantheon_files
from ccgym.evaluation.path_facts import path_facts
from ccgym.evaluation.prepared_run import MAX_MEMORY, memory_bytes
from ccgym.evaluation.probe import probe
from ccgym.evaluation.progress_file import ProgressFile
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.results import ResultSet, ordered
from ccgym.evaluation.results_file import write_results
from ccgym.evaluation.run import Contender, Run
from ccgym.evaluation.run_record import RunRecord, series_table
from ccgym.evaluation.scheme_summary import CellFailure, CellResult
from ccgym.evaluation.store import RunStore, StoredRun
from ccgym.files import MAX_ARRAYS_BYTES, UnreadableError, atomic_write, read_bytes
from ccgym.units import Nanoseconds

MAY_GROW: Final = ("schemes", "contenders", "policies", "files", "runs")
"""Parameters in which an experiment may differ from earlier results in the same directory."""

NO_LOGS: Final = "kept without packet logs: they were not requested when it ran"
"""Notice of a run with real packets: a repetition for its logs would give other results."""


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    jobs: int | None = None,
    logs: LogsPolicy | Collection[str] = "none",
    raw_logs: bool = False,
    observer: Observer | None = None,
    command: Sequence[str] = (),
    grow: bool = False,
    repeat_limited: int = 0,
    retries: int = 0,
    budget_s: float | None = None,
    max_memory: str = MAX_MEMORY,
    cluster: RemoteExecutor | None = None,
) -> ResultSet:
    """Make the missing runs, and write Pantheon's files and ``results.json``.

    A failed run does not stop the others; it is in :attr:`ResultSet.failures`. Schemes that this machine cannot run
    are in :attr:`ResultSet.unavailable`. After an interruption, call it again with the same arguments: it continues
    where it stopped (:mod:`ccgym.evaluation.engine`).

    Args:
        experiment: The experiment.
        out: The results directory; created if it does not exist.
        jobs: Runs at the same time; by default one per processor for simulations, and one for real packets.
        logs: The runs to write packet logs for; also as names, such as ``cubic_run1``.
        raw_logs: Whether to include the raw logs of Pantheon's tunnel.
        observer: Receives the progress.
        command: The command line, for the record.
        grow: Whether the directory may contain the same experiment with other schemes or runs; these are used and kept.
        repeat_limited: As in :func:`~ccgym.evaluation.engine.measure`.
        retries: As in :func:`~ccgym.evaluation.engine.measure`.
        budget_s: Time limit, seconds; further runs are left for the next call. None: no limit.
        max_memory: Memory limit of each simulation; see :class:`ccgym.evaluation.prepared_run.Record`.
        cluster: As in :func:`~ccgym.evaluation.engine.measure`; without packet logs.

    Raises:
        CcgymError: The backend cannot run this path here, or the directory belongs to another experiment.
    """
    memory_bytes(max_memory, "max_memory")
    if cluster is not None and logs != "none":
        raise ConfigError(
            "backend-unsuitable",
            f"packet logs ({logs}) of runs on a cluster",
            where="logs",
            expected="none: they would be written on the machines that make the runs, and are too large to send",
            hint="to get packet logs, run without --cluster",
        )
    observer = observer or Silent()
    started = time.time()
    held = held_parameters(out)
    if held is None:  # Before anything is written.
        runs_on = backend(experiment.backend)
        runs_on.require(experiment.path, experiment.runtime_ns)
        described = experiment.real and hosts_of(experiment.path) is None
        if described and any(_available(one, runs_on) for one in experiment.schemes):
            observer.notice(_probed(experiment, runs_on))
    with RunStore(out, "evaluation") as store, ProgressFile(out) as progress:
        edited = EDITED if held is not None and experiment.continues(held) else ()
        claim(out, experiment.parameters(), may_differ=MAY_GROW if grow else edited)
        outcomes = measure(
            experiment.planned(logs, max_memory),
            reduce=_evaluation(out, logs, raw_logs=raw_logs),
            store=store,
            jobs=jobs,
            observer=observer,
            repeat_limited=repeat_limited,
            retries=retries,
            budget=None if budget_s is None else Budget(budget_s, lambda run: run.number),
            cluster=cluster,
            progress=progress,
        )
        for outcome in outcomes:
            if outcome.kept and logged(logs, outcome.run.name) and not outcome.data["log_files"]:
                observer.notice(f"{outcome.run.name}: {NO_LOGS}")
        results = _result_set(experiment, outcomes, out, command, started)
        runs = () if logs == "none" else [one.name for one in results.cells] if isinstance(logs, str) else logs
        write_pantheon_files(results, experiment, out, runs=runs)
        write_results(out, results.as_dict(), results.rows())
    return results


def _available(one: Contender, runs_on: Backend) -> bool:
    return all(runs_on.why_unavailable(choice) is None for choice in one.choices)


def _probed(experiment: Experiment, runs_on: Backend) -> str:
    """Return the result of a probe of the empty path; raise :class:`ConfigError` if its delay is too long."""
    try:
        found = probe(experiment.path, runs_on, experiment.seed)
    except RealPathError as error:
        return f"the empty path was not probed: {error}"  # The runs will report the error.
    return (
        f"empty path: {found.packets} packets, median one-way delay {found.one_way_delay_ms:.1f} ms "
        f"(its own: {found.own_ms:.1f} ms)"
    )


def _evaluation(out: Path, asked: LogsPolicy | Collection[str], *, raw_logs: bool) -> Reduction:
    """Return the reduction that keeps a run's numbers, curves and series, and writes its packet logs to the results
    directory. Logs of real packets that ``asked`` does not name are compressed."""

    def reduce(run: Run, record: RunRecord) -> Reduced:
        record = _with_program_logs(run, record, out)
        assert record.metrics is not None
        pack = not logged(asked, run.name)
        raw = raw_logs and not pack
        logs = write_packet_logs(run, record, out, raw=raw, pack=pack) if run.record.link_events else {}
        series = kept_series(series_table(record, Nanoseconds(SERIES_STEP_NS)))
        invalid = record.metrics.invalid_reason(run.duration_ns / 1e9)
        data = {
            "record": record.as_dict(),
            "invalid": invalid,
            "log_files": logs,
        }
        return Reduced(data, packed({**record.curves().arrays(), **series}))

    def missing(run: Run, stored: StoredRun) -> str | None:
        if wrong := _wrong_series(out / series_file(run.name), stored.data.get("series_sha256")):
            return wrong
        logs = stored.data["log_files"]
        if not logged(asked, run.name) or (run.real and not logs):
            return None
        if raw_logs and not run.real and not has_raw_logs(logs):
            return ""
        found = (f"{name} {what}" for name, known in logs.items() if (what := what_is_wrong(out / name, known)))
        return next(found, None) if logs else ""

    return Reduction("evaluation", 1, reduce, missing)


def _wrong_series(file: Path, known: str | None) -> str | None:
    """Return the problem of the CSV file in which the previous version kept series; ``known`` is its checksum."""
    try:
        matches = known is None or hashlib.sha256(read_bytes(file, MAX_ARRAYS_BYTES)).hexdigest() == known
    except (FileNotFoundError, UnreadableError):
        matches = False
    return None if matches else f"{file.name} is missing, cut off or edited"


def _with_program_logs(run: Run, record: RunRecord, out: Path) -> RunRecord:
    """Write the output of external programs to a file, ``NAME_programs.log``, and remove it from the record."""
    said = (record.path_report or {}).get("programs") or ()
    if not said:
        return record
    parts = (f"=== flow {one['flow'] + 1}, {one['end']} ===\n{one['text'].rstrip()}\n" for one in said)
    atomic_write(out / f"{run.name}_programs.log", "\n".join(parts))
    return replace(record, path_report={**(record.path_report or {}), "programs": []})


def _result_set(
    experiment: Experiment, outcomes: Sequence[RunOutcome], out: Path, command: Sequence[str], started: float
) -> ResultSet:
    styles = tuple(one.style for one in experiment.schemes)
    wall_s = time.time() - started
    made = provenance(experiment.path.describe(), command, started, wall_s, experiment.backend)
    loaded = {key: found for one in experiment.schemes for key, found in one.provenance.items()}
    results = ResultSet(
        parameters=experiment.parameters(),
        provenance={**made, "policies": loaded},
        styles=styles,
        cells=ordered([_cell(outcome) for outcome in outcomes if outcome.stored is not None], styles),
        failures=tuple(
            sorted(
                (
                    CellFailure(one.run.contender.key, one.run.number, one.run.seed, one.error)
                    for one in outcomes
                    if one.error is not None
                ),
                key=lambda failure: (failure.scheme, failure.run),
            )
        ),
        # Published numbers are for one flow; next to several flows, they would be misleading.
        published=published_results(experiment.path, experiment.schemes) if experiment.flows == 1 else {},
        published_source=experiment.path.published_source if experiment.flows == 1 else "",
        left=sum(one.left for one in outcomes),
        unavailable={one.run.contender.key: one.unavailable for one in outcomes if one.unavailable is not None},
        directory=out,
    )
    facts = None if hosts_of(experiment.path) is not None else path_facts(experiment.path, results)
    known = {} if experiment.real else causes(experiment, results)
    return replace(results, flags=flag_dicts(flags(results, facts, known)))


def _cell(outcome: RunOutcome) -> CellResult:
    assert outcome.stored is not None
    stored = outcome.stored
    return CellResult(
        scheme=outcome.run.contender.key,
        run=outcome.run.number,
        record=RunRecord.from_dict(stored.data["record"]),
        invalid=stored.data["invalid"],
        started_epoch_s=stored.started_epoch_s,
        wall_s=stored.wall_s,
        curves=outcome.arrays_file,
    )


def published_results(path: NetworkPath, schemes: Sequence[Contender] = ()) -> dict[str, PublishedResult]:
    """Return the published numbers of a path, by scheme key.

    Scheme names in reports are ccgym's names, with hyphens or underscores: ``synthesized-bbr``. Pantheon's numbers for
    Cubic and BBR are from kernel TCP, and for learned schemes from the version of that time. So the numbers are
    also shown next to kernel schemes and all policies with that name, and then not in a separate row.

    Args:
        path: The path.
        schemes: The schemes that are evaluated on it.
    """
    published = {_plain(key): result for key, result in path.published.items()}
    # A scheme with other parameters than the defaults is not the published one.
    plain = {one.key: one.choice for one in schemes if one.choice is not None and not one.choice.settings}
    names = {key: _plain(choice.algorithm) for key, choice in plain.items()}
    ours = {key: published[name] for key, name in names.items() if name in published}
    alone = {name: result for name, result in published.items() if name not in names.values()}
    return {**alone, **ours}


def _plain(name: str) -> str:
    return name.replace("-", "_")
