"""``ccgym evaluate``: evaluate schemes on a path, with Pantheon's table, figures and report; experiments; sweeps.

Exit status: 0, all runs ended well; 1, a run failed, or nothing ran; for other values see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Command, Rule
from ccgym.cli.common import (
    STATUS_ERROR,
    STATUS_FAILED_RUN,
    STATUS_LEFT,
    console_for,
    has_errors,
    say_json,
)
from ccgym.cli.evaluation_output import report
from ccgym.cli.experiments import chosen_schemes, request, run_and_show
from ccgym.cli.options import (
    PATH,
    REPEAT_LIMITED,
    SEED,
    UNNAMED,
    chosen_path,
    cluster,
    connected,
    directory_name,
    given,
    output,
    seconds,
)
from ccgym.cli.remote import NEXT_TO_REMOTE, REMOTE, remote_path
from ccgym.errors import ConfigError
from ccgym.units import parse_positive_time

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.config.path import NetworkPath
    from ccgym.evaluation.experiment import Experiment
    from ccgym.evaluation.results import ResultSet
    from ccgym.experiments.comparison import Comparison
    from ccgym.experiments.spec import ExperimentSet

MAX_NAME: Final = 40
"""Maximum number of characters of the schemes' names in the name of a directory."""

_DESCRIPTION: Final = """\
Run congestion-control schemes over a path and compare them: Pantheon's table (mean throughput,
95th-percentile one-way delay, loss), its result files, figures and report. The path is printed
first. After an interruption, the same command continues where it stopped.
With --experiment, run the experiment of a YAML file: many paths, sweeps, criteria, scores, rankings.
"""

_EXAMPLES: Final = """\
  ccgym evaluate --trace 77.72mbps
      every scheme on the calibrated path 77.72mbps (51 ms each way, 0.06 % loss, 94 packets),
      5 runs of 30 s, with the published results next to them; results in results/77.72mbps
  ccgym evaluate --trace 77.72mbps --schemes cubic,bbr,fixed_window:cwnd=690 --runs 10
      three schemes, one of them with a parameter (further parameters: NAME:A=1:B=2)
  ccgym evaluate --trace 77.72mbps --schemes cubic,examples/aimd.py:AIMD:beta=0.7
      a scheme written in Python, with a parameter of its constructor (docs/guides/write-a-cca.md)
  ccgym evaluate --trace 77.72mbps --schemes aurora,runs/aurora-1-1,bbr,cubic
      learned schemes next to classic schemes: a pretrained policy, and a policy of `ccgym train`
      (after `ccgym train export runs/aurora-1-1`)
  ccgym evaluate --mahimahi "mm-delay 20 mm-loss uplink 0.01 mm-link 12mbps.trace 12mbps.trace"
      any chain of mahimahi shells, as on the command line
  ccgym evaluate --trace 77.72mbps --backend emulated --schemes tcp:bbr,tcp:cubic,bbr,cubic
      the same path with real packets in real time: the kernel's BBR and Cubic next to ccgym's
  ccgym evaluate --remote me@far.example.org:ccgym --schemes tcp:cubic,bbr --ntp-addr pool.ntp.org
      no emulation: from this machine to another one, reachable by SSH (docs/guides/two-machines.md)
  ccgym evaluate --trace 77.72mbps --schemes bbr,bbr+cubic,bbr+cubic@10s
      BBR alone, with a Cubic flow from the beginning, and with a Cubic flow that starts after 10 s
  ccgym evaluate --experiment calibrated
      a scorecard: the oracle, classic schemes and all pretrained policies on 42 paths, ranked, in
      results/calibrated; later with --schemes runs/mine,bbr: only new schemes are run
  ccgym evaluate --trace 77.72mbps --sweep rtt=20ms,40ms,80ms --sweep loss=0%,0.1% --schemes cubic,bbr
      the same path with other delays and losses: every combination, a page with figures, and the
      better scheme for each; in results/77.72mbps-rtt-loss
  ccgym evaluate --experiment calibrated --cluster auto
      the same runs and results on a Ray cluster; `ccgym report watch` in another terminal shows the progress
  ccgym evaluate --trace 12mbps --json --no-figures | jq .summary
      numbers only, for other programs

exit status: 0 success; 1 a run failed, or nothing ran (see the end of the output); 2 error in the command or the
path; 3 --budget left runs; 130 interrupted
"""

