"""Schemes in Python: make their classes from source text, and explain their failures.

The source is kept as text: edits of its file during a run do not change the run, in this process or in a run
process. This module imports no slow modules and none that start threads: the run process uses it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import linecache
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import CodeType, ModuleType
from typing import Any, Final, NoReturn

from ccgym.errors import CcgymError, ConfigError, SimulationError, did_you_mean, shown

METHODS: Final = ("on_start", "on_ack", "on_loss", "on_timeout", "on_interval")
"""Methods of a class that are called if they exist."""

MAX_CWND: Final = 10_000_000
"""Maximum window, packets (``crates/ccgym-py/src/python_scheme/decision.rs``, as the other limits)."""

EXPECTED: Final = {
    "cwnd": f"a number of packets from 1 (with on_interval: from 0) to {MAX_CWND:,}; or None, and a pacing_rate_bps",
    "pacing_rate_bps": "a number of bits per second from 1 to 1e12; or None, and a cwnd",
    "interval_s": "a number of seconds from 0.001 to 10,000; or None for one smoothed round-trip time",
}
"""Allowed values of the attributes that define a decision."""

STATUS_ERROR: Final = 2
"""Exit status of a run process with an explained error."""


@dataclass(frozen=True)
class PythonSource:
    """A class as source text."""

    file: str
    """File of the class, as given."""
    name: str
    """Name of the class."""
    text: str
    """Content of the file."""

    @property
    def sha256(self) -> str:
        """Hash of the file's content."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_MADE: Final[dict[str, tuple[PythonSource, type]]] = {}
"""Classes of this process, by the key that flows use."""


def make(key: str, source: PythonSource) -> type:
    """Return the class of a source text; it is made once per process.

    Args:
        key: Key of the class in flows.
        source: Its source text.

    Raises:
        ConfigError: The text cannot be compiled or run, or has no such class, or the class has no method for events.
    """
    known = _MADE.get(key)
    if known is not None:
        return known[1]
    module = ModuleType(f"ccgym_scheme_{source.sha256[:16]}")
    module.__file__ = source.file
    # Tracebacks quote this text, not the later content of the file; pickle and dataclasses look up the module.
    linecache.cache[source.file] = (len(source.text), None, source.text.splitlines(keepends=True), source.file)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source.text, source.file, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        raise ConfigError(
            "scheme-unimportable",
            f"{error.msg}: {(error.text or '').strip()}",
            where=f"{source.file}:{error.lineno}",
            expected="Python",
        ) from None
    except Exception as error:
        line = _line_of(error, source.file)
        raise ConfigError(
            "scheme-unimportable", _said(error), where=_place(source.file, line), expected="a file that can be imported"
        ) from error
    made = getattr(module, source.name, None)
    if not isinstance(made, type):
        classes = [name for name, one in vars(module).items() if isinstance(one, type) and has_methods(one)]
        raise ConfigError(
            "unknown-class",
            f"no class {source.name}",
            where=source.file,
            expected=f"one of {', '.join(classes)}" if classes else f"a class with {', '.join(METHODS[1:])}",
            hint=did_you_mean(source.name, classes),
        )
    if not has_methods(made):
        raise ConfigError(
            "unknown-class",
            f"class {source.name} handles no event",
            where=_place(source.file, getattr(made, "__firstlineno__", None)),
            expected=f"at least one of {', '.join(METHODS[1:])}",
            hint="docs/guides/write-a-cca.md shows an example",
        )
    _MADE[key] = (source, made)
    return made


def has_methods(made: type) -> bool:
    """Return whether a class has a method for an event."""
    return any(callable(getattr(made, name, None)) for name in METHODS[1:])


def make_all(sources: str) -> dict[str, type]:
    """Make the classes of a plan, for the run process.

    Args:
        sources: Fields of :class:`PythonSource` by key, as JSON.
    """
    return {key: make(key, PythonSource(**fields)) for key, fields in json.loads(sources).items()}


def document(sources: Mapping[str, PythonSource]) -> dict[str, Any]:
    """Return sources in the form of a plan; :func:`make_all` reads them."""
    return {key: asdict(source) for key, source in sources.items()}


def explained(failure: BaseException) -> CcgymError:
    """Return an error that explains a scheme's failure: file, line, method, and the exception or the value.

    Args:
        failure: The native core's ``SchemeFailure``.
    """
    key, method, attribute, value = failure.args
    source, made = _MADE[key]
    cause = failure.__cause__
    name = f"{source.name}.{method}"
    if cause is not None:
        return exception_in(source, made, method, cause)
    lines = _assignments(source.text, source.name, method, attribute)
    found = f"{attribute} is {value}" if value != "None" else f"{attribute} is None, and so is pacing_rate_bps"
    return SimulationError(
        "scheme-answer-invalid",
        f"{found} after {method}",
        where=f"{_place(source.file, lines[-1] if lines else _first_line(made, method))}: {name}",
        expected=EXPECTED[attribute],
        hint=f"check the lines that set it: {', '.join(map(str, lines))}" if len(lines) > 1 else "",
    )


def exception_in(source: PythonSource, made: type, method: str, error: BaseException) -> CcgymError:
    """Return the error for an exception in a method."""
    line = _line_of(error, source.file)
    text = linecache.getline(source.file, line).strip() if line else ""
    return SimulationError(
        "scheme-raised",
        _said(error),
        where=f"{_place(source.file, line or _first_line(made, method))}: {source.name}.{method}",
        expected="no exception",
        hint=f"look at the line `{text}`" if text else "",
    )


def end_process(failure: BaseException) -> NoReturn:
    """Print a failure in the form of run processes, and end the process."""
    error = explained(failure)
    fields = {
        "code": error.code,
        "place": error.where,
        "found": error.found,
        "expected": error.expected,
        "hint": error.hint,
    }
    sys.stderr.write(f"\n{json.dumps(fields)}\n")
    sys.stderr.flush()
    os._exit(STATUS_ERROR)


def _said(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {shown(text)[1:-1]}" if text else type(error).__name__


def _place(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line else file


def _line_of(error: BaseException, file: str) -> int | None:
    """Return the last line of a file in an exception's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None


def _first_line(made: type, method: str) -> int | None:
    code = getattr(getattr(made, method, None), "__code__", None)
    return code.co_firstlineno if isinstance(code, CodeType) else None


def _assignments(text: str, class_name: str, method: str, attribute: str) -> list[int]:
    """Return the lines of a method that assign an attribute."""
    for made in ast.walk(ast.parse(text)):
        if isinstance(made, ast.ClassDef) and made.name == class_name:
            for one in made.body:
                if isinstance(one, ast.FunctionDef) and one.name == method:
                    targets = (node for node in ast.walk(one) if isinstance(node, ast.Attribute))
                    return sorted({n.lineno for n in targets if n.attr == attribute and isinstance(n.ctx, ast.Store)})
    return []
