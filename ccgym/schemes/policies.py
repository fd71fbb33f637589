"""Exported policies: finding them, loading them, and naming them among the schemes.

A policy is given by the name of a pretrained one (``aurora``), by the directory of a training run, which holds what
``ccgym train export`` made of it, or by a ``.onnx`` file with its card in the same folder. In any case it becomes the
scheme ``learned`` with parameter ``policy``, whose value is *name@version*: the version is the beginning of a hash over
the network and its flow agent, so that two policies of one name are never taken for each other. Neither torch nor onnx
is needed: the native core evaluates the network.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ccgym.emulation.plan import PolicyFiles
from ccgym.errors import ConfigError, explained
from ccgym.files import MAX_MODEL_BYTES, UnreadableError, read_bytes
from ccgym.schemes.policy_card import NOT_TRAINED_HERE, PolicyCard

SCHEME: Final = "learned"
"""The scheme that runs policies."""

POLICY_FILE: Final = "policy.onnx"
CARD_FILE: Final = "card.json"
"""What an agent's folder calls its policy and its card."""

EXPORT_DIRECTORY: Final = "export"
"""Where a run directory keeps what was exported from it."""

MAX_CARD_BYTES: Final = 16 * 2**20
"""Larger cards are refused."""

VERSION_DIGITS: Final = 8
"""Hex digits of a version."""


@dataclass(frozen=True)
class LearnedPolicy:
    """A policy, loaded."""

    card: PolicyCard
    file: Path
    given: str
    """What one types to get it: a name or a path."""
    source: str
    """What tells it from others of its name, such as its run's directory; empty for a pretrained one."""
    native: Any = field(repr=False, compare=False)

    def describe_agent(self) -> dict[str, Any]:
        """What its agent observes and does: see :meth:`ccgym.config.agent.AgentConfig.describe`."""
        from ccgym import _core

        described: dict[str, Any] = json.loads(_core.describe_agent(json.dumps(dict(self.card.agent))))
        return described

    @property
    def title(self) -> str:
        """Its name without version."""
        return self.card.name

    @property
    def digest(self) -> str:
        """Hash of all that decides how it behaves."""
        return self.card.digest

    @property
    def color(self) -> str:
        """Its color in figures."""
        return self.card.color

    @property
    def marker(self) -> str:
        """Its marker in figures."""
        return self.card.marker

    @property
    def version(self) -> str:
        """Beginning of the hash of all that decides how it behaves."""
        return self.card.digest[:VERSION_DIGITS]

    @property
    def key(self) -> str:
        """Its name in specifications of simulations: ``aurora@1f0c22d9``."""
        return f"{self.card.name}@{self.version}"

    @property
    def files(self) -> PolicyFiles:
        """The files that a run process loads it from."""
        return PolicyFiles(onnx=self.file, card=card_file(self.file))

    @property
    def file_key(self) -> str:
        """Its name in files: that of a pretrained policy is its own, others carry their version."""
        return f"{self.card.name}_{self.version}" if self.source else self.card.name

    @property
    def label(self) -> str:
        """Its name in tables and legends."""
        notes = [self.source, "" if self.card.trained_here else NOT_TRAINED_HERE]
        text = ", ".join(filter(None, notes))
        return f"{self.card.label} ({text})" if text else self.card.label

    def provenance(self) -> dict[str, Any]:
        """What results record about it."""
        return {
            "policy": self.key,
            "sha256": self.card.digest,
            "onnx_sha256": self.card.onnx_sha256,
            "file": _place(self.file),
            "profile": self.card.profile,
            "versions": dict(self.card.versions),
        }


def _place(file: Path) -> str:
    """Where a policy is; of one that comes with ccgym its place there, which is the same on every machine."""
    own = pretrained().get(file.parent.name)
    return f"agents/{file.parent.name}/{file.name}" if own is not None and own == file.resolve() else str(file)


_LOADED: Final[dict[str, LearnedPolicy]] = {}
"""Policies of this process by key. The key holds a hash of the content, so that an entry is never out of date; only
the place it came from may be one of several."""


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that is too long, for one
        return False


def pretrained() -> Mapping[str, Path]:
    """The ``.onnx`` files of the policies that come with ccgym, by name: ``agents/NAME/policy.onnx``."""
    agents = (Path(__file__).parents[1] / "_data" / "agents").resolve()
    return {file.parent.name: file for file in sorted(agents.glob(f"*/{POLICY_FILE}"))}


