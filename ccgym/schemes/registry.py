"""The schemes by name, seen from Python: the native registry, learned policies, the kernel's; styles and parameters.

A policy is a scheme under its own name (``aurora``) or under its path; inside, it is the scheme ``learned`` with the
policy as a parameter (:mod:`ccgym.schemes.policies`). The kernel's TCP is ``tcp:NAME``
(:mod:`ccgym.schemes.kernel`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from ccgym.emulation import kernel_tcp
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, shown
from ccgym.schemes import kernel, parameter_files, policies
from ccgym.schemes.parameter_files import ParameterFile
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.style import SchemeStyle

POLICY: Final = "policy"
"""The parameter of the scheme ``learned`` that names its policy."""
_NOT_TYPED: Final = (POLICY, "expert_window")
"""Those of its parameters that one does not set of a policy: its name says the first, and a policy needs no teacher."""

MARKERS: Final = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "p", "h", "*")
"""Markers to choose from where schemes would be drawn alike."""


@dataclass(frozen=True)
class SchemeChoice:
    """A scheme with parameters, as a user asked for it: ``fixed_window:cwnd=100``.

    :func:`check` turns the name of a policy into the scheme ``learned``; until then nothing but its parts is known.
    """

    name: str
    """Name in the registry, or of a policy."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from the defaults."""
    loaded: LearnedPolicy | None = field(default=None, repr=False, compare=False)
    """The policy, with the place that it was loaded from; :func:`check` fills it in."""

    @property
    def policy(self) -> LearnedPolicy | None:
        """The policy that it runs; None where it is not a learned scheme."""
        if self.name != policies.SCHEME or POLICY not in self.params:
            return None
        return self.loaded or policies.loaded(str(self.params[POLICY]))

    @property
    def kernel(self) -> str | None:
        """The kernel's algorithm that it is; None for the schemes that are ours."""
        return kernel.algorithm_of(self.name)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parameters that one types: the policy is not among them, it is the name."""
        if self.name != policies.SCHEME:
            return self.params
        return {name: value for name, value in self.params.items() if name != POLICY}

    @property
    def files(self) -> dict[str, ParameterFile]:
        """Its parameters that are files, by name; :func:`check` has read them."""
        return {
            name: file for name, value in self.params.items() if (file := parameter_files.loaded(value)) is not None
        }

    @property
    def native_params(self) -> dict[str, Any]:
        """The parameters of a checked scheme as the native core takes them: files by their content."""
        return {**self.params, **{name: file.content.hex() for name, file in self.files.items()}}

    @property
    def title(self) -> str:
        """Its name without parameters: that of the registry, or the policy's own."""
        policy = self.policy
        return self.name if policy is None else policy.card.name

    @property
    def key(self) -> str:
        """Its name in files: the registry name, and the parameters where there are any."""
        policy = self.policy
        first = self.name.replace(":", "_") if policy is None else policy.file_key
        return "_".join([first, *(f"{name}_{_file_text(value)}" for name, value in self.settings.items())])

    @property
    def text(self) -> str:
        """What one types to get it."""
        policy = self.policy
        settings = {**self.settings, **{name: file.given for name, file in self.files.items()}}
        return _typed(self.name if policy is None else policy.given, settings)

    @property
    def seed_text(self) -> str:
        """What its runs' random streams depend on: all versions of a policy meet the same losses, and so do
        the kernel's scheme and ours of one name."""
        return _typed(self.kernel or self.title, self.settings)

    @property
    def style(self) -> SchemeStyle:
        """Its label, color and marker; parameters are part of the label."""
        policy = self.policy
        if self.kernel is not None:
            label, (color, marker) = kernel_tcp.label(self.kernel), kernel.color_and_marker(self.kernel)
        elif policy is None:
            info = registry()[self.name]
            label, color, marker = str(info["label"]), str(info["color"]), str(info["marker"])
        else:
            label, color, marker = policy.label, policy.card.color, policy.card.marker
        extra = ", ".join(f"{name} {_json_text(value)}" for name, value in self.settings.items())
        return SchemeStyle(key=self.key, label=f"{label} ({extra})" if extra else label, color=color, marker=marker)


def _typed(name: str, settings: Mapping[str, Any]) -> str:
    return ":".join([name, *(f"{key}={_json_text(value)}" for key, value in settings.items())])


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _file_text(value: Any) -> str:
    return "".join(char if char.isalnum() or char in "._" else "_" for char in _json_text(value))


@cache
def registry() -> Mapping[str, Mapping[str, Any]]:
    """All schemes by name: label, style, reference, summary, parameters, role, status, transport, …"""
    from ccgym import _core

    return {entry["name"]: entry for entry in json.loads(_core.schemes())}


def transport_of(choice: SchemeChoice) -> dict[str, Any]:
    """How a checked scheme is carried where a flow does not say: ``profile``, ``mss``, ``header``, ``initial_window``.

    A learned policy has the profile that its card names, as a rule ``udp``: it was trained over that, so its
    observations mean the same; over ``tcp`` the handshake, retransmissions and recovery would be new to it.
    """
    if choice.policy is not None:
        return {"profile": choice.policy.card.profile}
    return {} if choice.kernel is not None else dict(registry()[choice.name]["transport"])


def compared_schemes(*, real: bool = False) -> list[SchemeChoice]:
    """Every scheme that is compared by default: the classic ones with their default parameters, pretrained policies.

    Args:
        real: Whether packets will be real: then those of the kernel's TCP that are available here come along.
    """
    classic = [SchemeChoice(name) for name, entry in registry().items() if entry["role"] == "default"]
    of_kernel = [SchemeChoice(f"{kernel.PREFIX}{name}") for name in kernel_tcp.available()] if real else []
    return [*classic, *(parse_scheme(name) for name in policies.pretrained()), *of_kernel]


