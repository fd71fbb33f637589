"""``ccgym logs`` and ``ccgym clean``: what can be made again of an evaluation, made and removed."""

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
        raise ConfigError("out-of-range", f"run {run}", where="--run", expected="the number of a run that is there")
    words = shlex.split(results.provenance.get("command") or "")
    known = next((k for k, word in enumerate(words, 1) if word in ("evaluate", "evaluate.py")), None)
    failures: Collection[object] = ()
    if results.real:
        _unpack(directory, names)
    elif known is None:
        raise _unsuitable(directory, "runs that no command made")
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
    """Write the logs of real packets that were kept compressed."""
    from ccgym.evaluation.pantheon.packet_logs import PACKED, unpack_log, what_is_wrong

    for name, kept in _kept(directory):
        if name not in names:
            continue
        logs = kept["log_files"]
        wrong = {what for log, known in logs.items() if (what := what_is_wrong(directory / log, known)) is not None}
        if wrong or not logs:
            what = f"a log of {name} {wrong.pop()}" if wrong else f"packets of {name}, which were not kept"
            raise _unsuitable(directory, f"{what}: real packets do not come again")
        for log in logs:
            if log.endswith(PACKED):
                unpack_log(directory / log)


def _unsuitable(directory: Path, found: str) -> ConfigError:
    return ConfigError(
        "backend-unsuitable",
        found,
        where=str(directory),
        expected="what `ccgym evaluate` simulated, or real packets that it kept",
        hint="another evaluation with --logs all, in Python run_experiment(…, logs='all'), has logs",
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
    say(f"{sum(sizes.values()) / 1e6:,.1f} MB in {len(sizes):,} files are freed\n{size_text(directory)}")
    return 0


def _made_again(results: ResultSet, directory: Path) -> Iterator[Path]:
    """The files of a directory that can be made again: what goes with packet logs of simulations, figures of runs."""
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
        # What has been edited would not come again.
        logs = ((directory / name, known) for name, known in kept["log_files"].items())
        yield from (log for log, known in logs if what_is_wrong(log, known) is None)


def _kept(directory: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and data of each run of an evaluation that a directory keeps."""
    from ccgym.evaluation.directory import RUNS_DIRECTORY
    from ccgym.evaluation.store import read_run
    from ccgym.files import UnreadableError

    for file in sorted((directory / RUNS_DIRECTORY).glob("*")):
        try:
            kept = read_run(file)
        except UnreadableError:
            continue  # an evaluation will tell
        if "log_files" in kept.data:
            yield kept.name, kept.data


LOGS: Final = Command(
    "logs",
    run=_logs,
    places={"--schemes": "--scheme"},
    description="""\
Write the packet logs of an evaluation, Pantheon's and mahimahi's, and what else Pantheon's tools
read. Runs are simulated again from their seeds, and are the same packet by packet. Traces and
schemes from files must be where they were: call it in the same folder. Logs of real packets come
from the compressed ones that were kept.
""",
    examples="""\
  ccgym logs results/77.72mbps
      of every run, 36 MB each
  ccgym logs results/77.72mbps --scheme bbr --run 2
      of one
""",
    options={
        "DIRECTORY": "what `ccgym evaluate` wrote",
        "--scheme NAME": "only of this scheme, by its name in files",
        "--run N": "only of the runs of this number",
        "--raw-logs": "those of the tunnel before they are merged, too",
        "--jobs N in 1..1024": "runs at a time (default: one per processor)",
    },
)

CLEAN: Final = Command(
    "clean",
    run=_clean,
    description="""\
Remove from the directory of an evaluation what can be made again, and print how many MB that
frees: packet logs of simulated runs, with their statistics and series (`ccgym logs` writes them),
and figures of each run (`ccgym report analyze` draws them). Results, reports, runs and the logs of
real packets stay.
""",
    examples="  ccgym clean results/77.72mbps\n",
    options={"DIRECTORY": "what `ccgym evaluate` wrote"},
)
