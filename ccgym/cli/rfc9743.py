"""``ccgym rfc9743``: a scheme evaluated as RFC 9743 asks, as a report that a draft or a paper can cite.

Exit status: 0, done, also where marks are missed; 1, a run failed; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from typing import Final

from ccgym.cli.command import Command
from ccgym.cli.experiments import request, run_and_show
from ccgym.cli.options import JOBS, QUICK, SEED, cluster, output

EXPERIMENT: Final = "rfc9743"
"""The file in ``configs/experiments`` with the rows."""

_DESCRIPTION: Final = """\
Evaluate a scheme as RFC 9743 (BCP 133, "Specifying New Congestion Control Algorithms") asks, section by section, and
write a report: HTML, Markdown, JSON and CSV. Every row has a measure, a mark with its reason, the result with its 95 %
interval, and the command that runs it again. The marks are ours; the RFC names none. What cannot be tested yet is
listed as such. Interrupted, the same command goes on.
"""

_EXAMPLES: Final = """\
  ccgym rfc9743 cubic --quick                  one repetition, fewer conditions: a look in seconds
  ccgym rfc9743 runs/mine                      the whole report; into results/rfc9743-mine
  ccgym rfc9743 bbr --only 5.1.3,7             two parts of it
  ccgym rfc9743 cubic --confirm 4              and four of its runs once more with real packets
"""


def _report(arguments: argparse.Namespace) -> int:
    from ccgym.errors import located
    from ccgym.evaluation.run import parse_contenders
    from ccgym.experiments.load import load_experiment
    from ccgym.experiments.spec import ExperimentSet

    spec = load_experiment(EXPERIMENT, quick=arguments.quick)
    assert isinstance(spec, ExperimentSet), "the rows of the RFC are a set of experiments"
    schemes = parse_contenders(arguments.scheme, "SCHEME")
    sections = arguments.only
    if sections is not None:
        with located("--only"):
            spec = spec.only(sections)
    words = [EXPERIMENT, *(one.key for one in schemes), *(sections or []), *(["quick"] if arguments.quick else [])]
    return run_and_show(spec, request(arguments, schemes, words), arguments)


COMMAND: Final = Command(
    "rfc9743",
    run=_report,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "SCHEME": "a scheme, with parameters; as in `ccgym evaluate --schemes`",
        "--only A,B": "only these sections of the RFC, such as 5.1.1,7",
        **QUICK,
        "--runs N": "repetitions of every condition (default: 3 to 5)",
        "--confirm N in 0..100 = 0": "make N of the simulated runs once more with real packets (backend emulated), and "
        "say whether they agree; each takes up to a minute",
        **JOBS,
        **cluster("make the simulated runs"),
        **SEED,
        **output("the report", "results/rfc9743-SCHEME"),
    },
)
