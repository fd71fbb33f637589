"""The card of an exported policy: what it is, what it needs, how it was made, and that it is the right one.

``card.json`` belongs to ``policy.onnx``, ``NAME.json`` to any other ``NAME.onnx``. The network alone is a function of
anonymous numbers; the card says which flow agent computes those numbers and what becomes of the answer, how the network
was trained, and how closely it agrees with the framework that trained it. ``docs/guides/deploy.md`` has the fields.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, shown
from ccgym.files import UnreadableError, parse_json
from ccgym.schemes.style import check_color, check_label, check_marker, check_text

CARD_FORMAT: Final = 1
"""Version of the card; it rises with any change of meaning."""

NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What a policy may be called: it becomes part of file names and of ``--schemes``."""

Profile: TypeAlias = Literal["tcp", "udp", "ns3"]
"""Transport under a flow."""

NOT_TRAINED_HERE: Final = "not trained by ccgym"
"""What is said of a policy whose network came from elsewhere."""

_EXPORT_AGAIN: Final = "export the policy again: `ccgym train export RUN_DIR`"


def _check_name(text: str) -> str:
    if not NAME_PATTERN.fullmatch(text):
        raise ConfigError("name-invalid", shown(text), expected="small letters, digits, . _ and -")
    return text


def _check_digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ConfigError("text-malformed", shown(text), expected="64 hex digits")
    return text


def _check_version(text: str) -> str:
    if not text.isprintable():
        raise ConfigError("text-malformed", shown(text), expected="printable text")
    return text


def _or_empty(value: object) -> object:
    return {} if value is None else value


Facts: TypeAlias = Annotated[Mapping[str, Any], BeforeValidator(_or_empty)]
"""Further facts by name; may be missing."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class NetworkShape(_Strict):
    """The sizes of the network's inputs and outputs."""

    kind: Literal["mlp", "lstm", "tree"]
    """``lstm`` carries a state from decision to decision; ``tree`` is a decision tree, no network."""
    observation_size: int = Field(ge=1)
    """Numbers in."""
    state_size: int = Field(ge=0)
    """Numbers of state; 0 for a network without memory."""
    action_size: int = Field(ge=1)
    """Numbers out: components of the action, or one score per operation of a discrete action."""


class _Training(_Strict):
    """What is read of the facts on a training."""

    config: Mapping[str, Any] | None = None
    seed: int | None = None
    steps: int | None = None
    wall_s: float | None = None
    fraction_of_oracle: float | None = None
    mean_reward: float | None = None


class PolicyCard(_Strict):
    """What is known about an exported policy. Fields that this version does not know are ignored."""

    format: Literal[1] = CARD_FORMAT
    """Version of the card."""
    name: Annotated[str, AfterValidator(_check_name)]
    """Its name, as in ``--schemes``."""
    label: Annotated[str, AfterValidator(check_label)]
    """Its name in tables and legends."""
    color: Annotated[str, AfterValidator(check_color)]
    """Color: its name in CSS, or ``#rrggbb``."""
    marker: Annotated[str, AfterValidator(check_marker)]
    """Matplotlib marker."""
    summary: Annotated[str, AfterValidator(check_text)]
    """One sentence."""
    reference: Annotated[str, AfterValidator(check_text)]
    """The paper, or what else it follows."""
    agent: Mapping[str, Any]
    """The flow agent in the native core's form: clock, observation, action, reward, start-up, guard."""
    policy: NetworkShape
    """Sizes of the network."""
    onnx_sha256: Annotated[str, AfterValidator(_check_digest)]
    """SHA-256 of the ``.onnx`` file."""
    profile: Profile = "udp"
    """The transport that it was trained over, and that its flows get unless they ask for another."""
    ack_every: int = Field(default=1, ge=1)
    """Packets per acknowledgement of the receiver that it was trained with. The same."""
    parity: Facts = Field(default_factory=dict)
    """How closely it agrees with the network as trained: episodes, decisions, largest difference, tolerance."""
    certificate: Facts = Field(default_factory=dict)
    """What ``ccgym schemes certificate --write`` found; empty where it was not asked."""
    versions: Annotated[Mapping[str, Annotated[str, AfterValidator(_check_version)]], BeforeValidator(_or_empty)] = (
        Field(default_factory=dict)
    )
    """Versions of what exported it."""
    training: Facts = Field(default_factory=dict)
    """How it was trained: configuration, seed, steps, wall time, machine, commit, curve; empty where unknown."""

    @property
    def trained_here(self) -> bool:
        """Whether it was trained in ccgym's environments, which says on which paths."""
        return "config" in self.training

    def to_json(self) -> str:
        """The text of the card; equal cards give equal text."""
        without = set() if self.certificate else {"certificate"}
        if self.ack_every == 1:
            without.add("ack_every")
        content = self.model_dump(mode="json", exclude=without)
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 over all that decides how it behaves: the network, the flow agent and the transport.

        Style and history do not count: a policy with a new label is the same policy.
        """
        behavior: dict[str, Any] = {"agent": self.agent, "profile": self.profile, "policy": self.policy.model_dump()}
        if self.ack_every != 1:
            behavior["ack_every"] = self.ack_every
        text = json.dumps(behavior, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(f"{self.onnx_sha256}\n{text}".encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str, where: str = "") -> PolicyCard:
        """Read a card.

        Args:
            text: What is in it.
            where: The file, for errors.

        Raises:
            ConfigError: It is not a card, or of a newer format than this version of ccgym knows.
        """
        try:
            data = parse_json(text)
        except UnreadableError as error:
            raise ConfigError("card-invalid", f"the card {error}", where=where, hint=_EXPORT_AGAIN) from None
        if not isinstance(data, Mapping):
            raise ConfigError(
                "card-invalid", f"the card is {shown(data)}", where=where, expected="an object", hint=_EXPORT_AGAIN
            )
        version = data.get("format")
        if version != CARD_FORMAT:
            newer = isinstance(version, int) and version > CARD_FORMAT
            raise ConfigError(
                "policy-version",
                f"the card has format {shown(version)}",
                where=where,
                expected=f"format {CARD_FORMAT}",
                hint="a newer ccgym wrote it: install that version, or export the policy with this one"
                if newer
                else _EXPORT_AGAIN,
            )
        try:
            card = cls.model_validate(data)
        except ValidationError as error:
            raise _refused(config_error(error, cls), "", where) from None
        try:
            _Training.model_validate(card.training)
        except ValidationError as error:
            raise _refused(config_error(error, _Training), "training.", where) from None
        return card


def _refused(error: ConfigError, prefix: str, where: str) -> ConfigError:
    """The error of a field, whose place is the file and the field."""
    place = where if error.code == "key-missing" else f"{where}: {prefix}{error.where}"
    return ConfigError("card-invalid", error.found, where=place, expected=error.expected, hint=_EXPORT_AGAIN)
