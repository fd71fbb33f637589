"""``ccgym evaluate``: schemes on a path, Pantheon's table, figures and report.

Only arguments are read here, and progress is shown; the work is done by :mod:`ccgym.evaluation` and
:mod:`ccgym.report`, which are imported when needed, so that ``--help`` is quick.

Exit status: 0, everything ran; 1, a run failed, or nothing ran; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.common import (
    STATUS_ERROR,
    STATUS_FAILED_RUN,
    STATUS_LEFT,
    UNNAMED,
    HelpFormatter,
    Parser,
    add_cluster,
    add_output,
    add_path,
    add_repeat_limited,
    add_seed,
    check_repeat_limited,
    chosen_path,
    connected,
    console,
    directory_name,
    error_console,
    has_errors,
    named_as_typed,
    option,
    run,
)
from ccgym.cli.evaluation_output import show_results, write_report
from ccgym.cli.remote import add_remote, remote_path
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.invocation import command
from ccgym.units import parse_positive_time, parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.experiment import Experiment, LogsPolicy
    from ccgym.evaluation.results import ResultSet

MAX_NAME: Final = 40
"""Characters of the schemes' names in the name of a directory."""

DESCRIPTION: Final = """\
Run congestion-control schemes over a path and compare them: Pantheon's table (mean throughput,
95th-percentile one-way delay, loss), its result files, figures and report. The path is printed
first. An evaluation that was interrupted continues where it stopped when it is started again.
With --experiment, what a YAML file describes: many paths, sweeps, criteria, scores, rankings.
"""