def card_file(policy: Path) -> Path:
    """The card that belongs to a ``.onnx`` file: ``card.json`` of ``policy.onnx``, ``NAME.json`` of ``NAME.onnx``."""
    return policy.with_name(CARD_FILE) if policy.name == POLICY_FILE else policy.with_suffix(".json")


def looks_like_a_path(text: str) -> bool:
    """Whether a text can only be meant as a file or directory."""
    return os.sep in text or "/" in text or text.endswith(".onnx") or text in (".", "..") or text.startswith("~")


def find(text: str, where: str = "") -> LearnedPolicy | None:
    """The policy that a text names, loaded; None where it is neither a pretrained one's name nor a path.

    Args:
        text: A name, *name@version*, a run directory, or a ``.onnx`` file.
        where: The option or argument, for errors.

    Raises:
        ConfigError: There is something, but it cannot be used as a policy; the message says why.
    """
    if text in _LOADED:
        return _LOADED[text]
    name, at, version = text.partition("@")
    if name in (known := pretrained()) and not looks_like_a_path(text):
        policy = load(known[name], given=name, where=where)
        if at and version != policy.version:
            raise ConfigError(
                "policy-version",
                f"version {version} of {name} is not there",
                where=where,
                expected=f"{policy.key}, the one that comes with this ccgym",
                hint="name the file or run directory of the other version",
            )
        return policy
    path = Path(text).expanduser()
    is_directory = _is_directory(path)
    if not looks_like_a_path(text) and not is_directory:
        return None
    if is_directory:
        return _from_directory(path, text, where)
    return load(path, given=text, source=_place_of(path), where=where)


def loaded(key: str) -> LearnedPolicy:
    """The policy with this key: one that this process has loaded, or a pretrained one of this version.

    Raises:
        ConfigError: It is neither.
    """
    policy = find(key)
    if policy is None:
        raise ConfigError(
            "policy-missing",
            f"the policy {key} is not loaded",
            expected="a pretrained policy, or one loaded before",
            hint="give the run directory or .onnx file as the scheme's name",
        )
    return policy


def load(file: Path, *, given: str = "", source: str = "", where: str = "") -> LearnedPolicy:
    """Load a ``.onnx`` file with its card.

    Args:
        file: The ``.onnx`` file.
        given: What one types to get it; by default its path.
        source: What tells it from others of its name.
        where: The option or argument, for errors.

    Raises:
        ConfigError: A file is missing, they do not belong together, or the native core does not understand them.
    """
    try:
        network = read_bytes(file, MAX_MODEL_BYTES)
    except (FileNotFoundError, UnreadableError) as error:
        raise ConfigError(
            "policy-unreadable",
            f"the policy cannot be read: {error.strerror if isinstance(error, OSError) else error}",
            where=_join(where, str(file)),
            expected="an exported policy: a .onnx file with its card, a .json file, in the same folder",
            hint="`ccgym train export RUN_DIR` makes one of a training run",
        ) from None
    card = read_card(file, where)
    found = hashlib.sha256(network).hexdigest()
    if found != card.onnx_sha256:
        raise ConfigError(
            "policy-changed",
            f"the file has SHA-256 {found[:16]}…, its card is of {card.onnx_sha256[:16]}…",
            where=_join(where, str(file)),
            expected="network and card of one export",
            hint="copy both files, or export again: `ccgym train export RUN_DIR`",
        )
    key = f"{card.name}@{card.digest[:VERSION_DIGITS]}"
    known = _LOADED.get(key)
    if known is not None and (known.file, known.card, known.given) == (file, card, given or str(file)):
        return known
    if file.resolve() in {known.resolve() for known in pretrained().values()}:
        source = ""
    elif source == card.name:
        source = key.partition("@")[2]  # its own name would tell it from nothing
    policy = LearnedPolicy(
        card=card, file=file, given=given or str(file), source=source, native=_native(network, card, file, where)
    )
    _LOADED[key] = policy
    return policy


@dataclass(frozen=True)
class PolicyParts:
    """A policy as it travels to another process: by content."""

    network: bytes = field(repr=False)
    """Content of the ``.onnx`` file."""
    card: str = field(repr=False)
    """Its card, JSON."""
    file: Path
    given: str
    source: str

    @classmethod
    def of(cls, policy: LearnedPolicy) -> PolicyParts:
        """The parts of a policy that was loaded.

        Raises:
            ConfigError: Its file was changed meanwhile.
        """
        network = read_bytes(policy.file, MAX_MODEL_BYTES)
        if hashlib.sha256(network).hexdigest() != policy.card.onnx_sha256:
            raise ConfigError(
                "policy-changed",
                "the policy's file was changed since it was loaded",
                where=str(policy.file),
                expected="the same file",
            )
        return cls(network, policy.card.to_json(), policy.file, policy.given, policy.source)


