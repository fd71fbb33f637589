"""Exported policies: search, loading, and their names as schemes.

A policy is given by the name of a pretrained policy (``aurora``), by the directory of a training run with the result of
``ccgym train export``, or by a ``.onnx`` file with its card in the same folder. In all cases it becomes the
scheme ``learned`` with the parameter ``policy``. Its value is *name@version*. The version is the beginning of a hash
over the network and its flow agent, so two policies of the same name are always different. Neither torch nor onnx is
needed: the native core evaluates the network.
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
"""Names of the policy and its card in an agent's folder."""

EXPORT_DIRECTORY: Final = "export"
"""Folder of exported policies in a run directory."""

MAX_CARD_BYTES: Final = 16 * 2**20
"""Max size of a card, bytes."""

VERSION_DIGITS: Final = 8
"""Hex digits of a version."""


@dataclass(frozen=True)
class LearnedPolicy:
    """A loaded policy."""

    card: PolicyCard
    file: Path
    given: str
    """Name or path as typed by the user."""
    source: str
    """Text that distinguishes policies of the same name, such as the run's directory; empty if pretrained."""
    native: Any = field(repr=False, compare=False)

    def describe_agent(self) -> dict[str, Any]:
        """Describe the agent; see :meth:`ccgym.config.agent.AgentConfig.describe`."""
        from ccgym import _core

        described: dict[str, Any] = json.loads(_core.describe_agent(json.dumps(dict(self.card.agent))))
        return described

    @property
    def title(self) -> str:
        """Name without version."""
        return self.card.name

    @property
    def digest(self) -> str:
        """Hash of everything that decides the behavior of the policy."""
        return self.card.digest

    @property
    def color(self) -> str:
        """Color in figures."""
        return self.card.color

    @property
    def marker(self) -> str:
        """Marker in figures."""
        return self.card.marker

    @property
    def version(self) -> str:
        """Beginning of :attr:`digest`."""
        return self.card.digest[:VERSION_DIGITS]

    @property
    def key(self) -> str:
        """Name in specifications of simulations: ``aurora@1f0c22d9``."""
        return f"{self.card.name}@{self.version}"

    @property
    def files(self) -> PolicyFiles:
        """The files from which a run process loads the policy."""
        return PolicyFiles(onnx=self.file, card=card_file(self.file))

    @property
    def file_key(self) -> str:
        """Name in file names: for a pretrained policy, its name; for others, name and version."""
        return f"{self.card.name}_{self.version}" if self.source else self.card.name

    @property
    def label(self) -> str:
        """Name in tables and legends."""
        notes = [self.source, "" if self.card.trained_here else NOT_TRAINED_HERE]
        text = ", ".join(filter(None, notes))
        return f"{self.card.label} ({text})" if text else self.card.label

    def provenance(self) -> dict[str, Any]:
        """Return the facts about the policy that results record."""
        return {
            "policy": self.key,
            "sha256": self.card.digest,
            "onnx_sha256": self.card.onnx_sha256,
            "file": _place(self.file),
            "profile": self.card.profile,
            "versions": dict(self.card.versions),
        }


def _place(file: Path) -> str:
    """Return the path of a policy; for policies included in ccgym, a path that is equal on every machine."""
    own = pretrained().get(file.parent.name)
    return f"agents/{file.parent.name}/{file.name}" if own is not None and own == file.resolve() else str(file)


_LOADED: Final[dict[str, LearnedPolicy]] = {}
"""Policies of this process by key. The key contains a hash of the content, so an entry is never out of date. Only its
file can be one of several equal files."""


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # for example, a name that is too long
        return False


def pretrained() -> Mapping[str, Path]:
    """Return the ``.onnx`` files of the policies included in ccgym, by name: ``agents/NAME/policy.onnx``."""
    agents = (Path(__file__).parents[1] / "_data" / "agents").resolve()
    return {file.parent.name: file for file in sorted(agents.glob(f"*/{POLICY_FILE}"))}


def card_file(policy: Path) -> Path:
    """Return the card of a ``.onnx`` file: ``card.json`` for ``policy.onnx``, ``NAME.json`` for ``NAME.onnx``."""
    return policy.with_name(CARD_FILE) if policy.name == POLICY_FILE else policy.with_suffix(".json")


def looks_like_a_path(text: str) -> bool:
    """Return whether a text can only be a file or directory."""
    return os.sep in text or "/" in text or text.endswith(".onnx") or text in (".", "..") or text.startswith("~")


