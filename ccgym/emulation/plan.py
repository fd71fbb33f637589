"""What a run process gets: the simulator's own specification, and the files that it refers to."""

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
    """A policy that a flow of the run decides by."""

    onnx: Path
    card: Path
    """Its card, which says what the network's numbers mean."""


@dataclass(frozen=True)
class TunnelEnd:
    """One end of the tunnel between two machines. Senders run at one, receivers at the other."""

    end: Literal["senders", "receivers"]
    secret: str
    """32 hexadecimal digits, drawn for the run, that only its two ends know."""
    listen: str | None = None
    """``ADDRESS:PORT`` on which it waits for the other end; port 0: any, which it then tells."""
    connect: str | None = None
    """``ADDRESS:PORT`` of the other end, if that one waits. Exactly one of the two is given."""
    interface: str | None = None
    """The network device that the tunnel is bound to."""


@dataclass(frozen=True)
class Plan:
    """A run with real packets. Which packets there will be is decided by the clock, everything else is here."""

    spec: Mapping[str, Any]
    """The specification as the simulator takes it (``crates/ccgym-run/src/spec.rs``)."""
    traces: Mapping[str, Path] = field(default_factory=dict)
    """Files of the traces that it names."""
    policies: Mapping[str, PolicyFiles] = field(default_factory=dict)
    """Files of the policies that it names."""
    python: Mapping[str, PythonSource] = field(default_factory=dict)
    """The schemes in Python that it names."""
    programs: Mapping[int, ProgramWords] = field(default_factory=dict)
    """The programs of flows that are such, by the index of the flow."""
    agent: Mapping[str, Any] | None = None
    """The agent of a flow that is decided from outside."""
    control: Path | None = None
    """The socket on which that is done."""
    mahimahi: tuple[tuple[str, ...], ...] = ()
    """The words of each of mahimahi's shells, the outermost first; without shells the path is ours."""
    tunnel: TunnelEnd | None = None
    """Of a run between two machines, the end that this process is."""
    held: tuple[Memory, ...] = ()
    """Files in memory that the plan names: the process inherits them."""

    @property
    def duration_s(self) -> float:
        """Length of the run, seconds."""
        return float(self.spec["duration"]) / 1e9

    @property
    def backend(self) -> str:
        """Whose path it is: ``emulated``, ``mahimahi`` or ``remote``."""
        return "remote" if self.tunnel is not None else "mahimahi" if self.mahimahi else "emulated"

    def document(self, result: Path, status: str = "") -> dict[str, Any]:
        """The plan as the run process reads it.

        Args:
            result: Where it is to write what came out.
            status: Where an end of a tunnel that waits for the other one writes its port.
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
        """What is passed on about the path, besides the specification."""
        if self.tunnel is not None:
            return {**asdict(self.tunnel), "status": status}
        return {"shells": [list(shell) for shell in self.mahimahi]} if self.mahimahi else {}

    def packed(self) -> dict[str, Any]:
        """The plan of an end of a tunnel as JSON, with the content of the files that it names."""
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
        """The inverse of :meth:`packed`, on the other machine. Files lie in memory, so that nothing is left of them.

        Args:
            data: What :meth:`packed` made.
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
    """Real files with the traces of these names; those that are made of a rule are written into the cache.

    Raises:
        PathNotFoundError: A trace that is not there.
        PlatformError: The cache cannot be written.
        TraceFormatError: What was made does not have the checksum of the catalog.
    """
    return {name: resolve_trace(name).materialize() for name in names}


def refuse_networks(spec: Mapping[str, Any], backend: str) -> None:
    """Raise :class:`ConfigError` for what only the simulator has: several links, flows in both directions."""
    links = bool(spec.get("links"))
    if links or any(flow["reverse"] for flow in spec["flows"]):
        raise ConfigError(
            "backend-unsuitable",
            "a path of several links" if links else "a flow in the other direction",
            where=f"backend {backend}",
            expected="one path, which the data of all flows crosses in the same direction",
            hint="networks are simulated only: backend sim",
        )