def receive(parts: PolicyParts) -> None:
    """Know a policy that another process has loaded."""
    card = PolicyCard.from_json(parts.card, str(parts.file))
    native = _native(parts.network, card, parts.file, "")
    policy = LearnedPolicy(card=card, file=parts.file, given=parts.given, source=parts.source, native=native)
    _LOADED.setdefault(policy.key, policy)


def from_parts(network: bytes, card: PolicyCard, file: Path) -> LearnedPolicy:
    """A policy that is not on disk yet, as an export has it before it is checked.

    Args:
        network: Content of the ``.onnx`` file.
        card: Its card.
        file: Where it would be.

    Raises:
        ConfigError: The native core does not understand it.
    """
    return LearnedPolicy(
        card=card, file=file, given=str(file), source=card.digest[:VERSION_DIGITS],
        native=_native(network, card, file, ""),
    )  # fmt: skip


def _native(network: bytes, card: PolicyCard, file: Path, where: str) -> Any:
    """The native core's form of a policy."""
    from ccgym import _core

    try:
        return _core.Policy.load(network, card.to_json())
    except ValueError as error:
        raise explained(ConfigError, error, "policy-unreadable", where=_join(where, str(file))) from None


def read_card(file: Path, where: str = "") -> PolicyCard:
    """The card of a ``.onnx`` file.

    Raises:
        ConfigError: It is missing, or is not a card.
    """
    card = card_file(file)
    try:
        text = read_bytes(card, MAX_CARD_BYTES).decode()
    except FileNotFoundError:
        raise ConfigError(
            "card-missing",
            f"{file.name} has no card",
            where=_join(where, str(card)),
            expected=f"{card.name}, its card, in the same folder; it says what the network's numbers mean",
            hint="copy both files of the export, or export again: `ccgym train export RUN_DIR`",
        ) from None
    except UnreadableError as error:
        raise ConfigError("card-invalid", f"the card cannot be read: {error}", where=_join(where, str(card))) from None
    except UnicodeDecodeError:
        raise ConfigError(
            "card-invalid", "the card cannot be read: it is not UTF-8", where=_join(where, str(card))
        ) from None
    return PolicyCard.from_json(text, _join(where, str(card)))


def _from_directory(directory: Path, text: str, where: str) -> LearnedPolicy:
    """The exported policy of a run directory, or of the export directory itself."""
    files = sorted((directory / EXPORT_DIRECTORY).glob("*.onnx")) or sorted(directory.glob("*.onnx"))
    if not files:
        raise ConfigError(
            "policy-missing",
            "no policy was exported from this run",
            where=_join(where, str(directory)),
            expected=f"{EXPORT_DIRECTORY}/NAME.onnx with its card",
            hint=f"run `ccgym train export {text}` first",
        )
    if len(files) > 1:
        raise ConfigError(
            "policy-ambiguous",
            f"several exported policies: {', '.join(file.name for file in files)}",
            where=_join(where, str(directory)),
            expected="one",
            hint=f"name the file, as in {files[0]}",
        )
    policy = load(files[0], given=text, source=_place_of(files[0]), where=where)
    _refuse_stale(directory, policy, text, where)
    return policy


def _refuse_stale(directory: Path, policy: LearnedPolicy, text: str, where: str) -> None:
    """Raise if the run has a newer checkpoint than the one that was exported."""
    exported = policy.card.training.get("checkpoint")
    if not isinstance(exported, Mapping) or not isinstance(exported.get("file"), str):
        return
    checkpoint = directory / str(exported["file"])
    try:
        digest = hashlib.sha256(read_bytes(checkpoint, MAX_MODEL_BYTES)).hexdigest()
    except (FileNotFoundError, UnreadableError):
        return
    if digest == exported.get("sha256"):
        return
    raise ConfigError(
        "policy-stale",
        f"{policy.file.name} was exported from an older {checkpoint.name}",
        where=_join(where, str(directory)),
        expected="the export of the checkpoint that is there now",
        hint=f"run `ccgym train export {text}` again; to evaluate the older one, name its file: {policy.file}",
    )


def _place_of(file: Path) -> str:
    """What to call the place of a ``.onnx`` file: its run's directory, or the file itself."""
    folder = file.resolve().parent
    if folder.name == EXPORT_DIRECTORY:
        return folder.parent.name or file.stem
    return folder.name if file.name == POLICY_FILE else file.stem


def _join(where: str, place: str) -> str:
    return f"{where}: {place}" if where else place