EXAMPLES: Final = """\
examples:
  ccgym evaluate --trace 77.72mbps
      every scheme on the calibrated path 77.72mbps (51 ms each way, 0.06 % loss, 94 packets),
      5 runs of 30 s, next to what was published for it; results in results/77.72mbps
  ccgym evaluate --trace 77.72mbps --schemes cubic,bbr,fixed_window:cwnd=690 --runs 10
      three schemes, one of them with a parameter (further parameters: NAME:A=1:B=2)
  ccgym evaluate --trace 77.72mbps --schemes cubic,examples/aimd.py:AIMD:beta=0.7
      a scheme written in Python, with a parameter of its constructor (docs/python-schemes.md)
  ccgym evaluate --trace 77.72mbps --schemes classic,eagle
      every scheme of ccgym's own, also those that are not compared by default, and Eagle
  ccgym evaluate --trace 77.72mbps --schemes aurora,runs/aurora-1-1,bbr,cubic
      learned schemes next to classic ones: a pretrained policy, and one that `ccgym train` made
      (after `ccgym export runs/aurora-1-1`)
  ccgym evaluate --mahimahi "mm-delay 20 mm-loss uplink 0.01 mm-link 12mbps.trace 12mbps.trace"
      any chain of mahimahi shells, as one would type it
  ccgym evaluate --trace 77.72mbps --backend emulated --schemes tcp:bbr,tcp:cubic,bbr,cubic
      the same path with real packets in real time: the kernel's BBR and Cubic next to ours
  ccgym evaluate --remote me@far.example.org:ccgym --schemes tcp:cubic,bbr --ntp-addr pool.ntp.org
      no emulation: from this machine to another one, which SSH reaches (docs/remote.md)
  ccgym evaluate --trace my.trace --schemes cubic --flows 3 --interval 5 --logs all
      three Cubic flows that start 5 s apart, with Pantheon's packet logs of every run
  ccgym evaluate --trace 77.72mbps --schemes bbr,bbr+cubic,bbr+cubic@10s
      BBR alone, with a Cubic flow from the beginning, and with one that starts after 10 s
  ccgym evaluate --experiment calibrated
      a scorecard: the oracle, classic schemes and all pretrained policies on 42 paths, ranked, in
      results/calibrated; later with --schemes runs/mine,bbr: only what is new is run
  ccgym evaluate --experiment calibrated --quick --schemes runs/eagle-1,bbr,oracle
      a coarse answer in seconds: one run of 10 s per path
  ccgym evaluate --experiment league --schemes copa,bbr,runs/mine
      a league on ccBench's two sets of paths and three more: games won, ratings, ranks
  ccgym evaluate --trace 77.72mbps --sweep rtt=20ms,40ms,80ms --sweep loss=0%,0.1% --schemes cubic,bbr
      the same path with other delays and losses: every combination, a page with figures, and which
      scheme is better where; in results/77.72mbps-rtt-loss
  ccgym evaluate --mahimahi 'mm-delay $owd mm-link 12mbps.trace 12mbps.trace' --sweep owd=10,20,40
      whatever stands as $NAME in a mahimahi command line
  ccgym evaluate --experiment calibrated --cluster auto
      the same runs and results on a Ray cluster; `ccgym watch` in another terminal says how it goes
  ccgym evaluate --trace 12mbps --json --no-figures | jq .summary
      numbers only, for a program to read

exit status: 0 fine; 1 a run failed, or nothing ran (see the end of the output); 2 the command or the path is
wrong; 3 --budget left runs; 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``ccgym evaluate``."""
    made = Parser(
        prog="ccgym evaluate",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    path = made.add_argument_group("path, or experiment (one of the four, with --remote below)")
    add_path(path)
    path.add_argument(
        "--experiment",
        "--suite",  # its former name
        metavar="NAME|FILE",
        help="an experiment: a YAML file (docs/experiments.md), or one that comes with ccgym, such as calibrated, a "
        "scorecard over 42 paths; or weaknesses, stress tests where learned congestion control is known to fail",
    )
    what = made.add_argument_group("what to run")
    what.add_argument(
        "--schemes",
        metavar="A,B,C",
        help="schemes, separated by commas, with parameters as in fixed_window:cwnd=100; flows that share a run with a "
        "plus, and when they start as in bbr+cubic@5s; also learned schemes: the name of a pretrained policy, a run "
        "directory of `ccgym train`, or an exported .onnx file; schemes in Python, FILE.py:CLASS; on real backends "
        "tcp:NAME, the kernel's TCP, quic:NAME, a QUIC library's, and program:NAME or program:PATH/TO/wrapper.py, "
        "programs of others; and words for several: default, all, classic, learned, pantheon, which `ccgym schemes` "
        "explains (default: default, and on real backends the kernel's)",
    )
    what.add_argument("--runs", type=int, metavar="N", help="runs per scheme (default: 5; an experiment has its own)")
    what.add_argument(
        "--runtime",
        metavar="TIME",
        help="length of a run: seconds, or with a unit (default: 30; an experiment has its own)",
    )
    what.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=A,B,C",
        help="vary something: the path's rate, trace, rtt, queue, loss or jitter, the runtime, what stands as $NAME in "
        "a mahimahi command line or a YAML file, or a value that an experiment names; path=A,B varies the path "
        "itself. Given several times, every combination is run",
    )
    what.add_argument("--quick", action="store_true", help="with --experiment: fewer and shorter runs, a coarse answer")
    what.add_argument("--flows", type=int, metavar="N", help="flows of each scheme per run (default: 1)")
    what.add_argument("--interval", metavar="TIME", help="time between the starts of flows (default: 0, all at once)")
    what.add_argument("--random-order", action="store_true", default=None, help="run schemes in random order")
    add_seed(what)
    what.add_argument(
        "--backend",
        metavar="sim|emulated|mahimahi",
        help="where packets travel: in the simulator (default); as real packets, in real time, over our own emulated "
        "path; or over mahimahi's programs. `ccgym doctor` says what works here",
    )
    add_repeat_limited(what)
    what.add_argument(
        "--retries",
        type=int,
        default=0,
        metavar="N",
        help="with real packets: try a run that fails again, up to N times (default: 0; the same command does, too)",
    )
    what.add_argument(
        "--budget",
        metavar="TIME",
        help="time for runs, such as 10min: what is there when it is up is balanced over schemes and conditions; the "
        "same command goes on. Status 3 while runs are left",
    )
    add_cluster(what, "make the runs")
    what.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="max memory of each simulation, as in 8GB; one that needs more ends in an error (default: 4GB)",
    )
    add_remote(made.add_argument_group("between two machines (docs/remote.md)"))
    output = made.add_argument_group("output")
    add_output(output, "the results", "results/NAME of path or experiment, with -BACKEND where packets are real")
    output.add_argument(
        "--logs",
        metavar="all|first|none",
        help="packet logs: of all runs, of the first run of each scheme, or none; about 36 MB per 30 s run at "
        "75 Mbit/s (default: first). Pantheon's own plot.py and report.py need all",
    )
    output.add_argument(
        "--raw-logs",
        action="store_true",
        default=None,
        help="with the packet logs those of the tunnel before they are merged: two files per flow and direction",
    )
    output.add_argument(
        "--grow",
        action="store_true",
        default=None,
        help="add to the results in the directory of --out: the same evaluation with other schemes, or fewer runs",
    )
    output.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="runs, and figures, at a time (default: one per processor; of runs with real packets one)",
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym evaluate`` and return its exit status; see :mod:`ccgym.cli.common`."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _evaluate(parser().parse_args(words), words))


