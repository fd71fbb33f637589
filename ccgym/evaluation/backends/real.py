"""The backends ``emulated`` and ``mahimahi``: real packets, each run in a separate process."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ccgym.config.path import NetworkPath, PathLike
from ccgym.emulation import doctor
from ccgym.emulation.mahimahi import mahimahi_shells, require_programs
from ccgym.emulation.plan import Plan, refuse_networks, trace_files
from ccgym.emulation.process import run_plan
from ccgym.errors import ConfigError
from ccgym.evaluation.prepared_run import Flow, PreparedRun, Record, prepare
from ccgym.evaluation.run_record import RunRecord
from ccgym.schemes.scheme import Scheme
from ccgym.units import TimeLike

MAHIMAHI = "mahimahi"
"""The backend that needs mahimahi's programs."""


class RealPath:
    """Real packets over a path that this machine emulates, with ccgym's or mahimahi's shells."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._halt = threading.Event()

    def require(self, path: NetworkPath, duration_ns: int) -> None:
        """Check that mahimahi can express this path and its programs are installed, and that this machine meets the
        requirements of the backend."""
        if self.name == MAHIMAHI:
            require_programs(mahimahi_shells(path, duration_ns))
        doctor.require(self.name)

    def why_unavailable(self, choice: Scheme) -> str | None:
        """See :meth:`ccgym.schemes.scheme.Scheme.why_unavailable`."""
        return choice.why_unavailable()

    def run(
        self, path: PathLike, flows: Sequence[Flow], duration: TimeLike, seed: int, record: Record | None = None
    ) -> RunRecord:
        """Run flows over a path, in real time.

        The arguments are as for :func:`ccgym.evaluation.simulate.simulate`. The seed decides the random draws of the
        path (except mahimahi's own draws), but not the times of packets: no two runs are equal.

        Raises:
            ConfigError: An argument is wrong, or mahimahi cannot express the path.
            RealPathError: The run failed, stalled, or was halted.
        """
        run = prepare(path, flows, duration, seed, record)
        outcome = run_plan(self.plan(run), self._halt)
        return run.run_record(outcome.result, self.name, outcome.report)

    def halt(self) -> None:
        """Make runs in other threads stop."""
        self._halt.set()

    def plan(self, run: PreparedRun) -> Plan:
        """Return the plan of the run, for the process that makes it."""
        refuse_networks(run.document, self.name)
        for place, flow in enumerate(run.flows):
            if (found := flow.simulated_only) is not None:
                raise ConfigError(
                    "backend-unsuitable",
                    found,
                    where=f"flows[{place}]",
                    expected="another source, no send buffer, no host, and a receiver that acknowledges arrivals",
                    hint="use --backend sim: only the simulator has these features",
                )
        policies = run.policies
        words = {place: spec.choice.program_words() for place, spec in enumerate(run.flows)}
        return Plan(
            spec=run.document,
            traces=trace_files(run.path.trace_names()),
            policies={key: policy.files for key, policy in policies.items()},
            python={key: scheme.source for key, scheme in run.python.items()},
            programs={place: one for place, one in words.items() if one is not None},
            mahimahi=mahimahi_shells(run.path, run.duration_ns) if self.name == MAHIMAHI else (),
        )
