"""``ccgym logs`` and ``ccgym clean``: write or remove the files of an evaluation that can be made again."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Command
from ccgym.cli.common import STATUS_FAILED_RUN, console, say
from ccgym.cli.evaluate import experiment_of
from ccgym.cli.evaluation_output import size_text
from ccgym.cli.options import given
from ccgym.errors import ConfigError

if TYPE_CHECKING:
    from ccgym.evaluation.results import ResultSet


def _logs(arguments: argparse.Namespace) -> int:
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.results import ResultSet, chosen_styles
    from ccgym.evaluation.runner import run_experiment

    directory, run = arguments.directory, arguments.run
    results = ResultSet.load(directory)
    schemes = None if arguments.scheme is None else [arguments.scheme]
    keys = {style.key for style in chosen_styles(results.styles, schemes)}
    names = [one.name for one in results.cells if one.scheme in keys and run in (None, one.run)]
    if not names:
        raise ConfigError("out-of-range", f"run {run}", where="--run", expected="the number of an existing run")
    words = shlex.split(results.provenance.get("command") or "")
    known = next((k for k, word in enumerate(words, 1) if word in ("evaluate", "evaluate.py")), None)
    failures: Collection[object] = ()
    if results.real:
        _unpack(directory, names)
    elif known is None:
        raise _unsuitable(directory, "runs that were not made by a command")
    else:
        with Progress(console()) as progress:
            failures = run_experiment(
                experiment_of(words[known:]),
                directory,
                logs=names,
                observer=progress,
                command=words,
                **given(arguments, "raw_logs", "jobs"),
            ).failures
    say(size_text(directory))
    return STATUS_FAILED_RUN if failures else 0


def _unpack(directory: Path, names: Collection[str]) -> None:
    """Write uncompressed logs of real packets from the compressed logs."""
    from ccgym.evaluation.pantheon.packet_logs import PACKED, unpack_log, what_is_wrong

    for name, kept in _kept(directory):
        if name not in names:
            continue
        logs = kept["log_files"]
        wrong = {what for log, known in logs.items() if (what := what_is_wrong(directory / log, known)) is not None}
        if wrong or not logs:
            what = f"a log of {name} {wrong.pop()}" if wrong else f"packets of {name}, which were not kept"
            raise _unsuitable(directory, f"{what}: real packets cannot be repeated")
        for log in logs:
            if log.endswith(PACKED):
                unpack_log(directory / log)


def _unsuitable(directory: Path, found: str) -> ConfigError:
    return ConfigError(
        "backend-unsuitable",
        found,
        where=str(directory),
        expected="simulated runs of `ccgym evaluate`, or runs with kept logs of real packets",
        hint="evaluate again with --logs all, in Python run_experiment(…, logs='all'), to get logs",
    )


def _clean(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.results import ResultSet
    from ccgym.evaluation.store import RunStore

    directory = arguments.directory
    results = ResultSet.load(directory)
    with RunStore(directory, "evaluation"):
        sizes = {file: file.stat().st_size for file in _made_again(results, directory) if file.is_file()}
        for file in sizes:
            file.unlink()
    say(f"{sum(sizes.values()) / 1e6:,.1f} MB in {len(sizes):,} files removed\n{size_text(directory)}")
    return 0


def _made_again(results: ResultSet, directory: Path) -> Iterator[Path]:
    """Yield the files that can be made again: packet logs of simulations with their further files, figures of runs."""
    from ccgym.evaluation.kept_series import arrays_of_series, series_file
    from ccgym.evaluation.pantheon import LINKS, stats_file
    from ccgym.evaluation.pantheon.packet_logs import what_is_wrong
    from ccgym.report.run_figures import run_files

    for cell in results.cells:
        yield from (one.file for link in LINKS for one in run_files(directory, cell.scheme, cell.run, link))
        if not results.real and cell.curves:
            yield directory / stats_file(cell.scheme, cell.run)
            if arrays_of_series(directory, cell) is not None:
                yield directory / series_file(cell.name)
    for _, kept in _kept(directory) if not results.real else ():
        # Edited logs are kept: a new simulation would not restore the edits.
        logs = ((directory / name, known) for name, known in kept["log_files"].items())
        yield from (log for log, known in logs if what_is_wrong(log, known) is None)


def _kept(directory: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and data of each kept run of an evaluation in a directory."""
    from ccgym.evaluation.directory import RUNS_DIRECTORY
    from ccgym.evaluation.store import read_run
    from ccgym.files import UnreadableError

    for file in sorted((directory / RUNS_DIRECTORY).glob("*")):
        try:
            kept = read_run(file)
        except UnreadableError:
            continue  # the next evaluation reports the error
        if "log_files" in kept.data:
            yield kept.name, kept.data


LOGS: Final = Command(
    "logs",
    run=_logs,
    places={"--schemes": "--scheme"},
    description="""\
Write the packet logs of an evaluation in the formats of Pantheon and mahimahi, and further files for
Pantheon's tools. Runs are simulated again from their seeds, with the same packets. Traces and schemes
from files must be at the same place: run the command in the same folder. Logs of real packets are
read from the kept compressed logs.
""",
    examples="""\
  ccgym logs results/77.72mbps
      logs of every run, 36 MB each
  ccgym logs results/77.72mbps --scheme bbr --run 2
      logs of one run
""",
    options={
        "DIRECTORY": "a directory of `ccgym evaluate`",
        "--scheme NAME": "only runs of this scheme, by its name in files",
        "--run N": "only runs with this number",
        "--raw-logs": "also write the tunnel's raw logs, before merging",
        "--jobs N in 1..1024": "runs at the same time (default: one per processor)",
    },
)

CLEAN: Final = Command(
    "clean",
    run=_clean,
    description="""\
Remove the files of an evaluation that can be made again, and print their size in MB: packet logs of
simulated runs, with their statistics and series (`ccgym logs` writes them), and figures of each run
(`ccgym report analyze` draws them). Results, reports, runs and the logs of real packets
are kept.
""",
    examples="  ccgym clean results/77.72mbps\n",
    options={"DIRECTORY": "a directory of `ccgym evaluate`"},
)
