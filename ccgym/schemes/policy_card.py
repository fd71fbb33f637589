"""The card of an exported policy: what it is, what it needs, how it was made, and that it is the right one.

``NAME.json`` lies beside ``NAME.onnx``. The network alone would be a function of anonymous numbers; the card says which
flow agent computes those numbers and what becomes of the answer, with what the network was trained, and how closely it
agrees with the framework that trained it. ``docs/deployment.md`` has the fields.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ccgym.errors import ConfigError, shown
from ccgym.files import UnreadableError, parse_json
from ccgym.schemes.style import check_color, check_label, check_marker, check_text

CARD_FORMAT: Final = 1
"""Version of the card; it rises with any change of meaning."""

NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What a policy may be called: it becomes part of file names and of ``--schemes``."""

Profile: TypeAlias = Literal["tcp", "udp", "ns3"]
"""Transport under a flow."""

PROFILES: Final[tuple[Profile, ...]] = ("tcp", "udp", "ns3")

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class NetworkShape:
    """The sizes of the network's inputs and outputs."""

    kind: Literal["mlp", "lstm"]
    """``lstm`` carries a state from decision to decision."""
    observation_size: int
    """Numbers in."""
    state_size: int
    """Numbers of state; 0 for a network without memory."""
    action_size: int
    """Numbers out: components of the action, or one score per operation of a discrete action."""


@dataclass(frozen=True)
class PolicyCard:
    """What is known about an exported policy."""

    name: str
    """Its name, as in ``--schemes``."""
    label: str
    """Its name in tables and legends."""
    color: str
    """Color: its name in CSS, or ``#rrggbb``."""
    marker: str
    """Matplotlib marker."""
    summary: str
    """One sentence."""
    reference: str
    """The paper, or what else it follows."""
    agent: Mapping[str, Any]
    """The flow agent in the native core's form: clock, observation, action, reward, start-up, guard."""
    policy: NetworkShape
    """Sizes of the network."""
    onnx_sha256: str
    """SHA-256 of the ``.onnx`` file."""
    profile: Profile = "udp"
    """The transport that it was trained over, and that its flows get unless they ask for another."""
    parity: Mapping[str, Any] = field(default_factory=dict)
    """How closely it agrees with the network as trained: episodes, decisions, largest difference, tolerance."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of what exported it."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it was trained: configuration, seed, steps, wall time, machine, commit, curve; empty where unknown."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; :meth:`from_dict` is the inverse."""
        return {"format": CARD_FORMAT, **asdict(self)}

    def to_json(self) -> str:
        """The text of ``NAME.json``; equal cards give equal text."""
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 over all that decides how it behaves: the network, the flow agent and the transport.

        Looks and history do not count: a policy with a new label is the same policy.
        """
        behavior = {"agent": self.agent, "profile": self.profile, "policy": asdict(self.policy)}
        text = json.dumps(behavior, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(f"{self.onnx_sha256}\n{text}".encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str, where: str = "") -> PolicyCard:
        """Read ``NAME.json``.

        Args:
            text: What is in it.
            where: The file, for errors.

        Raises:
            ConfigError: It is no card, or of a newer format than this version of ccgym knows.
        """
        try:
            data = parse_json(text)
        except UnreadableError as error:
            raise ConfigError(f"the card {error}", where=where, hint=_EXPORT_AGAIN) from None
        if not isinstance(data, Mapping):
            raise ConfigError(f"the card is {shown(data)}", where=where, expected="an object", hint=_EXPORT_AGAIN)
        return cls.from_dict(data, where)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "") -> PolicyCard:
        """The inverse of :meth:`as_dict`. Fields that this version does not know are left aside.

        Raises:
            ConfigError: As :meth:`from_json`.
        """
        version = data.get("format")
        if isinstance(version, int) and version > CARD_FORMAT:
            raise ConfigError(
                f"the card has format {version}",
                where=where,
                expected=f"format {CARD_FORMAT} at most",
                hint="a newer ccgym wrote it: install that version, or export the policy with this one",
            )
        if version != CARD_FORMAT:
            raise ConfigError(
                f"format {shown(version)}", where=where, expected=f"format {CARD_FORMAT}", hint=_EXPORT_AGAIN
            )
        texts = {name: _text(data, name, where) for name in _TEXTS}
        if not NAME_PATTERN.fullmatch(texts["name"]):
            raise ConfigError(
                f"a policy called {shown(texts['name'])}", where=where, expected="small letters, digits, . _ and -"
            )
        for name, check in _CHECKS.items():
            try:
                check(texts[name])
            except ConfigError as error:
                raise _wrong(name, texts[name], error.expected, where) from None
        if not _SHA256.fullmatch(texts["onnx_sha256"]):
            raise ConfigError(f"onnx_sha256 {shown(texts['onnx_sha256'])}", where=where, expected="64 hex digits")
        profile = data.get("profile", "udp")
        if profile not in PROFILES:
            raise ConfigError(f"profile {shown(profile)}", where=where, expected=f"one of {', '.join(PROFILES)}")
        return cls(
            **texts,
            agent=_object(data, "agent", where),
            policy=_shape(_object(data, "policy", where), where),
            profile=profile,
            parity=_optional_object(data, "parity", where),
            versions=_versions(data, where),
            training=_training(data, where),
        )


_TEXTS: Final = ("name", "label", "color", "marker", "summary", "reference", "onnx_sha256")
_CHECKS: Final = {
    "label": check_label,
    "color": check_color,
    "marker": check_marker,
    "summary": check_text,
    "reference": check_text,
}
"""What reaches terminals and figures."""
_TRAINING: Final[Mapping[str, tuple[type, ...]]] = {
    "config": (Mapping,),
    "seed": (int,),
    "steps": (int,),
    "wall_s": (int, float),
    "fraction_of_oracle": (int, float),
    "mean_reward": (int, float),
}
"""Types of what ``training`` says, as far as anybody reads it; all of it may be missing."""
_EXPORT_AGAIN: Final = "export the policy again: `ccgym export RUN_DIR`"


def _text(data: Mapping[str, Any], name: str, where: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise _wrong(name, value, "text", where)
    return value


def _object(data: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    value = data.get(name)
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "an object", where)
    return value


def _optional_object(data: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    return {} if data.get(name) is None else _object(data, name, where)


def _versions(data: Mapping[str, Any], where: str) -> Mapping[str, str]:
    versions = _optional_object(data, "versions", where)
    for name, version in versions.items():
        if not isinstance(version, str) or not version.isprintable():
            raise _wrong(f"versions.{name}", version, "printable text", where)
    return versions


def _training(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    training = _optional_object(data, "training", where)
    for name, kinds in _TRAINING.items():
        value = training.get(name)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            expected = "an object" if Mapping in kinds else "a number" if float in kinds else "a whole number"
            raise _wrong(f"training.{name}", value, expected, where)
    return training


def _shape(data: Mapping[str, Any], where: str) -> NetworkShape:
    kind = data.get("kind")
    if kind not in ("mlp", "lstm"):
        raise _wrong("policy.kind", kind, "mlp or lstm", where)
    sizes: dict[str, int] = {}
    for name, least in (("observation_size", 1), ("state_size", 0), ("action_size", 1)):
        value = data.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _wrong(f"policy.{name}", value, f"a whole number, at least {least}", where)
        sizes[name] = value
    return NetworkShape(kind=kind, **sizes)


def _wrong(name: str, value: object, expected: str, where: str) -> ConfigError:
    found = f"the card has no {name}" if value is None else f"{name} is {shown(value)}"
    return ConfigError(found, where=where, expected=expected, hint=_EXPORT_AGAIN)
