"""Running an experiment on one path: what is made of each run, and the files of it all."""

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
"""Parameters in which an experiment may differ from the one whose directory it adds to."""

NO_LOGS: Final = "kept without packet logs, which were not asked for when it ran"
"""Notice of a run with real packets, which would not come out the same if it were repeated for its logs."""


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
    """Run what is not there yet, and write Pantheon's files and ``results.json``.

    A run that fails does not stop the others; it is in :attr:`ResultSet.failures`. Schemes that this machine cannot run
    are in :attr:`ResultSet.unavailable`. Interrupted, call it again with the same arguments: it goes on where it
    stopped (:mod:`ccgym.evaluation.engine`).

    Args:
        experiment: What to run.
        out: The results directory; made if it does not exist.
        jobs: Runs at a time; by default all processors simulate, and real packets have the machine to themselves.
        logs: Of which runs packet logs are written; also their names, as in ``cubic_run1``.
        raw_logs: Whether the raw logs of Pantheon's tunnel are among them.
        observer: Receives the progress.
        command: The command line, for the record.
        grow: Whether the directory may hold the same experiment with other schemes or runs; those are used, and kept.
        repeat_limited: As in :func:`~ccgym.evaluation.engine.measure`.
        retries: The same.
        budget_s: Time for runs, seconds; what does not fit is left for the next call. None: as much as it takes.
        max_memory: What each simulation may hold; see :class:`ccgym.evaluation.prepared_run.Record`.
        cluster: As in :func:`~ccgym.evaluation.engine.measure`; without packet logs.

    Raises:
        CcgymError: The backend cannot run this path here, or the directory is another experiment's.
    """
    memory_bytes(max_memory, "max_memory")
    if cluster is not None and logs != "none":
        raise ConfigError(
            "backend-unsuitable",
            f"packet logs ({logs}) of runs on a cluster",
            where="logs",
            expected="none: they would be written on the machines that make the runs, and are too large to send",
            hint="run what you want the packets of here",
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
    """What a few packets found on the empty path; :class:`ConfigError` where its delay is not its own."""
    try:
        found = probe(experiment.path, runs_on, experiment.seed)
    except RealPathError as error:
        return f"the empty path was not probed: {error}"  # What is wrong, the runs will say.
    return (
        f"empty path: {found.packets} packets, median one-way delay {found.one_way_delay_ms:.1f} ms "
        f"(its own: {found.own_ms:.1f} ms)"
    )


def _evaluation(out: Path, asked: LogsPolicy | Collection[str], *, raw_logs: bool) -> Reduction:
    """Keeps a run's numbers, curves and series, and writes its packet logs into the results directory. Logs of real
    packets that ``asked`` does not name are compressed."""

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
    """What is wrong with the CSV in which the version before kept series; ``known`` is its checksum."""
    try:
        matches = known is None or hashlib.sha256(read_bytes(file, MAX_ARRAYS_BYTES)).hexdigest() == known
    except (FileNotFoundError, UnreadableError):
        matches = False
    return None if matches else f"{file.name} is missing, cut off or edited"


def _with_program_logs(run: Run, record: RunRecord, out: Path) -> RunRecord:
    """Write what external programs said into a file, ``NAME_programs.log``, and leave it out of the record."""
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
        # What was published is of one flow; next to several it would invite a wrong comparison.
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
    """The published numbers of a path, by scheme key.

    A report's name of a scheme is ours, with hyphens or underscores: ``synthesized-bbr``. What Pantheon published of
    Cubic and BBR was the kernel's, and of a learned scheme the version of that time. So the numbers stand
    next to the kernel's and to every policy of that name, too, and then not in a row of their own.

    Args:
        path: The path.
        schemes: The schemes that are evaluated on it.
    """
    published = {_plain(key): result for key, result in path.published.items()}
    # With other parameters than the defaults it is not what was measured.
    plain = {one.key: one.choice for one in schemes if one.choice is not None and not one.choice.settings}
    names = {key: _plain(choice.algorithm) for key, choice in plain.items()}
    ours = {key: published[name] for key, name in names.items() if name in published}
    alone = {name: result for name, result in published.items() if name not in names.values()}
    return {**alone, **ours}


def _plain(name: str) -> str:
    return name.replace("-", "_")
