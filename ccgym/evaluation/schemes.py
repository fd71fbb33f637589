"""The registry of congestion-control schemes, seen from Python: names, looks, parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, shown
from ccgym.evaluation.results import SchemeStyle

NOT_COMPARED = ("external", "fixed_")
"""Names, or beginnings of names, of schemes that are tools rather than contestants: left out unless asked for."""


@dataclass(frozen=True)
class SchemeChoice:
    """A scheme with parameters, as a user asked for it: ``fixed_window:cwnd=100``."""

    name: str
    """Name in the registry."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from the defaults."""

    @property
    def key(self) -> str:
        """Its name in files: the registry name, and the parameters where there are any."""
        parts = [self.name, *(f"{name}_{_file_text(value)}" for name, value in self.params.items())]
        return "_".join(parts)

    @property
    def text(self) -> str:
        """What one types to get it."""
        return ":".join([self.name, *(f"{name}={_json_text(value)}" for name, value in self.params.items())])

    @property
    def style(self) -> SchemeStyle:
        """Its label and looks; parameters are part of the label."""
        info = registry()[self.name]
        extra = ", ".join(f"{name} {_json_text(value)}" for name, value in self.params.items())
        label = f"{info['label']} ({extra})" if extra else str(info["label"])
        return SchemeStyle(key=self.key, label=label, colour=str(info["color"]), marker=str(info["marker"]))


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _file_text(value: Any) -> str:
    return "".join(char if char.isalnum() or char in "._" else "_" for char in _json_text(value))


@cache
def registry() -> Mapping[str, Mapping[str, Any]]:
    """All schemes by name: label, colour, marker, reference, summary, parameters, capabilities."""
    from ccgym import _core

    return {entry["name"]: entry for entry in json.loads(_core.schemes())}


def contestants() -> list[SchemeChoice]:
    """Every scheme that is compared by default, with its default parameters."""
    return [SchemeChoice(name) for name in registry() if not name.startswith(NOT_COMPARED)]


def label_of(name: str) -> str:
    """The label of a scheme, or the name itself where it is not ours (published results)."""
    return str(registry()[name]["label"]) if name in registry() else name


def check(choice: SchemeChoice, where: str = "") -> SchemeChoice:
    """Return the choice if the scheme exists and takes these parameters.

    Raises:
        SchemeNotFoundError: No scheme has that name.
        ConfigError: It does not take these parameters.
    """
    from ccgym import _core

    known = registry()
    if choice.name not in known:
        raise SchemeNotFoundError(
            f"no scheme is called {shown(choice.name)}",
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(choice.name, known, "`ccgym schemes` lists them with their parameters"),
            where=where,
        )
    try:
        _core.check_scheme(choice.name, json.dumps(dict(choice.params)))
    except ValueError as error:
        names = ", ".join(parameter["name"] for parameter in known[choice.name]["parameters"])
        raise ConfigError(
            str(error),
            expected=f"parameters of {choice.name}: {names}" if names else f"no parameters: {choice.name} has none",
            hint=f"`ccgym schemes` explains them; write them as {choice.name}:NAME=VALUE" if names else "",
            where=where,
        ) from None
    return choice


def parse_scheme(text: str, where: str = "") -> SchemeChoice:
    """Read ``cubic``, ``fixed_window:cwnd=100`` or ``bbr:a=1:b=2``, and check it against the registry."""
    name, *settings = text.strip().split(":")
    params: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"{shown(setting)} is no parameter of a scheme",
                expected="NAME:PARAMETER=VALUE, as in fixed_window:cwnd=100",
                where=where,
            )
        if key.strip() in params:
            raise ConfigError(f"parameter {shown(key.strip())} is given twice", where=where)
        params[key.strip()] = _value(value.strip())
    return check(SchemeChoice(name.strip(), params), where)


def parse_schemes(text: str, where: str = "") -> list[SchemeChoice]:
    """Read a comma-separated list of schemes; each may occur once."""
    choices = [parse_scheme(part, where) for part in text.split(",") if part.strip()]
    if not choices:
        raise ConfigError(
            f"{shown(text)} names no scheme", expected="names separated by commas, as in cubic,bbr", where=where
        )
    return distinct(choices, where)


def distinct(choices: Sequence[SchemeChoice], where: str = "") -> list[SchemeChoice]:
    """Return the choices if no two of them would write to the same files."""
    seen: dict[str, SchemeChoice] = {}
    for choice in choices:
        if choice.key in seen:
            raise ConfigError(f"{shown(choice.text)} is there twice", expected="each scheme once", where=where)
        seen[choice.key] = choice
    return list(choices)


def _value(text: str) -> Any:
    """A JSON number, true, false or null; anything else is text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, (bool, int, float)) else text
