"""What a site reads of results: documents are sent around, and names in them become files of the site."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import AfterValidator, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.results_file import damaged
from ccgym.experiments.outcome import Verdict
from ccgym.report.style import page_colors

_NAME: Final = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,119}")


def _file_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError("expected: a name of at most 120 characters without '/' and without a dot at its beginning")
    return name


def _inside(path: str) -> str:
    for part in path.split("/"):
        _file_name(part)
    return path


def _color(color: str) -> str:
    page_colors(color)
    return color


def _words(command: str) -> str:
    shlex.split(command)
    return command


def _backend(name: str) -> str:
    if name not in PLACES:
        raise ValueError(f"expected: one of {', '.join(PLACES)}")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]


class _Versions(TypedDict):
    ccgym: str


class _Provenance(TypedDict):
    path: str
    backend: Annotated[str, AfterValidator(_backend)]
    versions: _Versions
    command: NotRequired[Annotated[str, AfterValidator(_words)] | None]
    started: NotRequired[str | None]
    system: NotRequired[str | None]


class _Parameters(TypedDict):
    schemes: list[str]
    seed: NotRequired[int | None]


class _Scheme(TypedDict):
    key: FileName
    label: str
    color: Annotated[str, AfterValidator(_color)]
    marker: str


class _Metric(TypedDict):
    key: str
    label: str
    unit: str
    better: str | None


class _Test(TypedDict):
    name: FileName
    title: str
    question: str
    setting: str
    threshold: str
    brief: str
    source: str
    metrics: list[_Metric]


class _Spread(TypedDict):
    mean: float | None
    std: float | None
    count: int


class _Condition(TypedDict):
    key: str
    at: dict[str, Any]
    metrics: dict[str, _Spread]
    identical: NotRequired[bool]


class _Run(TypedDict):
    condition: str
    run: int
    seed: int | str | None
    trajectory: str | None
    values: dict[str, float | None]
    kept: NotRequired[Annotated[str, AfterValidator(_inside)] | None]


class _Criterion(TypedDict):
    passed: bool | None
    group: str


class _Outcome(TypedDict):
    test: str
    scheme: str
    verdict: Verdict
    headline: str
    criteria: list[_Criterion]
    conditions: list[_Condition]
    runs: list[_Run]


class _Experiments(TypedDict):
    name: FileName
    provenance: _Provenance
    parameters: _Parameters
    schemes: list[_Scheme]
    tests: list[_Test]
    outcomes: list[_Outcome]


class _Score(TypedDict):
    mean: float


class _Place(TypedDict):
    scheme: str
    reference: bool
    score: _Score


class _Report(TypedDict):
    provenance: _Provenance
    name: NotRequired[FileName]
    schemes: NotRequired[list[dict[str, Any] | str]]
    rankings: NotRequired[dict[str, list[_Place]]]


_SHAPES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "experiments": TypeAdapter(_Experiments),
    "report": TypeAdapter(_Report),
}


def check_document(document: Mapping[str, Any], kind: Literal["experiments", "report"], file: Path) -> None:
    """Raise :class:`ResultsError` where a document of results lacks what a site shows of it, or has it otherwise."""
    try:
        _SHAPES[kind].validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise damaged(file, f"{place}: {first['msg'][:500]}") from None
    if kind == "experiments" and len(document["parameters"]["schemes"]) != len(document["schemes"]):
        raise damaged(file, "parameters.schemes: another number of schemes than in schemes")
