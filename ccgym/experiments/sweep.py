"""``--sweep NAME=A,B,C``: an experiment over a varied path, or an experiment with other values.

The result is an :class:`~ccgym.experiments.spec.ExperimentSet`, as if it was written in YAML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ccgym.config.mahimahi import looks_like_mahimahi
from ccgym.config.path import NetworkPath
from ccgym.config.path_arguments import CHANGES
from ccgym.config.yaml_loader import Loaded, load_yaml, validate
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.expand import PATH, check, conditions
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec
from ccgym.units import format_time

Values: TypeAlias = Mapping[str, Sequence[str | float]]
"""Varied values by name, in the order of the command."""

RUNTIME: Final = "runtime"
"""Name of the length of a run."""
INTERVAL: Final = "interval"
"""Name of the time between the starts of flows."""

METRICS: Final = ("throughput", "delay_p95", "loss", "utilization")
"""Metrics of a sweep over a path: the numbers of Pantheon's table."""

_OPTION: Final = "--sweep"
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def parse_sweeps(given: Iterable[str]) -> dict[str, list[str | float]]:
    """Read texts such as ``rtt=20ms,40ms``.

    Raises:
        ConfigError: A text has another form, or a name occurs twice.
    """
    found: dict[str, list[str | float]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        parts = [part.strip() for part in values.split(",")]
        if not equals or not _NAME.fullmatch(name.strip()) or not all(parts):
            raise ConfigError(
                "text-malformed",
                shown(text),
                where=_OPTION,
                expected="NAME=A,B,C, as in rtt=20ms,40ms,80ms or loss=0%,1%",
            )
        if name.strip() in found:
            raise ConfigError(
                "duplicate", f"{name.strip()} twice", where=_OPTION, expected="each name once, with all its values"
            )
        repeated = [part for place, part in enumerate(parts) if part in parts[:place]]
        if repeated:
            raise ConfigError(
                "duplicate", f"{name.strip()}={repeated[0]} twice", where=_OPTION, expected="each value once"
            )
        found[name.strip()] = [_value(part) for part in parts]
    return found


def _value(text: str) -> str | float:
    """Return a plain number, or the text with its unit."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and text.lstrip("+-").isdecimal() else number


def swept_path(
    path: str | None,
    sweeps: Values,
    *,
    name: str,
    schemes: Sequence[str],
    runs: int = 5,
    runtime_ns: int = 30_000_000_000,
    flows: int = 1,
    interval_ns: int = 0,
) -> ExperimentSet:
    """Return an experiment over a varied path: every combination of values is a condition for all schemes.

    Args:
        path: A name, a mahimahi command line, a YAML or a trace file; None if ``path`` is varied.
        sweeps: Varied values: changes of a path (:data:`~ccgym.config.path_arguments.CHANGES`), ``path``,
            ``runtime``, ``interval``, and every ``$NAME`` in a mahimahi command line or a YAML file.
        name: Name of the experiment in files.
        schemes: Tested schemes if the command names none.
        runs: Number of repetitions of every condition.
        runtime_ns: Length of a run, nanoseconds.
        flows: Number of starts of a scheme's flows in a run.
        interval_ns: Time between these starts, nanoseconds.

    Raises:
        CcgymError: The path cannot be read, a name cannot be varied, or a value does not fit.
    """
    paths = [path] if path is not None else [str(value) for value in sweeps.get(PATH, ())]
    described = [_described(one, sweeps) for one in paths]
    known = [*CHANGES, RUNTIME, INTERVAL, *(() if path is not None else (PATH,))]
    for one in sweeps:
        if one not in known and not all(_has_placeholder(raw, one) for raw in described):
            raise ConfigError(
                "unknown-name",
                f"nothing here is called {shown(one)}",
                where=_OPTION,
                expected=f"{', '.join(known)}, or a name that the path contains as ${one}",
                hint=did_you_mean(one, known),
            )
    starts = [{"start": f"$({place} * {INTERVAL})"} if place else {} for place in range(flows)]
    # A figure shows at most three: the first along its axis, the second over its panels, the third as line styles.
    order = sorted(sweeps, key=lambda key: key == PATH)
    axes = dict(zip(("x", "columns", "lines"), order, strict=False))
    data = {
        "name": name,
        "title": f"{_title(paths[0]) if path is not None else 'Paths'} with {' and '.join(sweeps)} varied",
        "sweep": {key: list(values) for key, values in sweeps.items() if key != PATH},
        "parameters": {} if INTERVAL in sweeps else {INTERVAL: format_time(interval_ns)},
        "flows": [{"scheme": "$scheme", **start} for start in starts],
        "duration": f"${RUNTIME}" if RUNTIME in sweeps else format_time(runtime_ns),
        "schemes": list(schemes),
        "runs": runs,
        "metrics": {key: {} for key in METRICS},
        "compare": True,
        "figures": [{"sweep": {**axes, "rows": [{"metric": key} for key in METRICS[:3]]}}],
        **({"path": described[0]} if path is not None else {"paths": dict(zip(paths, described, strict=True))}),
    }
    loaded = Loaded(data, {}, _OPTION)
    experiment = validate(loaded, ExperimentSpec)
    check(experiment, loaded)
    return ExperimentSet(title=experiment.title, include=(name,), name=name, experiments=(experiment,))


def _title(path: str) -> str:
    return "A path" if looks_like_mahimahi(path) else os.path.basename(path)


def _described(path: str, sweeps: Values) -> Any:
    """Return a path as in the YAML of an experiment, with placeholders for the varied values."""
    if looks_like_mahimahi(path):
        whole: dict[str, Any] = {"mahimahi": path}
    elif path.endswith((".yaml", ".yml")):
        read = load_yaml(path).data
        whole = dict(read) if isinstance(read, Mapping) else {"named": read}
    else:
        found = NetworkPath.from_any(path)
        named = found.name in NetworkPath.names() and NetworkPath.named(str(found.name)).chain == found.chain
        whole = {"named": found.name} if named else {"chain": list(found.chain), "name": found.name}
    changes = {key: f"${key}" for key in sweeps if key in CHANGES and not _has_placeholder(whole, key)}
    if {"rate", "trace"} & changes.keys() and {"rate", "trace"} & whole.keys():
        whole = {key: value for key, value in whole.items() if key not in ("rate", "trace")}
    return {**whole, **changes}


def _has_placeholder(raw: Any, name: str) -> bool:
    """Return whether a path contains a placeholder with this name."""
    if isinstance(raw, Mapping):
        return any(_has_placeholder(value, name) for value in raw.values())
    if isinstance(raw, (list, tuple)):
        return any(_has_placeholder(value, name) for value in raw)
    return isinstance(raw, str) and re.search(rf"\$(?:{name}\b|\([^$]*\b{name}\b)", raw) is not None


def with_sweeps(source: ExperimentSet, sweeps: Values) -> ExperimentSet:
    """Return the experiments with other values for a sweep, a parameter, or the duration.

    Raises:
        CcgymError: No experiment has this name, or a value does not fit.
    """
    changed = tuple(_with_values(one, sweeps) for one in source.experiments)
    known = sorted({name for one in source.experiments for name in _names(one)})
    for name in sweeps:
        if name not in known:
            raise ConfigError(
                "unknown-name",
                f"nothing in {source.name} is called {shown(name)}",
                where=_OPTION,
                expected=", ".join(known) or "an experiment with named values",
                hint=did_you_mean(name, known),
            )
    for one in changed:
        check(one, Loaded({}, {}, _OPTION))
    return source.model_copy(update={"name": "-".join([source.name, *sweeps]), "experiments": changed})


def _names(experiment: ExperimentSpec) -> list[str]:
    parts = experiment.parts().values()
    return [*(name for part in parts for name in (*part.sweep, *part.parameters) if "," not in name), "duration"]


def _with_values(experiment: ExperimentSpec, sweeps: Values) -> ExperimentSpec:
    own = {name: list(values) for name, values in sweeps.items() if name in _names(experiment)}
    if not own:
        return experiment
    data = experiment.model_dump(include={"sweep", "parameters", "scenarios", "duration"}, exclude_unset=True)
    places = [data, *data.get("scenarios", {}).values()]
    for name, values in own.items():
        if name == "duration":
            data["duration"], name = f"${RUNTIME}", RUNTIME
        held = [place for place in places if name in place.get("sweep", ()) or name in place.get("parameters", ())]
        for place in held or [data]:
            place["parameters"] = {key: value for key, value in place.get("parameters", {}).items() if key != name}
            place["sweep"] = {**place.get("sweep", {}), name: values}
    changed = experiment.model_copy(update=data)
    conditions(changed)
    return changed
