"""What a run process is told: the simulator's own specification, and the files that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ccgym.config.catalog import resolve_trace
from ccgym.emulation import python_schemes, quic
from ccgym.emulation.programs import ProgramWords
from ccgym.emulation.python_schemes import PythonSource


@dataclass(frozen=True)
class PolicyFiles:
    """A policy that a flow of the run decides by."""

    onnx: Path
    card: Path
    """Its card, which says what the network's numbers mean."""


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
    onnx_runtime: Path | None = None
    """The library that computes policies; needed where there are any."""
    mahimahi: tuple[tuple[str, ...], ...] = ()
    """The words of each of mahimahi's shells, the outermost first; without shells the path is ours."""

    @property
    def duration_s(self) -> float:
        """Length of the run, seconds."""
        return float(self.spec["duration"]) / 1e9

    @property
    def backend(self) -> str:
        """Whose path it is: ``emulated`` or ``mahimahi``."""
        return "mahimahi" if self.mahimahi else "emulated"

    def document(self, result: Path) -> dict[str, Any]:
        """The plan as the run process reads it.

        Args:
            result: Where it is to write what came out.
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
            "onnx_runtime": None if self.onnx_runtime is None else str(self.onnx_runtime),
            "quic": None if (program := quic.program()) is None else str(program),
            "programs": {str(flow): words.document() for flow, words in self.programs.items()},
            "backend": {"kind": "mahimahi", "shells": [list(shell) for shell in self.mahimahi]}
            if self.mahimahi
            else {"kind": "emulated"},
            "result": str(result),
        }


def trace_files(names: Iterable[str]) -> dict[str, Path]:
    """Real files with the traces of these names; those that are made of a rule are written into the cache.

    Raises:
        PathNotFoundError: A trace that is not there.
        PlatformError: The cache cannot be written.
        TraceFormatError: What was made does not have the checksum of the catalog.
    """
    return {name: resolve_trace(name).materialize() for name in names}
