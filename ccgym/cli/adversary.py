"""``ccgym adversary``: paths on which a scheme is far from the oracle, found, minimized and confirmed.

Exit status: 0, done, also where nothing was found; 1, a run failed; for the rest see :mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from typing import Final

from ccgym.cli.command import Command
from ccgym.cli.experiments import request, run_and_show, spec_of
from ccgym.cli.options import JOBS, SEED, given, output, seconds
from ccgym.units import parse_rate

_DESCRIPTION: Final = """\
Search for paths on which a scheme is far from the oracle, which does well on them: rates that change, round trips,
buffers, random loss, jitter, acknowledgements in lumps. What is found is made as simple as possible, measured with
several seeds together with the oracle and classic schemes, run with real packets where this machine can, and written
as paths with names. Interrupted, the same command goes on.
"""

_EXAMPLES: Final = """\
  ccgym adversary cubic                        three minutes of search; into results/adversary-cubic
  ccgym adversary bbr copa runs/mine --budget 10min --finds 5
  ccgym adversary vegas --evaluations 500 --confirm 0 --no-figures
  ccgym evaluate --trace results/adversary-cubic/paths/adversary-cubic-1.yaml --schemes cubic,oracle
"""


def _mbps(text: str) -> float:
    return float(parse_rate(text)) / 1e6


def _adversary(arguments: argparse.Namespace) -> int:
    from ccgym.evaluation.run import parse_contenders
    from ccgym.experiments.adversary_search import NAME, AdversarySpec

    keys = ("evaluations", "budget_s", "finds", "duration", "runs", "max_rate_mbps")
    schemes = parse_contenders(",".join(arguments.schemes), "SCHEME")
    spec = spec_of(AdversarySpec, given(arguments, **{key: key for key in keys}))
    words = [NAME, *(one.key for one in schemes)]
    asked = request(arguments, schemes, words, runtime_ns=spec.duration, runs=None, budget_s=None)
    return run_and_show(spec, asked, arguments)


COMMAND: Final = Command(
    "adversary",
    run=_adversary,
    description=_DESCRIPTION,
    examples=_EXAMPLES,
    options={
        "SCHEME... as schemes": "a scheme, with parameters; as in `ccgym evaluate --schemes`",
        "| --budget TIME as budget_s": "length of the search for each scheme, such as 10min (default: 3min)",
        "| --evaluations N": "or the number of candidates to try for each",
        "--finds N": "finds for each scheme, at most (default: 3)",
        "--runtime TIME as duration": "length of a run: seconds, or with a unit (default: 20)",
        "--runs N": "runs of every scheme on a find (default: 5)",
        "--max-rate RATE as max_rate_mbps": "maximum rate of a path (default: 1gbps)",
        "--confirm N in 0..100 = 1": "run the first N finds of each scheme once more with real packets (backend "
        "emulated), where this machine can",
        **JOBS,
        **SEED,
        **output("the finds", "results/adversary-SCHEMES"),
    },
    reads={"budget_s": seconds, "duration": str, "max_rate_mbps": _mbps},
)
