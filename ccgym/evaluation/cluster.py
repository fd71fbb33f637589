"""Make runs on a Ray cluster: the same functions, in processes of other machines.

The driver (the process that the user started) sends the runs and the content of all files that they need
(:mod:`ccgym.evaluation.run_bundle`). Workers make the runs and send back the kept data. Only the driver writes files.
So a lost worker leaves no incomplete file: its runs are sent again. After a killed driver, the same command continues,
as without a cluster.

A Ray task costs a millisecond or more, and a short simulation takes little longer. So runs are sent in batches of
about :data:`BATCH_S`.
"""

from __future__ import annotations

import math
import os
import pickle
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from ccgym.errors import ConfigError, PlatformError
from ccgym.evaluation.engine import Made, Reduction, RunOutcome
from ccgym.evaluation.run import Run
from ccgym.evaluation.run_bundle import code, packed

AUTO: Final = "auto"
"""Use the cluster that runs on this machine; if there is none, start one that ends with the command."""

BATCH_S: Final = 1.0
"""Target duration of a batch, seconds: Ray's cost per task is then below 1 %."""
ANSWER_S: Final = 2.0
"""Maximum seconds to wait for an answer of a cluster that was on this machine."""
TURN_S: Final = 0.5
"""Seconds between checks for signals, and for added or lost machines, while waiting."""
MAX_LOST: Final = 3
"""Maximum number of workers that a run may lose: after that, the run is treated as the cause."""


class Cluster:
    """A connection to a Ray cluster. Use it as a context manager.

    Args:
        address: :data:`AUTO`, or the address that ``ray start`` printed: ``10.0.0.1:6379``.
        processors: Number of processors of a cluster that is started here; None: all of this machine.
        notice: Called with messages for the user.
    """

    def __init__(
        self, address: str = AUTO, processors: int | None = None, notice: Callable[[str], None] = lambda text: None
    ) -> None:
        self.address = address
        self._processors = processors
        self._notice = notice
        self._ray: Any = None

    def __enter__(self) -> Cluster:
        # Otherwise, Ray sends usage data.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        common: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "ccgym"}
        try:
            known = self._known()
            if known is None:
                ray.init(address="local", num_cpus=self._processors, include_dashboard=False, **common)
            else:
                ray.init(address=known, **common)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            found = str(error).strip().partition("\n")[0]
            raise PlatformError(
                "cluster-unreachable",
                f"no Ray cluster answers: {found}",
                where=f"--cluster {self.address}",
                expected=f"{AUTO}, or the address that `ray start --head` printed, as in 10.0.0.1:6379",
                hint="both ends need the same versions of Python and Ray, and the same RAY_AUTH_TOKEN if there is one",
            ) from None
        self._ray = ray
        return self

    def _known(self) -> str | None:
        """Return the address of an existing cluster, if known; None if a new cluster must be started."""
        from ray._private.services import get_ray_address_from_environment

        if self.address != AUTO or os.environ.get("RAY_ADDRESS"):
            return self.address
        try:
            found = str(get_ray_address_from_environment(AUTO, None))
        except ConnectionError:
            return None
        # Ray itself would wait for an answer for more than a minute.
        host, _, port = found.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=ANSWER_S):
                return found
        except (OSError, ValueError):
            self._notice(f"no Ray cluster answers at {found}, the address of the last one here: starting a new one")
            return None

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    def require(self, runs: Sequence[Run]) -> None:
        """See :class:`~ccgym.evaluation.engine.RemoteExecutor`."""
        real = next((run.backend for run in runs if run.real), None)
        if real is not None:
            raise ConfigError(
                "backend-unsuitable",
                f"real packets (--backend {real}) on a cluster",
                where="--cluster",
                expected="--backend sim: in real time, runs that share a machine would disturb each other, and "
                "Ray does not report which runs share one",
                hint="run it without --cluster on a machine without other load",
            )

    def at_a_time(self, jobs: int | None) -> int:
        """See :class:`~ccgym.evaluation.engine.RemoteExecutor`."""
        there = max(1, int(self._ray.cluster_resources().get("CPU", 0)))
        return there if jobs is None else min(jobs, there)

    def each(
        self,
        runs: Sequence[Run],
        begins: Mapping[str, float],
        reduce: Reduction,
        jobs: int | None,
        begin: Callable[[Run], bool],
        keep: Callable[[Run, Made], RunOutcome],
        notice: Callable[[str], None],
    ) -> Generator[tuple[Run, Future[RunOutcome]], None, None]:
        """See :class:`~ccgym.evaluation.engine.RemoteExecutor`."""
        if not runs:
            return
        ray = self._ray
        # In a list, Ray does not replace a reference by its object: a worker fetches the object once, not per task.
        bundle = [ray.put(packed(runs, reduce))]
        function = ray.remote(_worker()).options(num_cpus=1, max_retries=0)
        waiting, alone = deque(runs), deque[Run]()
        lost: Counter[str] = Counter()
        flying: dict[Any, list[Run]] = {}
        seconds, ended = 0.0, 0
        slots, looked = self.at_a_time(jobs), time.monotonic()
        try:
            while waiting or alone or flying:
                if time.monotonic() - looked > TURN_S:
                    slots, looked = self.at_a_time(jobs), time.monotonic()
                while (waiting or alone) and len(flying) < slots:
                    if alone:
                        batch = [alone.popleft()]
                    else:
                        size = _batch_size(seconds / ended if ended else None, len(waiting), slots)
                        asked = [waiting.popleft() for _ in range(size)]
                        begun = [(run, begin(run)) for run in asked]
                        batch = [run for run, may in begun if may]
                        yield from ((run, _done(RunOutcome(run, left=True))) for run, may in begun if not may)
                    if batch:
                        sent = pickle.dumps([(run, begins[run.digest]) for run in batch])
                        flying[function.remote(code(), bundle, sent)] = batch
                for ref in _ready(ray, list(flying)):
                    batch = flying.pop(ref)
                    try:
                        made = ray.get(ref)
                    except ray.exceptions.RayTaskError as error:
                        raise PlatformError(
                            "run-failed", f"a worker failed: {error}", where=f"--cluster {self.address}"
                        ) from None
                    except ray.exceptions.RayError as error:
                        lost.update(run.digest for run in batch)
                        why = f"lost its worker ({type(error).__name__})"
                        notice(f"{batch[0].name}{f' and {len(batch) - 1} more' if len(batch) > 1 else ''}: {why}")
                        for run in batch:
                            if lost[run.digest] < MAX_LOST:
                                alone.append(run)
                            else:
                                yield run, _done(RunOutcome(run, error=f"{why} {MAX_LOST} times"))
                        continue
                    if isinstance(made, str):
                        raise _refused(made, self.address)
                    for run, one in zip(batch, made, strict=True):
                        if isinstance(one, str):
                            yield run, _done(RunOutcome(run, error=one))
                        else:
                            seconds, ended = seconds + one.took_s, ended + 1
                            yield run, _done(keep(run, one))
        finally:
            for ref in flying:  # the caller was interrupted
                ray.cancel(ref, force=True)


