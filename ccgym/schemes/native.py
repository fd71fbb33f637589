"""Schemes of the native registry, and exported policies, which run as the native scheme ``learned``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, explained, shown
from ccgym.schemes import parameter_files, policies
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.registry import NOT_TYPED, POLICY, registry
from ccgym.schemes.scheme import FileScheme, Scheme

OTHERS = "a run directory or FILE.onnx, FILE.py:CLASS, tcp:NAME, quic:NAME, program:NAME"
"""Other forms of schemes, for errors about unknown names."""


class NativeScheme(Scheme):
    """A scheme of ccgym. Before the check, the name can also be the name of a policy."""

    TYPED = "NAME:PARAMETER=VALUE"
    MEANING = "a scheme with parameters, as in cubic:beta=0.5:mode=linux"

    @classmethod
    def claims(cls, name: str) -> bool:
        return True

    def _check(self, where: str) -> Scheme:
        if self.name in registry() and self.name != policies.SCHEME:
            return _accepted(_with_files(self, where), where)
        return _with_policy(self.name, dict(self.params), where)._check(where)

    @property
    def drawn(self) -> tuple[str, str, str]:
        info = registry()[self.name]
        label = str(info["label"])
        if any(parameter["file"] and self.params.get(parameter["name"]) for parameter in info["parameters"]):
            label = label.partition(" (")[0]  # the text in parentheses describes the built-in file
        return label, str(info["color"]), str(info["marker"])

    @property
    def transport(self) -> dict[str, Any]:
        return dict(registry()[self.name]["transport"])

    @property
    def bounded(self) -> bool:
        return bool(registry()[self.name]["capabilities"]["bounded"])


@dataclass(frozen=True)
class PolicyScheme(FileScheme):
    """An exported policy."""

    TYPED = "a run directory or FILE.onnx"
    MEANING = "a learned scheme: a run directory of `ccgym train`, an exported file"

    found: LearnedPolicy | None = field(default=None, repr=False, compare=False)
    """The policy, with the place it was loaded from; the check sets it."""

    @classmethod
    def claims(cls, name: str) -> bool:
        return name == policies.SCHEME

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        # A path can contain a colon, for example in a run named by the time of day.
        if not policies.looks_like_a_path(text):
            return None
        parts = text.split(":")
        first = next((place for place, part in enumerate(parts) if place and "=" in part), len(parts))
        return [":".join(parts[:first]), *parts[first:]]

    def _check(self, where: str) -> Scheme:
        if self.found is not None:
            return _accepted(self, where)
        settings = dict(self.params)
        given = settings.pop(POLICY, None)
        if not isinstance(given, str) or not given:
            raise ConfigError(
                "policy-missing",
                f"{policies.SCHEME} without a policy" if given is None else f"{POLICY} is {shown(given)}",
                where=where,
                expected="the name of a policy, a run directory or a .onnx file",
                hint=f"write the policy itself, as in {next(iter(policies.pretrained()), 'path/to/policy.onnx')}",
            )
        return _accepted(_with_policy(given, settings, where), where)

    @property
    def loaded(self) -> LearnedPolicy:
        return self.found or policies.loaded(str(self.params[POLICY]))

    @property
    def policy(self) -> LearnedPolicy:
        return self.loaded

    @property
    def settings(self) -> Mapping[str, Any]:
        return {name: value for name, value in self.params.items() if name != POLICY}

    @property
    def transport(self) -> dict[str, Any]:
        # Usually `udp`, as in the training, so that observations have the same meaning. In the training there were no
        # handshake, retransmissions and recovery of `tcp`.
        return {"profile": self.loaded.card.profile, "ack_every": self.loaded.card.ack_every}

    @property
    def bounded(self) -> bool:
        return True

    @property
    def identity(self) -> dict[str, Any]:
        return {"params": dict(self.settings), "policy": self.version}


def _with_policy(text: str, settings: dict[str, Any], where: str) -> PolicyScheme:
    """Return the scheme of a policy's name or path."""
    if POLICY in settings:
        raise ConfigError(
            "parameter-invalid",
            f"{shown(text)} with a parameter {POLICY}",
            where=where,
            expected="the policy only as the name of the scheme",
        )
    policy = policies.find(text, where)
    if policy is None:
        names = [name for name in registry() if name != policies.SCHEME] + list(policies.pretrained())
        raise SchemeNotFoundError(
            "unknown-scheme",
            f"there is no scheme {shown(text)}",
            expected=f"one of {', '.join(names)}; or {OTHERS}",
            hint=did_you_mean(text, names, "`ccgym schemes` lists all schemes with their parameters"),
            where=where,
        )
    return PolicyScheme(policies.SCHEME, {POLICY: policy.key, **settings}, policy)


def _accepted(scheme: Scheme, where: str) -> Scheme:
    """Return the scheme, if the native core accepts its parameters."""
    from ccgym import _core

    settings = {name: value for name, value in scheme.native_params.items() if name in scheme.settings}
    try:
        _core.check_scheme(scheme.name, json.dumps(settings))
    except ValueError as error:
        info = registry()[scheme.name]
        names = ", ".join(p["name"] for p in info["parameters"] if scheme.policy is None or p["name"] not in NOT_TYPED)
        title = scheme.title
        refused = explained(ConfigError, error, "parameter-invalid", where=where)
        if refused.code == "unknown-parameter":
            refused.expected = f"parameters of {title}: {names}" if names else f"no parameters: {title} has none"
        if names and not refused.hint:
            refused.hint = f"write parameters as {title}:NAME=VALUE; `ccgym schemes` explains them"
        raise refused from None
    return scheme


def _with_files(scheme: NativeScheme, where: str) -> NativeScheme:
    """Return the scheme with the files of its parameters loaded."""
    names = [
        p["name"] for p in registry()[scheme.name]["parameters"] if p["file"] and scheme.params.get(p["name"], "") != ""
    ]
    if not names:
        return scheme
    read = {
        name: parameter_files.load(scheme.params[name], f"{where} {scheme.name}:{name}".strip()).key for name in names
    }
    return replace(scheme, params={**scheme.params, **read})