_OF_MANY_PATHS: Final = {
    "random_order": "leave it out: runs of an experiment do not depend on their order",
    "grow": "leave it out: an experiment always adds to the results in its directory",
    "raw_logs logs figures": "run one path alone, with --trace",
    "remote": "run it alone: the path between two machines cannot be varied",
    "max_memory": "leave it out: its paths need much less than the default",
}
"""Options that are not possible with many paths, and how to correct the command."""

_RULES: Final = (
    Rule("trace mahimahi", "experiment", "an experiment has its own paths"),
    Rule("flows interval_ns", "experiment", "an experiment has its own flows"),
    *(Rule(names, other, hint) for names, hint in _OF_MANY_PATHS.items() for other in ("experiment", "sweep")),
    Rule("trace mahimahi", "remote", "between two machines, packets use the existing path"),
    Rule(" ".join(NEXT_TO_REMOTE), "remote", "it sets how packets travel between two machines", needs=True),
    Rule("grow", "out", "--out names the directory to add to", needs=True),
    Rule("figures", "no_figures", "--no-figures draws nothing"),
    Rule("quick", "experiment", "for one path, or a sweep, give --runs and --runtime", needs=True),
)


def _evaluate(arguments: argparse.Namespace) -> int:
    from ccgym.experiments.training import outside_training

    arguments.backend = _backend(arguments)
    between = remote_path(arguments)
    if arguments.experiment is not None or arguments.sweep:
        return _evaluate_experiment(arguments)
    shown_on = console_for(arguments)
    path = between or chosen_path(arguments, "--experiment NAME|FILE, or --remote HOST")
    experiment = _experiment(arguments, path)
    shown_on.print(path.describe(), soft_wrap=True)
    if has_errors([path], shown_on):
        return STATUS_ERROR
    for note in outside_training(path, experiment.schemes):
        shown_on.print(note, style="dim", soft_wrap=True)
    if not arguments.no_figures:
        from ccgym.report.figures import require_drawing

        require_drawing(instead="--no-figures")
    out = _directory(arguments, experiment)
    # A simulation can be repeated for its packets; real packets cannot be repeated.
    arguments.logs = arguments.logs or ("first" if experiment.real or arguments.raw_logs else "none")
    try:
        results = _run(arguments, experiment, out, shown_on)
        runs = arguments.figures == "all"
        report(results, out, shown_on, figures=not arguments.no_figures, runs=runs, jobs=arguments.jobs)
    except KeyboardInterrupt:
        shown_on.print("\nfinished runs are kept: the same command continues from here", style="yellow")
        raise
    if arguments.json:
        say_json(results.as_dict(), None)
    if results.failures or not results.cells:
        return STATUS_FAILED_RUN
    return STATUS_LEFT if results.left else 0


def _backend(arguments: argparse.Namespace) -> str:
    """Return the name of the backend: ``remote`` if another machine is named, otherwise the value of ``--backend``."""
    from ccgym.evaluation.backends import REMOTE, SIMULATED

    if arguments.remote is None and arguments.backend == REMOTE:
        raise ConfigError(
            "option-needed",
            "--backend remote without --remote",
            expected="--remote HOST, which names the other machine",
        )
    if arguments.remote is not None and arguments.backend not in (None, REMOTE):
        raise ConfigError("options-conflict", "--backend with --remote", expected="one of the two")
    return REMOTE if arguments.remote is not None else arguments.backend or SIMULATED


def _evaluate_experiment(arguments: argparse.Namespace) -> int:
    """Run an experiment, or a sweep."""
    if arguments.experiment is None:
        spec: ExperimentSet | Comparison = _swept_path(arguments)
        arguments.runtime_ns = None  # now the experiment has it
    else:
        spec = _read(arguments)
    if arguments.budget_s is not None and spec.kind in ("scorecard", "gap"):
        raise ConfigError(
            "options-conflict", f"--budget with a {spec.kind}", expected="a path, a sweep, an experiment or a league"
        )
    asked = request(arguments, chosen_schemes(arguments, spec), [])
    if arguments.out is None:
        from dataclasses import replace

        from ccgym.experiments.request import default_directory

        asked = replace(asked, out=default_directory(spec.name, asked))
    return run_and_show(spec, asked, arguments)


