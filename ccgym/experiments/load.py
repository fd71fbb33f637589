"""Loading of experiments: a YAML file, or a name in ``configs/experiments``.

An experiment with placeholders is expanded once as a check, so that mistakes are reported with their line before any
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from ccgym.config.configurations import find_config
from ccgym.config.yaml_loader import Loaded, load_yaml, validate
from ccgym.errors import ConfigError, PlatformError, shown
from ccgym.experiments.expand import check
from ccgym.experiments.gap_spec import GapSpec
from ccgym.experiments.scorecard_spec import ScorecardSpec
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec, merged

FOLDERS: Final = ("experiments",)
"""Folders in ``configs`` with experiments by name."""

COMPARISONS: Final[Mapping[str, type[ScorecardSpec] | type[GapSpec]]] = {"scorecard": ScorecardSpec, "gap": GapSpec}
"""Models of files with a ``kind``."""

_Spec = TypeVar("_Spec", bound=BaseModel)


def load_experiment(
    given: str | Path, *, quick: bool = False, where: str = "--experiment"
) -> ExperimentSet | ScorecardSpec | GapSpec:
    """Read an experiment, a file that includes several, a scorecard or a gap.

    Args:
        given: A YAML file, or the name of a file in ``configs/experiments``.
        quick: Whether to apply the changes of ``quick``.
        where: The option or argument, for errors.

    Raises:
        ConfigError: A file has a mistake; with file, line and key.
        NotFoundError: There is no such file.
    """
    file = find_config(given, where, FOLDERS)
    loaded = _mapping(load_yaml(file))
    if loaded.data.get("kind") == "catalogue":
        raise ConfigError(
            "unsupported",
            f"{file.name} is a catalogue",
            where=where,
            expected="an experiment",
            hint="run it with `ccgym benchmark`",
        )
    comparison = COMPARISONS.get(str(loaded.data.get("kind")))
    if comparison is not None:
        return _variant(loaded, comparison, file.stem, quick)
    if "include" in loaded.data or "rows" in loaded.data:
        found = validate(loaded, ExperimentSet)
        experiments: list[ExperimentSpec] = []
        left_out: list[str] = []
        for included in found.include:
            part = _mapping(load_yaml(file.parent / included))
            try:
                experiments.append(_experiment(part, Path(included).stem, quick))
            except PlatformError as error:
                if part.data.get("optional") is not True:
                    raise
                left_out.append(f"{part.data['title']}: left out, {error}")
        if len({made.games is None for made in experiments}) > 1:
            raise ConfigError(
                "unsupported",
                "experiments with and without games",
                expected="all with games, or none",
                where=f"{file}: include",
            )
        return found.model_copy(
            update={"name": file.stem, "experiments": tuple(experiments), "left_out": tuple(left_out)}
        )
    one = _experiment(loaded, file.stem, quick)
    return ExperimentSet(title=one.title, include=(file.name,), name=file.stem, experiments=(one,))


def _mapping(loaded: Loaded) -> Loaded:
    if not isinstance(loaded.data, dict):
        raise ConfigError("not-a-mapping", shown(loaded.data), expected="keys and values", where=loaded.source)
    return loaded


def _experiment(loaded: Loaded, name: str, quick: bool) -> ExperimentSpec:
    # Both forms, with and without ``quick``, are checked, no matter which is requested.
    for variant in (not quick, quick):
        experiment = _variant(loaded, ExperimentSpec, name, variant)
        check(experiment, loaded)
    return experiment


def _variant(loaded: Loaded, model: type[_Spec], name: str, quick: bool) -> _Spec:
    data: dict[str, Any] = {"name": name, **loaded.data}
    changes = data.get("quick")
    if quick and isinstance(changes, Mapping):
        data = merged({key: value for key, value in data.items() if key != "quick"}, changes)
    return validate(Loaded(data, loaded.lines, loaded.source), model)