def _batch_size(run_s: float | None, left: int, slots: int) -> int:
    """Return the number of runs in the next batch: one if the duration of runs is unknown; few near the end, so that
    all machines end at about the same time."""
    if run_s is None:
        return 1
    return max(1, min(int(BATCH_S / max(run_s, 1e-6)), math.ceil(left / (2 * slots))))


def _ready(ray: Any, flying: Sequence[Any]) -> Sequence[Any]:
    """Return the ended tasks, after at most one waiting interval."""
    if not flying:
        return ()
    if not ray.wait(flying, num_returns=1, timeout=TURN_S, fetch_local=False)[0]:
        return ()
    ended: Sequence[Any] = ray.wait(flying, num_returns=len(flying), timeout=0, fetch_local=False)[0]
    return ended


def _done(outcome: RunOutcome) -> Future[RunOutcome]:
    done: Future[RunOutcome] = Future()
    done.set_result(outcome)
    return done


def _worker() -> Callable[[str, list[Any], bytes], list[Made | str] | str]:
    """Return the function that workers run. It is a nested function so that Ray sends its code, and it can report a
    missing ccgym."""

    def work(wanted: str, bundle: list[Any], runs: bytes) -> list[Made | str] | str:
        import platform

        import ray

        try:
            from ccgym.evaluation.run_bundle import difference, make_runs
        except ImportError as error:
            return f"{platform.node()} has no ccgym, or a very different version ({error})"
        found = difference(wanted)
        return make_runs(ray.get(bundle[0]), runs) if found is None else found

    return work


def _refused(found: str, address: str) -> PlatformError:
    return PlatformError(
        "version-mismatch",
        found,
        where=f"--cluster {address}",
        expected=f"ccgym {code()} on every machine, as here: another version could give other results",
        hint="install the same wheel on all machines; `ccgym --version` prints the installed version",
    )
