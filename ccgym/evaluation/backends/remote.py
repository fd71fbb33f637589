"""The backend ``remote``: real packets between two machines, with a process on each."""

from __future__ import annotations

from collections.abc import Sequence

from ccgym.config.hosts import Hosts, hosts_of
from ccgym.config.path import NetworkPath, PathLike
from ccgym.emulation import doctor
from ccgym.emulation.remote import MTU, run_between, server_address
from ccgym.emulation.remote_end import RemoteEnd
from ccgym.errors import ConfigError, PlatformError
from ccgym.evaluation.backends import REMOTE
from ccgym.evaluation.backends.real import RealPath
from ccgym.evaluation.prepared_run import Flow, Record, prepare
from ccgym.evaluation.run_record import RunRecord
from ccgym.schemes.flow import FlowSpec, flow_spec
from ccgym.schemes.scheme import Scheme
from ccgym.units import TimeLike


class BetweenHosts(RealPath):
    """Real packets over the path between two machines."""

    def __init__(self) -> None:
        super().__init__(REMOTE)

    def require(self, path: NetworkPath, duration_ns: int) -> None:
        """Check that both machines meet the requirements, and that the other machine answers."""
        hosts = _hosts(path)
        doctor.require(self.name)
        server_address(hosts)
        with RemoteEnd(hosts) as there:
            there.hello(self._halt)
            there.send({"check": True}, self._halt)
            obstacle = there.wait("check", doctor.TIMEOUT_S, self._halt)
        if obstacle is not None:
            raise PlatformError(
                "capability-missing",
                f"{obstacle['name']}: {obstacle['found']}",
                where=f"remote {hosts.remote_path}",
                expected="a machine on which a tunnel works",
                hint=obstacle["remedy"] or "run `ccgym doctor` there to see what that machine supports",
            )

    def why_unavailable(self, choice: Scheme) -> str | None:
        """Return None: the senders' machine reports missing features when it runs."""
        return None

    def run(
        self, path: PathLike, flows: Sequence[Flow], duration: TimeLike, seed: int, record: Record | None = None
    ) -> RunRecord:
        """Run flows from one machine to the other, in real time.

        The arguments are as for :func:`ccgym.evaluation.simulate.simulate`; the seed decides only the random draws of
        schemes. Packets are at most as large as the tunnel's maximum.

        Raises:
            ConfigError: An argument is wrong, or the path is not between two machines.
            RealPathError: See :func:`ccgym.emulation.remote.run_between`.
        """
        hosts = _hosts(NetworkPath.from_any(path))
        specs = [_fitting(flow_spec(flow, f"flows[{place}]"), place) for place, flow in enumerate(flows)]
        run = prepare(path, specs, duration, seed, record)
        outcome = run_between(self.plan(run), hosts, self._halt)
        return run.run_record(outcome.result, self.name, outcome.report)


def _hosts(path: NetworkPath) -> Hosts:
    hosts = hosts_of(path)
    if hosts is None:
        raise ConfigError(
            "backend-unsuitable",
            f"a described path, {path.name or 'without a name'}",
            where=f"backend {REMOTE}",
            expected="the path between two machines: --remote HOST instead of a path",
        )
    return hosts


def _fitting(flow: FlowSpec, place: int) -> FlowSpec:
    """Return the flow with a packet size that the tunnel can carry."""
    if flow.rtt is not None or flow.extra_rtt:
        raise ConfigError(
            "backend-unsuitable",
            "a round-trip time of its own",
            where=f"flows[{place}]",
            expected="none: between two machines, the real path decides it",
        )
    return flow.model_copy(update={"mss": min(flow.mss, MTU - flow.header)})
