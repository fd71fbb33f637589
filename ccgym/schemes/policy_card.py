"""The card of an exported policy: its description, agent, training, and the checksum of its network.

``card.json`` belongs to ``policy.onnx``, ``NAME.json`` to every other ``NAME.onnx``. The network alone is a function of
numbers without names. The card contains the flow agent, which computes the inputs and applies the outputs; facts about
the training; and the differences to the trained network. ``docs/guides/deploy.md`` lists the fields.
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
"""Version of the card; every change of its meaning increases the version."""

NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""Pattern of names of policies, which are part of file names and of ``--schemes``."""

Profile: TypeAlias = Literal["tcp", "udp", "ns3"]
"""Transport of a flow."""

NOT_TRAINED_HERE: Final = "not trained by ccgym"
"""Note for a policy whose network was trained outside ccgym."""

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
"""Further facts by name; optional."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class NetworkShape(_Strict):
    """The sizes of the network's inputs and outputs."""

    kind: Literal["mlp", "lstm", "tree"]
    """``lstm`` keeps a state between decisions; ``tree`` is a decision tree, not a network."""
    observation_size: int = Field(ge=1)
    """Number of inputs."""
    state_size: int = Field(ge=0)
    """Numbers in the recurrent state; 0 if the network has no state."""
    action_size: int = Field(ge=1)
    """Number of outputs: components of the action, or one score per operation of a discrete action."""


class _Training(_Strict):
    """The facts about a training that ccgym reads."""

    config: Mapping[str, Any] | None = None
    seed: int | None = None
    steps: int | None = None
    wall_s: float | None = None
    fraction_of_oracle: float | None = None
    mean_reward: float | None = None


class PolicyCard(_Strict):
    """Information about an exported policy. Unknown fields are ignored."""

    format: Literal[1] = CARD_FORMAT
    """Version of the card."""
    name: Annotated[str, AfterValidator(_check_name)]
    """Name, as in ``--schemes``."""
    label: Annotated[str, AfterValidator(check_label)]
    """Name in tables and legends."""
    color: Annotated[str, AfterValidator(check_color)]
    """Color: a name of CSS, or ``#rrggbb``."""
    marker: Annotated[str, AfterValidator(check_marker)]
    """Matplotlib marker."""
    summary: Annotated[str, AfterValidator(check_text)]
    """One sentence."""
    reference: Annotated[str, AfterValidator(check_text)]
    """The paper or other source of the policy."""
    agent: Mapping[str, Any]
    """The flow agent in the native core's form: clock, observation, action, reward, start-up, guard."""
    policy: NetworkShape
    """Sizes of the network."""
    onnx_sha256: Annotated[str, AfterValidator(_check_digest)]
    """SHA-256 of the ``.onnx`` file."""
    profile: Profile = "udp"
    """Transport in the training, and the default transport of its flows."""
    ack_every: int = Field(default=1, ge=1)
    """Packets per ACK of the receiver in the training, and the default for its flows."""
    parity: Facts = Field(default_factory=dict)
    """Agreement with the trained network: episodes, decisions, largest difference, tolerance."""
    certificate: Facts = Field(default_factory=dict)
    """Result of ``ccgym schemes certificate --write``; empty if the command was not run."""
    versions: Annotated[Mapping[str, Annotated[str, AfterValidator(_check_version)]], BeforeValidator(_or_empty)] = (
        Field(default_factory=dict)
    )
    """Versions of the software that exported the policy."""
    training: Facts = Field(default_factory=dict)
    """Facts about the training: configuration, seed, steps, wall time, machine, commit, curve; empty if unknown."""

    @property
    def trained_here(self) -> bool:
        """Whether the policy was trained in ccgym's environments, so that its training paths are known."""
        return "config" in self.training

    def to_json(self) -> str:
        """Return the text of the card; equal cards have equal text."""
        without = set() if self.certificate else {"certificate"}
        if self.ack_every == 1:
            without.add("ack_every")
        content = self.model_dump(mode="json", exclude=without)
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 over everything that decides the behavior: the network, the flow agent and the transport.

        Style and training facts are not included: a policy with a new label is the same policy.
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
            text: Content of the card.
            where: The file, for errors.

        Raises:
            ConfigError: The text is not a card, or has a newer format than this version of ccgym supports.
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
                hint="install the newer ccgym that wrote the card, or export the policy with this version"
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
    """Return the error of a field, with file and field as its place."""
    place = where if error.code == "key-missing" else f"{where}: {prefix}{error.where}"
    return ConfigError("card-invalid", error.found, where=place, expected=error.expected, hint=_EXPORT_AGAIN)
