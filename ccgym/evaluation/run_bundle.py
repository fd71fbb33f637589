"""What a process elsewhere needs to make runs: it travels by content, never by path.

Policies, schemes in Python, parameter files, traces that are files, and the reduction. The other process must have the
same ccgym, file by file, and finds for each run the digest that it has here: then it has the same result.
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
    """All that runs need besides themselves."""

    reduce: Reduction
    policies: Sequence[PolicyParts]
    python: Sequence[PythonSource]
    files: Sequence[ParameterFile]
    traces: Mapping[str, bytes]
    """Content by what paths call it; those of the catalog are on every machine."""

    def unpack(self) -> None:
        """Make it known to this process."""
        for policy in self.policies:
            policies.receive(policy)
        for source in self.python:
            python_classes.receive(source)
        for file in self.files:
            parameter_files.receive(file)
        for name, content in self.traces.items():
            receive_trace(name, content)


def packed(runs: Iterable[Run], reduce: Reduction) -> bytes:
    """What a process elsewhere needs to make runs, for :func:`make_runs`.

    Raises:
        ConfigError: A file was changed since it was read.
    """
    import cloudpickle

    runs = list(runs)
    flows = [flow for run in runs for flow in run.contender.flows]
    references = dict.fromkeys(name for run in runs for name in run.path.trace_names())
    sources = {name: resolve_trace(name) for name in references}
    bundle = RunBundle(
        reduce=replace(reduce, missing=None),  # that is looked up here
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
    """Version of ccgym, and a hash of all its code: what must be equal for results to be."""
    package = Path(__file__).resolve().parents[1]
    found = hashlib.sha256()
    for file in sorted([*package.rglob("*.py"), *package.glob("_core*.so")]):
        found.update(f"{file.relative_to(package)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return f"{__version__} ({found.hexdigest()[:12]})"


def difference(wanted: str) -> str | None:
    """What to say where the ccgym of this process is another one than that of the driver; None where it is not."""
    return None if code() == wanted else f"{platform.node()} has ccgym {code()}"


def make_runs(content: bytes, runs: bytes) -> list[Made | str]:
    """Make runs in a process elsewhere: the result of each, or what went wrong.

    Args:
        content: What :func:`packed` made.
        runs: Pickled pairs: a run, and when it begins in virtual time.
    """
    bundle = _unpacked(content)
    made: list[Made | str] = []
    for run, begin in pickle.loads(runs):
        try:
            if replace(run).digest != run.digest:
                made.append(f"{platform.node()} reads this run as another one: digest {replace(run).digest[:12]}")
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