def _read(arguments: argparse.Namespace) -> ExperimentSet | Comparison:
    """Return the experiment that the command names, with the values that the command changes."""
    from ccgym.experiments.load import load_experiment
    from ccgym.experiments.spec import ExperimentSet
    from ccgym.experiments.sweep import parse_sweeps, with_sweeps

    spec = load_experiment(arguments.experiment, quick=arguments.quick)
    if not arguments.sweep:
        return spec
    if not isinstance(spec, ExperimentSet):
        raise ConfigError(
            "options-conflict",
            f"--sweep with a {spec.kind}",
            expected="an experiment that names the values to vary",
            hint="use --sweep with --trace",
        )
    return with_sweeps(spec, parse_sweeps(arguments.sweep))


def _swept_path(arguments: argparse.Namespace) -> ExperimentSet:
    """Return the sweep over the path that the command names."""
    from ccgym.evaluation.backends import is_real
    from ccgym.evaluation.run import digest
    from ccgym.experiments.expand import PATH as PATH_KEY
    from ccgym.experiments.sweep import parse_sweeps, swept_path
    from ccgym.schemes.groups import compared_schemes

    sweeps = parse_sweeps(arguments.sweep)
    path = arguments.trace or arguments.mahimahi
    if (arguments.trace is not None) + (arguments.mahimahi is not None) + (PATH_KEY in sweeps) != 1:
        raise ConfigError(
            "exactly-one",
            "no path" if path is None else "more than one path",
            expected='one of --trace NAME|FILE, --mahimahi "COMMAND LINE" and --sweep path=A,B',
            hint="add a path, for example --trace 77.72mbps --sweep rtt=20ms,40ms",
        )
    plain = re.sub(r"\.(?:trace|ya?ml)$", "", Path(path or "").name)
    base = [] if path is None else [f"mahimahi-{digest(path)[:8]}" if arguments.mahimahi else directory_name(plain)]
    return swept_path(
        path,
        sweeps,
        name="-".join([*base, *sweeps]),
        schemes=[one.text for one in compared_schemes(real=is_real(arguments.backend))],
        **given(arguments, "runtime_ns", "flows", "interval_ns"),
    )


def experiment_of(words: Sequence[str]) -> Experiment:
    """Return the experiment for the words after ``ccgym evaluate``."""
    arguments = COMMAND.parse("ccgym evaluate", words)
    arguments.backend = _backend(arguments)
    return _experiment(arguments, chosen_path(arguments, ""))


def _experiment(arguments: argparse.Namespace, path: NetworkPath) -> Experiment:
    from ccgym.evaluation.backends import is_real
    from ccgym.evaluation.experiment import Experiment
    from ccgym.evaluation.run import contenders, parse_contenders
    from ccgym.schemes.groups import compared_schemes

    arguments.places["path"] = "--trace" if arguments.mahimahi is None else "--mahimahi"
    if arguments.schemes is None:
        schemes = contenders(compared_schemes(real=is_real(arguments.backend)))
    else:
        schemes = parse_contenders(arguments.schemes, "--schemes")
    names = ("runs", "runtime_ns", "flows", "interval_ns", "seed", "backend", "random_order")
    return Experiment(path=path, schemes=schemes, **given(arguments, *names))


def _directory(arguments: argparse.Namespace, experiment: Experiment) -> Path:
    """Return the results directory. If another experiment uses the default directory, choose another name."""
    if arguments.out is not None:
        return Path(arguments.out)
    from ccgym.evaluation.directory import held_parameters
    from ccgym.evaluation.run import digest

    parameters = json.loads(json.dumps(experiment.parameters()))
    name = directory_name(experiment.path.name)
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
    """Return the differences between two experiments, as parts of a name: ``10s``, ``3flows``, ``bbr+cubic``."""
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


