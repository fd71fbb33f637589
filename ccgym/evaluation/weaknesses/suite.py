"""The suite ``weaknesses``: every test with every scheme, run in threads, kept run by run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from ccgym.errors import CcgymError, ConfigError
from ccgym.evaluation.backends import SIMULATED, check_name
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.suites.protocol import SilentProgress, SuiteProgress, SuiteRequest
from ccgym.evaluation.weaknesses.bandwidth_sweep import BandwidthSweep
from ccgym.evaluation.weaknesses.base import QUICK_RUNS, RUNS, Weakness, inside_range
from ccgym.evaluation.weaknesses.cubic_friendliness import CubicFriendliness
from ccgym.evaluation.weaknesses.intra_rtt_fairness import IntraRttFairness
from ccgym.evaluation.weaknesses.responsiveness import Responsiveness
from ccgym.evaluation.weaknesses.results import Outcome, WeaknessResults, evidence_of, judge
from ccgym.evaluation.weaknesses.runs import Cell, RunResult, cells_of
from ccgym.evaluation.weaknesses.self_inflicted_loss import SelfInflictedLoss
from ccgym.evaluation.weaknesses.stale_estimates import StaleEstimates
from ccgym.evaluation.weaknesses.startup_recovery import StartupRecovery
from ccgym.evaluation.weaknesses.store import RunStore
from ccgym.evaluation.weaknesses.training_range import training_range
from ccgym.files import atomic_write
from ccgym.schemes import policies
from ccgym.schemes.kernel import refuse_in_virtual_time
from ccgym.schemes.registry import SchemeChoice, check, distinct, parse_scheme, registry, styles

TESTS: Final[tuple[Weakness, ...]] = (
    IntraRttFairness(),
    BandwidthSweep(),
    CubicFriendliness(),
    Responsiveness(),
    SelfInflictedLoss(),
    StartupRecovery(),
    StaleEstimates(),
)
"""The tests, in the order of tables."""

CLASSIC: Final = ("cubic", "bbr", "copa")
"""What learned schemes are held against where no schemes are named."""

RESULTS_FILE: Final = "weaknesses.json"
CSV_FILE: Final = "weaknesses.csv"
MAX_RUNS: Final = 1000
"""More repetitions are refused."""
STAGE: Final = "simulating"
"""Name of the stage in the progress."""

RIG: Final = "a dumbbell: the same delay both ways, a droptail bottleneck, unconstrained acknowledgements"


class WeaknessSuite:
    """Runs the tests; a :class:`~ccgym.evaluation.suites.protocol.Suite`.

    Args:
        tests: Which ones.
    """

    name: Final = "weaknesses"
    title: Final = "tests for weaknesses that studies found in learned congestion control"

    def __init__(self, tests: Sequence[Weakness] = TESTS) -> None:
        self.tests = tuple(tests)

    def schemes(self, *, real: bool = False) -> list[SchemeChoice]:
        """Three classic schemes, and every policy that comes with ccgym."""
        return [parse_scheme(name) for name in (*CLASSIC, *policies.pretrained())]

    def run(self, request: SuiteRequest, progress: SuiteProgress | None = None) -> WeaknessResults:
        """Run what is not in ``request.out`` yet, judge, and write ``weaknesses.json`` and ``weaknesses.csv`` there.

        Raises:
            ConfigError: The request makes no sense: a real backend, a length of runs, kernel TCP.
            ResultsError: The directory cannot be used.
        """
        progress = progress or SilentProgress()
        schemes = _checked(request)
        runs = request.runs or (QUICK_RUNS if request.quick else RUNS)
        started = time.time()
        cells = [
            cell
            for test in self.tests
            for cell in cells_of(test, schemes, runs=runs, seed=request.seed, quick=request.quick)
        ]
        with RunStore(request.out) as store:
            found, failures = _execute(cells, store, request.jobs, progress)
            results = WeaknessResults(
                parameters={
                    "suite": self.name,
                    "schemes": [choice.text for choice in schemes],
                    "seed": request.seed,
                    "runs": runs,
                    "quick": request.quick,
                },
                provenance={
                    **provenance(RIG, request.command, started, time.time() - started, SIMULATED),
                    "policies": {
                        choice.key: choice.policy.provenance() for choice in schemes if choice.policy is not None
                    },
                    "simulated_s": round(sum(result.wall_s for result in found.values()), 1),
                },
                styles=styles(schemes),
                trained_on={
                    choice.key: known.text for choice in schemes if (known := training_range(choice)) is not None
                },
                tests=self.tests,
                outcomes={
                    (test.name, choice.key): outcome
                    for test in self.tests
                    for choice, outcome in _judged(test, schemes, cells, found)
                },
                failures=tuple(failures),
            )
            text = json.dumps(results.to_json(), ensure_ascii=False, allow_nan=False, indent=1)
            atomic_write(request.out / RESULTS_FILE, text + "\n")
            atomic_write(request.out / CSV_FILE, results.to_csv())
        return results


def _checked(request: SuiteRequest) -> list[SchemeChoice]:
    """The schemes, if the request can be met."""
    check_name(request.backend, "backend")
    if request.backend != SIMULATED:
        raise ConfigError(
            f"backend {request.backend}",
            where="backend",
            expected=f"{SIMULATED}: the tests of one scheme take two days of a path's time",
            hint="leave the backend out",
        )
    if request.runtime_ns is not None:
        raise ConfigError(
            f"runs of {request.runtime_ns / 1e9:g} s",
            where="runtime",
            expected="nothing: every test has lengths of its own",
            hint="a quick look takes fewer conditions and repetitions",
        )
    if request.runs is not None and not 1 <= request.runs <= MAX_RUNS:
        raise ConfigError(f"{request.runs}", where="runs", expected=f"a whole number from 1 to {MAX_RUNS}")
    if not request.schemes:
        raise ConfigError("no scheme", where="schemes", expected="at least one")
    checked = [check(choice, "schemes") for choice in request.schemes]
    for choice in checked:
        refuse_in_virtual_time(choice.name, choice.kernel in registry(), "schemes")
    return distinct(checked, "schemes")


def _execute(
    cells: Sequence[Cell], store: RunStore, jobs: int | None, progress: SuiteProgress
) -> tuple[dict[str, RunResult], list[str]]:
    """Results by digest of the cell, and the failures, a line each."""
    from ccgym import _core

    found = {cell.digest: kept for cell in cells if (kept := store.read(cell)) is not None}
    missing = {cell.digest: cell for cell in cells if cell.digest not in found}
    for text in store.damaged:
        progress.notice(text)
    progress.begin(STAGE, len(found) + len(missing), len(found))
    failures: list[str] = []
    halt = _core.Halt()
    # Threads: the simulator releases the interpreter's lock.
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1, thread_name_prefix="weakness") as pool:
        futures: dict[Future[RunResult], Cell] = {pool.submit(cell.execute, halt): cell for cell in missing.values()}
        pending = set(futures)
        try:
            while pending:
                # Short turns let Ctrl-C through.
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    cell = futures.pop(future)
                    try:
                        result = future.result()
                    except CcgymError as error:
                        failures.append(f"{cell.name}, seed {cell.seed}: {error}")
                    except (KeyboardInterrupt, SystemExit):
                        raise
                    except BaseException as error:  # a panic of the native core is no Exception
                        failures.append(f"{cell.name}, seed {cell.seed}: {type(error).__name__}: {error}")
                    else:
                        store.write(cell, result)
                        found[cell.digest] = result
                    progress.advance(STAGE, 1, f"{cell.test.title} · {cell.choice.key}")
        except BaseException:
            halt.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for future, cell in futures.items():  # What was under way has ended meanwhile.
                if future.done() and not future.cancelled() and future.exception() is None:
                    store.write(cell, future.result())
            raise
    return found, sorted(failures)


def _judged(
    test: Weakness, schemes: Sequence[SchemeChoice], cells: Sequence[Cell], found: dict[str, RunResult]
) -> list[tuple[SchemeChoice, Outcome]]:
    """The outcomes of a test."""
    own = [cell for cell in cells if cell.test is test]
    conditions = list({cell.condition.key: cell.condition for cell in own}.values())
    runs: dict[str, list[RunResult]] = {}
    expected: dict[str, int] = {}
    for cell in own:
        expected[cell.condition.key] = max(expected.get(cell.condition.key, 0), cell.run)
        if cell.digest in found:
            runs.setdefault(cell.choice.key, []).append(found[cell.digest])
    baseline = None
    if test.baseline is not None:
        baseline = evidence_of(test, conditions, expected, runs.get(test.baseline, []), {})
    judged = []
    for choice in schemes:
        trained_on = training_range(choice)
        inside = {condition.key: inside_range(condition, trained_on) for condition in conditions}
        outcome = judge(test, choice.key, conditions, expected, runs.get(choice.key, []), inside, baseline)
        judged.append((choice, outcome))
    return judged


SUITE: Final = WeaknessSuite()
"""The suite with all tests."""