def _evaluate(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    # With --json, standard output belongs to the program that reads it.
    shown_on = error_console() if arguments.json else console()
    _check_choices(arguments)
    arguments.backend = _backend(arguments)
    between = remote_path(arguments)
    if arguments.experiment is not None or arguments.sweep:
        from ccgym.cli.evaluate_experiment import evaluate_experiment

        return evaluate_experiment(arguments, words, shown_on)
    if arguments.grow and arguments.out is None:
        raise ConfigError("option-needed", "--grow without --out", expected="the directory to add to, with --out")
    if arguments.quick:
        raise ConfigError(
            "option-needed",
            "--quick without --experiment",
            expected="it with --experiment",
            hint="for one path give --runs and --runtime",
        )
    path = between or chosen_path(arguments, "--experiment NAME|FILE, or --remote HOST")
    experiment = _experiment(arguments, path)
    shown_on.print(path.describe(), soft_wrap=True)
    if has_errors([path], shown_on):
        return STATUS_ERROR
    for note in _trained(experiment):
        shown_on.print(note, style="dim", soft_wrap=True)
    if not arguments.no_figures:
        from ccgym.report.figures import require_drawing

        require_drawing(instead="--no-figures")
    out = _directory(arguments, experiment)
    try:
        results = _run(arguments, experiment, out, words, shown_on)
        write_report(results, out, shown_on, figures=not arguments.no_figures, jobs=arguments.jobs)
    except KeyboardInterrupt:
        shown_on.print("\nfinished runs are kept: the same command continues from here", style="yellow")
        raise
    show_results(results, out, shown_on, figures=not arguments.no_figures)
    if _logs(arguments) == "first" and results.cells:
        shown_on.print("packet logs of each scheme's first run; Pantheon's own tools need --logs all", style="dim")
    if results.failures:
        shown_on.print("\nrun the same command again to try the failed runs again", style="bold red")
    if arguments.json:
        json.dump(results.as_dict(), sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    if results.failures or not results.cells:
        return STATUS_FAILED_RUN
    return STATUS_LEFT if results.left else 0


def _check_choices(arguments: argparse.Namespace) -> None:
    """Raise if an option has a value that it can never have."""
    from ccgym.evaluation.experiment import LOGS_POLICIES
    from ccgym.evaluation.prepared_run import memory_bytes

    if arguments.logs is not None and arguments.logs not in LOGS_POLICIES:
        raise ConfigError(
            "unknown-choice",
            shown(arguments.logs),
            where="--logs",
            expected=f"one of {', '.join(LOGS_POLICIES)}",
            hint=did_you_mean(arguments.logs, LOGS_POLICIES),
        )
    if arguments.jobs is not None and not 1 <= arguments.jobs <= 1024:
        raise ConfigError("out-of-range", str(arguments.jobs), where="--jobs", expected="a whole number from 1 to 1024")
    check_repeat_limited(arguments.repeat_limited)
    if not 0 <= arguments.retries <= 100:
        raise ConfigError(
            "out-of-range", str(arguments.retries), where="--retries", expected="a whole number from 0 to 100"
        )
    if arguments.max_memory is not None:
        memory_bytes(arguments.max_memory, "--max-memory")


def _logs(arguments: argparse.Namespace) -> LogsPolicy:
    """Of which runs packet logs are written; those of a cluster stay without, unless asked for, which is refused."""
    chosen: LogsPolicy = arguments.logs or ("first" if arguments.cluster is None else "none")
    return chosen


def _backend(arguments: argparse.Namespace) -> str:
    """Where packets travel: between two machines where one is named, else as ``--backend`` says."""
    from ccgym.evaluation.backends import REMOTE, SIMULATED

    if arguments.remote is None and arguments.backend == REMOTE:
        raise ConfigError(
            "option-needed",
            "--backend remote without --remote",
            expected="--remote HOST, which names the other machine",
        )
    if arguments.remote is None:
        return arguments.backend or SIMULATED
    others = {"--trace": arguments.trace, "--mahimahi": arguments.mahimahi, "--backend": arguments.backend}
    for option_name, value in others.items():
        if value not in (None, REMOTE):
            raise ConfigError(
                "options-conflict",
                f"{option_name} with --remote",
                expected="one of the two",
                hint="between two machines packets take the path that is there",
            )
    return REMOTE


def _budget_s(arguments: argparse.Namespace) -> float | None:
    """The time that ``--budget`` gives, seconds; None where it takes what it takes."""
    return None if arguments.budget is None else option("--budget", parse_positive_time, arguments.budget) / 1e9


def _experiment(arguments: argparse.Namespace, path: NetworkPath) -> Experiment:
    from ccgym.evaluation.backends import is_real
    from ccgym.evaluation.experiment import Experiment
    from ccgym.evaluation.run import contenders, parse_contenders
    from ccgym.schemes.groups import compared_schemes

    if arguments.schemes is None:
        schemes = contenders(compared_schemes(real=is_real(arguments.backend)))
    else:
        schemes = parse_contenders(arguments.schemes, "--schemes")
    runtime_ns = option("--runtime", parse_time, "30" if arguments.runtime is None else arguments.runtime)
    interval_ns = option("--interval", parse_time, "0" if arguments.interval is None else arguments.interval)
    try:
        return Experiment(
            path=path,
            schemes=schemes,
            runs=5 if arguments.runs is None else arguments.runs,
            runtime_ns=runtime_ns,
            flows=1 if arguments.flows is None else arguments.flows,
            interval_ns=interval_ns,
            seed=arguments.seed,
            backend=arguments.backend,
            random_order=bool(arguments.random_order),
        )
    except ConfigError as error:
        raise named_as_typed(error, path="trace" if arguments.mahimahi is None else "mahimahi") from None


def _trained(experiment: Experiment) -> list[str]:
    """On what the learned schemes were trained, where that does not contain the path."""
    from ccgym.config.hosts import hosts_of
    from ccgym.experiments.run import training_range

    path, notes = experiment.path, []
    for one in experiment.schemes if hosts_of(path) is None and path.data_links else ():
        trained = training_range(one)
        if trained is not None and not trained.contains(path.mean_rate_mbps, path.one_way_delay_ms):
            notes.append(f"note: {one.label} was trained on {trained.text}: this path lies outside")
    return notes


def _directory(arguments: argparse.Namespace, experiment: Experiment) -> Path:
    """Where results go. A default directory that another experiment has taken is left to it."""
    if arguments.out is not None:
        return Path(arguments.out)
    from ccgym.evaluation.directory import held_parameters
    from ccgym.evaluation.run import digest

    parameters = json.loads(json.dumps(experiment.parameters()))
    name = directory_name(experiment.path)
    if experiment.path.name == UNNAMED:
        name = f"mahimahi-{digest(parameters['path'])[:8]}"
    if experiment.real:
        name = f"{name}-{experiment.backend}"
    plain = Path("results", name)
    there = held_parameters(plain)
    if there is None or there == parameters or experiment.continues(there):
        return plain
    named = plain.with_name("-".join([name, *_differences(there, parameters)]))
    held = held_parameters(named)
    free = named != plain and (held in (None, parameters) or experiment.continues(held or {}))
    return named if free else plain.with_name(f"{name}-{digest(parameters)[:8]}")


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """In what an experiment differs from another one, as parts of a name: ``10s``, ``3flows``, ``bbr+cubic``."""
    schemes, runs, flows = here["schemes"], here["runs"], here["flows"]
    names = "+".join(schemes)
    words = {
        "schemes": names if len(names) <= MAX_NAME and re.fullmatch(r"[\w+]+", names) else f"{len(schemes)}schemes",
        "runs": f"{runs}run{'s' if runs != 1 else ''}",
        "runtime_s": f"{here['runtime_s']:g}s",
        "flows": f"{flows}flow{'s' if flows != 1 else ''}",
        "interval_s": f"{here['interval_s']:g}s-apart",
        "seed": f"seed{here['seed']}",
    }
    return [word for name, word in words.items() if there.get(name) != here[name]]


def _run(
    arguments: argparse.Namespace, experiment: Experiment, out: Path, words: Sequence[str], shown_on: Console
) -> ResultSet:
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.backends import BACKENDS
    from ccgym.evaluation.prepared_run import MAX_MEMORY
    from ccgym.evaluation.runner import run_experiment

    runtime_s = experiment.runtime_ns / 1e9
    shown_on.print(
        f"\n{len(experiment.schemes)} schemes × {experiment.runs} runs of {runtime_s:g} s, seed {experiment.seed}, "
        f"into {out}"
    )
    at_a_time = arguments.jobs or 1
    if experiment.real:
        shown_on.print(f"{experiment.backend}: {BACKENDS[experiment.backend]}")
        if at_a_time > 1:
            shown_on.print(
                f"note: {at_a_time} runs at a time share {os.cpu_count() or 1} processors; a run that the machine "
                "could not keep up with is marked emulator-limited",
                style="yellow",
            )
    with (
        connected(arguments) as cluster,
        Progress(shown_on, runtime_s if experiment.real else None, at_a_time) as progress,
    ):
        return run_experiment(
            experiment,
            out,
            jobs=arguments.jobs,
            repeat_limited=arguments.repeat_limited,
            retries=arguments.retries,
            budget_s=_budget_s(arguments),
            logs=_logs(arguments),
            raw_logs=bool(arguments.raw_logs),
            grow=bool(arguments.grow),
            max_memory=arguments.max_memory or MAX_MEMORY,
            observer=progress,
            command=[*command("evaluate").split(), *words],
            cluster=cluster,
        )