def _run(arguments: argparse.Namespace, experiment: Experiment, out: Path, shown_on: Console) -> ResultSet:
    from ccgym.cli.progress import Progress
    from ccgym.evaluation.backends import BACKENDS
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
                f"note: {at_a_time} runs at a time share {os.cpu_count() or 1} processors; a run that is too "
                "fast for this machine is marked emulator-limited",
                style="yellow",
            )
    names = ("jobs", "repeat_limited", "retries", "budget_s", "logs", "raw_logs", "grow", "max_memory")
    with (
        connected(arguments) as joined,
        Progress(shown_on, runtime_s if experiment.real else None, at_a_time) as progress,
    ):
        return run_experiment(
            experiment,
            out,
            observer=progress,
            command=list(arguments.typed),
            cluster=joined,
            **given(arguments, *names),
        )
    raise AssertionError


COMMAND: Final = Command(
    "evaluate",
    run=_evaluate,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    places={"runtime": "--runtime", "interval": "--interval", "max_memory": "--max-memory"},
    rules=_RULES,
    options={
        "# path, or experiment (one of the four, with --remote below)": "",
        **PATH,
        "--experiment NAME|FILE": "a YAML file (docs/guides/experiments.md), or an experiment that comes with ccgym, "
        "such as calibrated, a scorecard over 42 paths; or stress_tests, tests that are known to be hard for learned "
        "congestion control",
        "# what to run": "",
        "--schemes A,B,C": "schemes, separated by commas, with parameters as in fixed_window:cwnd=100; flows of one "
        "run with a plus, with start times as in bbr+cubic@5s; learned schemes: the name of a "
        "pretrained policy, a run directory of `ccgym train`, or an exported .onnx file; schemes in Python: "
        "FILE.py:CLASS; on real backends tcp:NAME (kernel TCP), quic:NAME (a QUIC library), and program:NAME or "
        "program:PATH/TO/wrapper.py (external programs); and groups: default, all, classic, learned, "
        "pantheon (see `ccgym schemes`) (default: default, and on real backends the kernel's schemes)",
        "--runs N": "runs per scheme (default: 5; an experiment has its own)",
        "--runtime TIME as runtime_ns": "length of a run: seconds, or with a unit (default: 30; an experiment has "
        "its own)",
        "--sweep NAME=A,B,C...": "vary the path's rate, trace, rtt, queue, loss or jitter, the runtime, a $NAME in "
        "a mahimahi command "
        "line or a YAML file, or a value that an experiment names; path=A,B "
        "varies the path itself. Given several times, every combination is run",
        "--quick": "with --experiment: fewer and shorter runs, for a coarse result",
        "--flows N": "flows of each scheme per run (default: 1)",
        "--interval TIME as interval_ns": "time between the starts of flows (default: 0, all at once)",
        "--random-order": "run schemes in random order",
        **SEED,
        "--backend sim|emulated|mahimahi": "where packets travel: in the simulator (default); as real packets, in "
        "real time, over ccgym's emulated path; or over mahimahi's programs. `ccgym doctor` shows what works here",
        **REPEAT_LIMITED,
        "--retries N in 0..100 = 0": "with real packets: repeat a run that fails, up to N times (default: 0; the "
        "same command tries it "
        "again)",
        "--budget TIME as budget_s": "time limit for runs, such as 10min, balanced over schemes and conditions. "
        "Status 3 while runs are "
        "left; the same command continues",
        **cluster("make the runs"),
        "--max-memory SIZE": "max memory of each simulation, as in 8GB; a simulation that needs more ends in an error "
        "(default: 4GB)",
        "# between two machines (docs/guides/two-machines.md)": "",
        **REMOTE,
        "# output": "",
        **output("the results", "results/NAME of path or experiment, with -BACKEND if packets are real"),
        "--logs all|first|none": "packet logs: of all runs, of the first run of each scheme, or none; about 36 MB "
        "per 30 s run at 75 Mbit/s (default: none; with real packets first, the other logs compressed). `ccgym logs` "
        "adds logs later. Pantheon's plot.py and report.py need all",
        "--figures summary|all": "figures of the evaluation, or also two figures of each run, and figures for a paper "
        "(default: summary; explore.html always shows every run)",
        "--raw-logs": "also write the raw logs of the tunnel with the packet logs: two files per flow and direction",
        "--grow": "add to the results in the directory of --out: the same evaluation with other schemes, or fewer runs",
        "--jobs N in 1..1024": "parallel runs, and figures (default: one per processor; of runs with real packets one)",
    },
    reads={
        "schemes": str,
        "backend": str,
        "budget_s": seconds,
        "runtime_ns": parse_positive_time,
    },
)
