"""The input of a run process: the simulator's specification, and the files that it refers to."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ccgym.config.catalog import resolve_trace
from ccgym.emulation import python_schemes, quic
from ccgym.emulation.job import Memory
from ccgym.emulation.programs import ProgramWords
from ccgym.emulation.python_schemes import PythonSource
from ccgym.errors import ConfigError


@dataclass(frozen=True)
class PolicyFiles:
    """The files of a policy that controls a flow of the run."""

    onnx: Path
    card: Path
    """Its card, which describes the network's inputs and outputs."""


@dataclass(frozen=True)
class TunnelEnd:
    """One end of the tunnel between two machines. Senders run at one end, receivers at the other."""

    end: Literal["senders", "receivers"]
    secret: str
    """Secret of the two ends: 32 hexadecimal digits, drawn for the run."""
    listen: str | None = None
    """``ADDRESS:PORT`` on which it waits for the other end; port 0: any port, which it then reports."""
    connect: str | None = None
    """``ADDRESS:PORT`` of the other end, if the other end waits. Exactly one of ``listen`` and ``connect`` is given."""
    interface: str | None = None
    """The network device that the tunnel is bound to."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run with real packets. It defines everything except the packets, which depend on the clock."""

    spec: Mapping[str, Any]
    """The specification in the simulator's format (``crates/ccgym-run/src/spec.rs``)."""
    traces: Mapping[str, Path] = field(default_factory=dict)
    """Files of the traces that it names."""
    policies: Mapping[str, PolicyFiles] = field(default_factory=dict)
    """Files of the policies that it names."""
    python: Mapping[str, PythonSource] = field(default_factory=dict)
    """The schemes in Python that it names."""
    programs: Mapping[int, ProgramWords] = field(default_factory=dict)
    """The external programs of flows, by the index of the flow."""
    agent: Mapping[str, Any] | None = None
    """The agent of a flow that an environment controls."""
    control: Path | None = None
    """The socket for the environment's decisions."""
    mahimahi: tuple[tuple[str, ...], ...] = ()
    """The words of each of mahimahi's shells, the outermost first; without shells, ccgym emulates the path."""
    tunnel: TunnelEnd | None = None
    """The tunnel end of this process, for a run between two machines."""
    held: tuple[Memory, ...] = ()
    """Files in memory that the plan names: the process inherits them."""

    @property
    def duration_s(self) -> float:
        """Length of the run, seconds."""
        return float(self.spec["duration"]) / 1e9

    @property
    def backend(self) -> str:
        """The backend of the path: ``emulated``, ``mahimahi`` or ``remote``."""
        return "remote" if self.tunnel is not None else "mahimahi" if self.mahimahi else "emulated"

    def document(self, result: Path, status: str = "") -> dict[str, Any]:
        """Return the plan in the format that the run process reads.

        Args:
            result: File for the result.
            status: File for the port of a tunnel end that waits for the other end.
        """
        return {
            "spec": dict(self.spec),
            "traces": {name: str(file) for name, file in self.traces.items()},
            "policies": {
                name: {"onnx": str(files.onnx.absolute()), "card": str(files.card.absolute())}
                for name, files in self.policies.items()
            },
            "guests": python_schemes.document(self.python),
            "agent": None if self.agent is None else dict(self.agent),
            "control": None if self.control is None else str(self.control),
            "quic": None if (program := quic.program()) is None else str(program),
            "programs": {str(flow): words.document() for flow, words in self.programs.items()},
            "backend": {"kind": self.backend, **self._path(status)},
            "result": str(result),
        }

    def _path(self, status: str) -> dict[str, Any]:
        """Return the entries about the path, in addition to the specification."""
        if self.tunnel is not None:
            return {**asdict(self.tunnel), "status": status}
        return {"shells": [list(shell) for shell in self.mahimahi]} if self.mahimahi else {}

    def packed(self) -> dict[str, Any]:
        """Return the plan of a tunnel end as JSON, with the content of the files that it names."""
        assert self.tunnel is not None
        return {
            "spec": dict(self.spec),
            "policies": {
                key: [base64.b64encode(file.read_bytes()).decode() for file in (files.onnx, files.card)]
                for key, files in self.policies.items()
            },
            "python": python_schemes.document(self.python),
            "programs": {str(flow): words.document() for flow, words in self.programs.items()},
            "tunnel": asdict(self.tunnel),
        }

    @classmethod
    def unpacked(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan from :meth:`packed`, on the other machine. Files are in memory, so that none is left there.

        Args:
            data: Data from :meth:`packed`.
        """
        files = {
            key: [Memory("policy", base64.b64decode(content)) for content in contents]
            for key, contents in data["policies"].items()
        }
        return cls(
            spec=data["spec"],
            policies={key: PolicyFiles(*(Path(memory.path) for memory in pair)) for key, pair in files.items()},
            python={key: PythonSource(**source) for key, source in data["python"].items()},
            programs={int(flow): ProgramWords.of(words) for flow, words in data["programs"].items()},
            tunnel=TunnelEnd(**data["tunnel"]),
            held=tuple(memory for pair in files.values() for memory in pair),
        )


def trace_files(names: Iterable[str]) -> dict[str, Path]:
    """Return real files with the named traces; traces that are made by a rule are written to the cache.

    Raises:
        PathNotFoundError: A trace does not exist.
        PlatformError: The cache cannot be written.
        TraceFormatError: A made trace does not have the checksum of the catalog.
    """
    return {name: resolve_trace(name).materialize() for name in names}


def refuse_networks(spec: Mapping[str, Any], backend: str) -> None:
    """Raise :class:`ConfigError` for features of the simulator only: several links, flows in both directions."""
    links = bool(spec.get("links"))
    if links or any(flow["reverse"] for flow in spec["flows"]):
        raise ConfigError(
            "backend-unsuitable",
            "a path of several links" if links else "a flow in the other direction",
            where=f"backend {backend}",
            expected="one path, which the data of all flows crosses in the same direction",
            hint="use the backend sim: only the simulator supports networks",
        )