def find(text: str, where: str = "") -> LearnedPolicy | None:
    """Find and load a policy; return ``None`` if the text is neither the name of a pretrained policy nor a path.

    Args:
        text: A name, *name@version*, a run directory, or a ``.onnx`` file.
        where: The option or argument, for errors.

    Raises:
        ConfigError: The file exists but is not a usable policy; the message contains the reason.
    """
    if text in _LOADED:
        return _LOADED[text]
    name, at, version = text.partition("@")
    if name in (known := pretrained()) and not looks_like_a_path(text):
        policy = load(known[name], given=name, where=where)
        if at and version != policy.version:
            raise ConfigError(
                "policy-version",
                f"version {version} of {name} is not available",
                where=where,
                expected=f"{policy.key}, the version in this ccgym",
                hint="give the file or run directory of the other version",
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
    """Return the policy with this key: a policy loaded by this process, or a pretrained policy of this version.

    Raises:
        ConfigError: There is no such policy.
    """
    policy = find(key)
    if policy is None:
        raise ConfigError(
            "policy-missing",
            f"the policy {key} is not loaded",
            expected="a pretrained policy, or a policy loaded before",
            hint="give the run directory or .onnx file as the scheme's name",
        )
    return policy


def load(file: Path, *, given: str = "", source: str = "", where: str = "") -> LearnedPolicy:
    """Load a ``.onnx`` file with its card.

    Args:
        file: The ``.onnx`` file.
        given: Name or path as typed by the user. Default: the path.
        source: Text that distinguishes policies of the same name.
        where: The option or argument, for errors.

    Raises:
        ConfigError: A file is missing, the files do not belong together, or the native core refuses them.
    """
    try:
        network = read_bytes(file, MAX_MODEL_BYTES)
    except (FileNotFoundError, UnreadableError) as error:
        raise ConfigError(
            "policy-unreadable",
            f"the policy cannot be read: {error.strerror if isinstance(error, OSError) else error}",
            where=_join(where, str(file)),
            expected="an exported policy: a .onnx file with its card, a .json file, in the same folder",
            hint="export a policy from a training run with `ccgym train export RUN_DIR`",
        ) from None
    card = read_card(file, where)
    found = hashlib.sha256(network).hexdigest()
    if found != card.onnx_sha256:
        raise ConfigError(
            "policy-changed",
            f"the file has SHA-256 {found[:16]}…, but its card has {card.onnx_sha256[:16]}…",
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
        source = key.partition("@")[2]  # its own name would not distinguish it
    policy = LearnedPolicy(
        card=card, file=file, given=given or str(file), source=source, native=_native(network, card, file, where)
    )
    _LOADED[key] = policy
    return policy


@dataclass(frozen=True)
class PolicyParts:
    """A policy in the form that is sent to another process: by content."""

    network: bytes = field(repr=False)
    """Content of the ``.onnx`` file."""
    card: str = field(repr=False)
    """Its card, JSON."""
    file: Path
    given: str
    source: str

    @classmethod
    def of(cls, policy: LearnedPolicy) -> PolicyParts:
        """Return the parts of a loaded policy.

        Raises:
            ConfigError: The file has changed since it was loaded.
        """
        network = read_bytes(policy.file, MAX_MODEL_BYTES)
        if hashlib.sha256(network).hexdigest() != policy.card.onnx_sha256:
            raise ConfigError(
                "policy-changed",
                "the policy's file has changed since it was loaded",
                where=str(policy.file),
                expected="an unchanged file",
            )
        return cls(network, policy.card.to_json(), policy.file, policy.given, policy.source)


def receive(parts: PolicyParts) -> None:
    """Add a policy that another process has loaded."""
    card = PolicyCard.from_json(parts.card, str(parts.file))
    native = _native(parts.network, card, parts.file, "")
    policy = LearnedPolicy(card=card, file=parts.file, given=parts.given, source=parts.source, native=native)
    _LOADED.setdefault(policy.key, policy)


def from_parts(network: bytes, card: PolicyCard, file: Path) -> LearnedPolicy:
    """Return a policy that is not on disk yet, for the check of an export.

    Args:
        network: Content of the ``.onnx`` file.
        card: Card of the policy.
        file: Planned path of the file.

    Raises:
        ConfigError: The native core refuses the policy.
    """
    return LearnedPolicy(
        card=card, file=file, given=str(file), source=card.digest[:VERSION_DIGITS],
        native=_native(network, card, file, ""),
    )  # fmt: skip


def _native(network: bytes, card: PolicyCard, file: Path, where: str) -> Any:
    """Return the native core's form of a policy."""
    from ccgym import _core

    try:
        return _core.Policy.load(network, card.to_json())
    except ValueError as error:
        raise explained(ConfigError, error, "policy-unreadable", where=_join(where, str(file))) from None


def read_card(file: Path, where: str = "") -> PolicyCard:
    """Read the card of a ``.onnx`` file.

    Raises:
        ConfigError: The card is missing or invalid.
    """
    card = card_file(file)
    try:
        text = read_bytes(card, MAX_CARD_BYTES).decode()
    except FileNotFoundError:
        raise ConfigError(
            "card-missing",
            f"{file.name} has no card",
            where=_join(where, str(card)),
            expected=f"its card {card.name}, which explains the network's numbers, in the same folder",
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
    """Return the exported policy of a run directory, or of an export directory."""
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
            expected="one exported policy",
            hint=f"give the file, as in {files[0]}",
        )
    policy = load(files[0], given=text, source=_place_of(files[0]), where=where)
    _refuse_stale(directory, policy, text, where)
    return policy


def _refuse_stale(directory: Path, policy: LearnedPolicy, text: str, where: str) -> None:
    """Raise :class:`ConfigError` if the run has a newer checkpoint than the exported one."""
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
        expected="an export of the latest checkpoint",
        hint=f"run `ccgym train export {text}` again; to evaluate the older policy, give its file: {policy.file}",
    )


def _place_of(file: Path) -> str:
    """Return a name for the place of a ``.onnx`` file: the run's directory, or the file's name."""
    folder = file.resolve().parent
    if folder.name == EXPORT_DIRECTORY:
        return folder.parent.name or file.stem
    return folder.name if file.name == POLICY_FILE else file.stem


def _join(where: str, place: str) -> str:
    return f"{where}: {place}" if where else place