def descriptions() -> list[dict[str, Any]]:
    """Every scheme that one can name, as the registry describes them: the classic ones, then pretrained policies.

    A policy has a further field ``card``, and the parameters that can be set.
    """
    entries = [dict(entry) for entry in registry().values()]
    settable = [p for p in registry().get(policies.SCHEME, {}).get("parameters", []) if p["name"] not in _NOT_TYPED]
    for card in map(policies.read_card, policies.pretrained().values()):
        entries.append(
            {
                "name": card.name,
                "label": card.label,
                "reference": card.reference,
                "summary": card.summary,
                "color": card.color,
                "marker": card.marker,
                "parameters": settable,
                "card": card.model_dump(mode="json"),
            }
        )
    return entries


def check(choice: SchemeChoice, where: str = "") -> SchemeChoice:
    """Return the choice if the scheme exists and takes these parameters; a policy's name becomes ``learned``.

    Raises:
        SchemeNotFoundError: No scheme and no policy has that name.
        ConfigError: It does not take these parameters, or the policy cannot be used.
    """
    from ccgym import _core

    if choice.kernel is not None:
        kernel.check(choice.kernel, choice.params, where)
        return choice
    choice = _with_files(_resolved(choice, where), where)
    settings = {name: value for name, value in choice.native_params.items() if name in choice.settings}
    try:
        _core.check_scheme(choice.name, json.dumps(settings))
    except ValueError as error:
        info = registry()[choice.name]
        names = ", ".join(p["name"] for p in info["parameters"] if choice.policy is None or p["name"] not in _NOT_TYPED)
        title = choice.title
        raise ConfigError(
            str(error),
            expected=f"parameters of {title}: {names}" if names else f"no parameters: {title} has none",
            hint=f"`ccgym schemes` explains them; write them as {title}:NAME=VALUE" if names else "",
            where=where,
        ) from None
    return choice


def _resolved(choice: SchemeChoice, where: str) -> SchemeChoice:
    """The choice by its name in the registry: a policy's name or path becomes ``learned`` with that policy."""
    known = registry()
    if choice.loaded is not None or (choice.name in known and choice.name != policies.SCHEME):
        return choice
    text, settings = choice.name, dict(choice.params)
    if choice.name == policies.SCHEME:
        given = settings.pop(POLICY, None)
        if not isinstance(given, str) or not given:
            raise ConfigError(
                f"{policies.SCHEME} without a policy" if given is None else f"{POLICY} is {shown(given)}",
                where=where,
                expected="the name of a policy, a run directory or a .onnx file",
                hint=f"name the policy itself, as in {next(iter(policies.pretrained()), 'path/to/policy.onnx')}",
            )
        text = given
    elif POLICY in settings:
        raise ConfigError(
            f"{shown(choice.name)} with a parameter {POLICY}",
            where=where,
            expected="the policy as the name of the scheme, and no other",
        )
    policy = policies.find(text, where)
    if policy is None:
        pretrained = list(policies.pretrained())
        names = [name for name in known if name != policies.SCHEME] + pretrained
        raise SchemeNotFoundError(
            f"no scheme is called {shown(text)}",
            expected=f"one of {', '.join(names)}, a run directory or a .onnx file",
            hint=did_you_mean(text, names, "`ccgym schemes` lists them with their parameters"),
            where=where,
        )
    return SchemeChoice(policies.SCHEME, {POLICY: policy.key, **settings}, policy)


def _with_files(choice: SchemeChoice, where: str) -> SchemeChoice:
    """The choice with what is a file read."""
    names = [
        p["name"] for p in registry()[choice.name]["parameters"] if p["file"] and choice.params.get(p["name"], "") != ""
    ]
    if not names:
        return choice
    read = {
        name: parameter_files.load(choice.params[name], f"{where} {choice.name}:{name}".strip()).key for name in names
    }
    return replace(choice, params={**choice.params, **read})


def parse_scheme(text: str, where: str = "") -> SchemeChoice:
    """Read ``cubic``, ``fixed_window:cwnd=100``, ``runs/mine`` or ``aurora:start_rate_mbps=2``, and check it."""
    return check(read_scheme(text, where), where)


def read_scheme(text: str, where: str = "") -> SchemeChoice:
    """Read a scheme with its parameters, whether or not there is such a scheme."""
    name, *settings = _parts(text.strip())
    params: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"{shown(setting)} is not a parameter of a scheme",
                expected="NAME:PARAMETER=VALUE, as in fixed_window:cwnd=100",
                where=where,
            )
        if key.strip() in params:
            raise ConfigError(f"parameter {shown(key.strip())} is given twice", where=where)
        params[key.strip()] = _value(value.strip())
    return SchemeChoice(name.strip(), params)


def _parts(text: str) -> list[str]:
    """Name and settings. A name of the kernel's holds a colon; so may a path, as of a run named by the time of day."""
    parts = text.split(":")
    if text.startswith(kernel.PREFIX):
        return [":".join(parts[:2]), *parts[2:]]
    if policies.looks_like_a_path(text):
        first = next((place for place, part in enumerate(parts) if place and "=" in part), len(parts))
        parts = [":".join(parts[:first]), *parts[first:]]
    return parts


def _value(text: str) -> Any:
    """A JSON number, true, false or null; anything else is text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, (bool, int, float)) else text
