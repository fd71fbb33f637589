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
    colour: str
    """Matplotlib colour."""
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
        behaviour = {"agent": self.agent, "profile": self.profile, "policy": asdict(self.policy)}
        text = json.dumps(behaviour, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
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
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"the card is no JSON: {error}", where=where, hint=_EXPORT_AGAIN) from None
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
            parity=data.get("parity") or {},
            versions=data.get("versions") or {},
            training=data.get("training") or {},
        )


_TEXTS: Final = ("name", "label", "colour", "marker", "summary", "reference", "onnx_sha256")
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
