"""The data that a process on another machine needs to make runs: files are sent as content, never as a path.

The data are policies, schemes in Python, parameter files, traces from files, and the reduction. The other process
must have the same ccgym, file by file, and compute the same digest of each run: then results are equal.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ccgym import __version__
from ccgym.config.catalog import receive_trace, resolve_trace
from ccgym.emulation.python_schemes import PythonSource
from ccgym.evaluation.engine import Made, Reduction, make, reason
from ccgym.evaluation.run import Run
from ccgym.schemes import parameter_files, policies, python_classes
from ccgym.schemes.flow import policies_of, python_of
from ccgym.schemes.parameter_files import ParameterFile
from ccgym.schemes.policies import PolicyParts


@dataclass(frozen=True)
class RunBundle:
    """The data that runs need in addition to their descriptions."""

    reduce: Reduction
    policies: Sequence[PolicyParts]
    python: Sequence[PythonSource]
    files: Sequence[ParameterFile]
    traces: Mapping[str, bytes]
    """Content by the names in paths; traces of the catalog are on every machine."""

    def unpack(self) -> None:
        """Register the data in this process."""
        for policy in self.policies:
            policies.receive(policy)
        for source in self.python:
            python_classes.receive(source)
        for file in self.files:
            parameter_files.receive(file)
        for name, content in self.traces.items():
            receive_trace(name, content)


def packed(runs: Iterable[Run], reduce: Reduction) -> bytes:
    """Return the data that a process on another machine needs for :func:`make_runs`.

    Raises:
        ConfigError: A file has changed since it was read.
    """
    import cloudpickle

    runs = list(runs)
    flows = [flow for run in runs for flow in run.contender.flows]
    references = dict.fromkeys(name for run in runs for name in run.path.trace_names())
    sources = {name: resolve_trace(name) for name in references}
    bundle = RunBundle(
        reduce=replace(reduce, missing=None),  # only this process checks for it
        policies=[PolicyParts.of(policy) for policy in policies_of(flows).values()],
        python=[scheme.source for scheme in python_of(flows).values()],
        files=list({file.key: file for flow in flows for file in flow.choice.files.values()}.values()),
        traces={
            name: one.file.read_bytes() for name, one in sources.items() if one.file is not None and one.entry is None
        },
    )
    content: bytes = cloudpickle.dumps(bundle)
    return content


@lru_cache(maxsize=1)
def code() -> str:
    """Return the version of ccgym and a hash of all its code. Equal results require that both are equal."""
    package = Path(__file__).resolve().parents[1]
    found = hashlib.sha256()
    for file in sorted([*package.rglob("*.py"), *package.glob("_core*.so")]):
        found.update(f"{file.relative_to(package)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return f"{__version__} ({found.hexdigest()[:12]})"


def difference(wanted: str) -> str | None:
    """Return a message if this process has another ccgym than the driver; None if both are equal."""
    return None if code() == wanted else f"{platform.node()} has ccgym {code()}"


def make_runs(content: bytes, runs: bytes) -> list[Made | str]:
    """Make runs in a process on another machine, and return the result or error of each run.

    Args:
        content: Data from :func:`packed`.
        runs: Pickled pairs of a run and its start in virtual time.
    """
    bundle = _unpacked(content)
    made: list[Made | str] = []
    for run, begin in pickle.loads(runs):
        try:
            if replace(run).digest != run.digest:
                made.append(f"{platform.node()} computes another digest of this run: {replace(run).digest[:12]}")
            else:
                made.append(make(run, bundle.reduce, begin))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the native core is not an Exception
            made.append(reason(error))
    return made


@lru_cache(maxsize=4)
def _unpacked(content: bytes) -> RunBundle:
    bundle: RunBundle = pickle.loads(content)
    bundle.unpack()
    return bundle
