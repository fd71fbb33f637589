"""``ccgym compare``: compare trainings by the agent's reward on fresh draws, and backends by the results of schemes.

Exit status of ``compare backends``: 0, done, also with a gap; 1, a run failed, a requested backend made no runs,
or only one backend was available; for other values see :mod:`ccgym.cli.common`. Without --backends, backends that
do not work here are left out, and the report lists the reasons.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import error_console, print_table, say
from ccgym.cli.experiments import chosen_schemes, request, run_and_show, spec_of
from ccgym.cli.options import PATH, REPEAT_LIMITED, SEED, chosen_path, directory_name, given, output
from ccgym.files import atomic_write

if TYPE_CHECKING:
    from ccgym.contrib.comparison import Compared
    from ccgym.evaluation.bootstrap import Interval


def _trainings(arguments: argparse.Namespace) -> int:
    from ccgym.cli.progress import Progress
    from ccgym.contrib.comparison import COLUMNS, compare
    from ccgym.training.evaluation import ORACLE

    with Progress(error_console()) as progress:
        found = compare(arguments.runs, arguments.over, arguments.draws, progress)
    (over,) = (one.name for one in found if one.gain is None)
    numbers = ("mean reward (95 %)", f"over {over} (95 %)", "of the gap to the oracle")
    print_table(("name", *numbers, "seeds"), [_cells(one) for one in found], right=numbers)
    gap = next((one.gain for one in found if one.name == ORACLE), None)
    if gap is not None and gap.low <= 0:
        say(f"The oracle is not clearly ahead of {over}, {_span(gap)}: there are no shares of the gap to it.")
    if arguments.csv is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(one.row() for one in found)
        atomic_write(arguments.csv, text.getvalue())
        say(f"table     {arguments.csv}")
    return 0


def _cells(one: Compared) -> tuple[str, ...]:
    gain = "" if one.gain is None else _span(one.gain, "+")
    closed = "" if one.closed is None else f"{100 * one.closed:.0f} %"
    return one.name, _span(one.mean), gain, closed, str(one.row()["seeds"])


def _span(interval: Interval, sign: str = "") -> str:
    return f"{interval.mean:{sign}.1f} ({interval.low:{sign}.1f} … {interval.high:{sign}.1f})"


def _backends(arguments: argparse.Namespace) -> int:
    from ccgym.config.configurations import find_config
    from ccgym.config.yaml_loader import load_yaml
    from ccgym.experiments.gap_spec import GapSpec
    from ccgym.experiments.load import FOLDERS

    path = chosen_path(arguments)
    says = load_yaml(find_config("gap", folders=FOLDERS)).data
    keys = ("backends", "runs", "sim_runs", "duration", "host_jitter", "host_start")
    data = {**says, "name": "gap", "path": path, **given(arguments, *keys)}
    spec = spec_of(GapSpec, data)
    asked = request(arguments, chosen_schemes(arguments, spec), [directory_name(path.name), "gap"], runs=None)
    return run_and_show(spec, asked, arguments)


_TRAININGS: Final = Command(
    "trainings",
    "compare trainings by the agent's reward on fresh draws",
    _trainings,
    description="""\
Compare trainings. The best model of each run, and the baselines of the first run's configuration,
are measured by the agent's reward on the same fresh draws of the held-out paths. Runs with the
same configuration are its seeds. All runs must have the same agent and held-out paths. The
intervals are bootstraps over draws and seeds; a gain is a difference on the same draws.
""",
    examples="""\
  ccgym compare trainings runs/genet-1 runs/genet-2 runs/genet_uniform-1 runs/genet_uniform-2
      the curriculum against uniform training, two seeds each
  ccgym compare trainings runs/genet*-? --over genet_uniform --csv genet.csv
      the gain of each curriculum over uniform training, as a table
""",
    options={
        "RUN... as runs": "run directories of `ccgym train`",
        "--over NAME": "the configuration to compare the others with (default: the first run's)",
        "--draws N in 2.. = 256": "fresh draws of the paths",
        "--csv FILE": "also write the table to this file",
    },
    reads={"runs": Path},
)

_BACKENDS: Final = Command(
    "backends",
    "compare results of simulated and real packets",
    _backends,
    description="""\
Run the same schemes with the same seeds in the simulator, over ccgym's emulated path and over
mahimahi, and show throughput, 95th-percentile delay and loss side by side, with the time series
in one figure. After an interruption, the same command continues.
""",
    examples="""\
  ccgym compare backends --trace 77.72mbps --schemes bbr,cubic,tcp:bbr,tcp:cubic
      ccgym's and the kernel's schemes, on all backends that work here; into results/77.72mbps-gap
  ccgym compare backends --trace 12mbps --schemes aurora --backends sim,emulated --runs 1 --runtime 10
      does the pretrained policy do over real packets what it does in the simulator?
  ccgym compare backends --trace 3.04mbps-poisson --schemes eagle --host-jitter 0.1ms --host-start 1ms \\
      --sim-runs 20
      also with random delays of a host, for a policy that depends on fractions of a millisecond
""",
    options={
        "# path (one of the two)": "",
        **PATH,
        "# what to run": "",
        "--schemes A,B": "schemes, as in `ccgym evaluate` (default: bbr,cubic)",
        "--backends A,B": "backends to compare (default: all of sim, emulated and mahimahi that work here)",
        "--runs N": "runs per scheme and backend (default: 3)",
        "--runtime TIME as duration": "length of a run: seconds, or with a unit (default: 30)",
        **SEED,
        **REPEAT_LIMITED,
        "--host-jitter TIME": "max random delay of simulated ACKs on their way into the sender, as on a real "
        "host; shows the effect of chance; 0.1ms is typical (default: 0ms)",
        "--host-start TIME": "max random delay of the start of simulated flows; with real packets, 0.2 to 0.6ms is "
        "typical (default: 0ms)",
        "--sim-runs N": "runs in the simulator (default: the value of --runs)",
        **output("the gap", "results/NAME-gap"),
    },
    reads={"schemes": str, "duration": str, "host_jitter": str, "host_start": str},
)

COMMAND: Final = Command("compare", commands=(_TRAININGS, _BACKENDS))
