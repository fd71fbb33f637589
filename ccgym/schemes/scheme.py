"""A scheme with parameters, as one asks for it, and all that follows from where it comes from.

====================  =====================================================================================
``NativeScheme``      the native registry (:mod:`ccgym.schemes.native`)
``PolicyScheme``      an exported policy: a name, a run directory, a ``.onnx`` file (:mod:`ccgym.schemes.native`);
                      inside it is the scheme ``learned`` with a parameter
``PythonScheme``      a class in a file, ``my_cca.py:MyCCA`` (:mod:`ccgym.schemes.python_classes`)
``KernelTcp``         this machine's TCP, ``tcp:NAME`` (:mod:`ccgym.schemes.kernel`)
``QuicScheme``        a QUIC library's, ``quic:NAME`` (:mod:`ccgym.schemes.quic`)
``ExternalProgram``   a program, ``program:NAME`` (:mod:`ccgym.schemes.programs`)
====================  =====================================================================================

:mod:`ccgym.schemes.reading` chooses the class of a text or a name.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias

from ccgym.errors import ConfigError
from ccgym.schemes import parameter_files
from ccgym.schemes.parameter_files import ParameterFile
from ccgym.schemes.registry import registry
from ccgym.schemes.style import Described, SchemeStyle

if TYPE_CHECKING:
    from ccgym.emulation.programs import ProgramWords
    from ccgym.schemes.policies import LearnedPolicy

Venue: TypeAlias = Literal["simulator", "real path", "endpoint", "environment", "real environment"]
"""Where a flow is to run: in a run that is simulated, in one with real packets, alone as ``ccgym sender``, next to an
agent that learns, simulated or with real packets."""

MAX_NAME: Final = 4096
"""Longer texts are neither names nor paths of files."""


@dataclass(frozen=True)
class Scheme(ABC):
    """A scheme with parameters, as a user asked for it: ``fixed_window:cwnd=100``.

    :meth:`checked` gives the scheme by the name under which it runs; until then nothing but the parts is known.
    """

    name: str
    """Name in the registry, of a policy, of the kernel's, or of a class in a file."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from the defaults."""

    TYPED: ClassVar[str]
    """What one types, for help."""
    MEANING: ClassVar[str]
    """What that is, for help."""
    WINDOW_KNOWN: ClassVar[bool] = True
    """Whether a real path's result has the sender's window and what it has in flight."""

    @classmethod
    @abstractmethod
    def claims(cls, name: str) -> bool:
        """Whether a name is of this kind."""

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        """Name and settings of a text; None if it is meant for another kind."""
        return text.split(":")

    def checked(self, where: str = "") -> Scheme:
        """The scheme by the name under which it runs, if it exists and takes these parameters.

        Raises:
            SchemeNotFoundError: No scheme and no policy has that name.
            ConfigError: It does not take these parameters, or cannot be used.
        """
        if len(self.name) > MAX_NAME:
            raise ConfigError(
                "too-large",
                f"{len(self.name)} characters",
                where=where,
                expected=f"a scheme's name or file, at most {MAX_NAME} of them",
            )
        return self._check(where)

    @abstractmethod
    def _check(self, where: str) -> Scheme: ...

    def refuse(self, place: Venue, where: str) -> None:
        """Raise :class:`ConfigError` if it cannot run at a place.

        Args:
            place: Where it is to run.
            where: The option or argument, for the error.
        """
        error = self._refusal(place)
        if error is not None:
            raise error.at(where)

    def _refusal(self, place: Venue) -> ConfigError | None:
        return None

    def why_unavailable(self) -> str | None:
        """Why this machine lacks it for real packets; None if it does not."""
        return None

    @property
    def policy(self) -> LearnedPolicy | None:
        """The policy that it runs; None where it is not a learned scheme."""
        return None

    @property
    def kernel(self) -> str | None:
        """The kernel's algorithm that it is; None for the schemes that are not."""
        return None

    def program_words(self) -> ProgramWords | None:
        """The external programs that carry its flows, made ready; None where it is none of them.

        Raises:
            RealPathError: They cannot be made ready.
        """
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parameters that one types."""
        return self.params

    @property
    def files(self) -> dict[str, ParameterFile]:
        """Its parameters that are files, by name; the check has read them."""
        return {
            name: file for name, value in self.params.items() if (file := parameter_files.loaded(value)) is not None
        }

    @property
    def native_params(self) -> dict[str, Any]:
        """The parameters of a checked scheme as the native core takes them: files by their content."""
        return {**self.params, **{name: file.content.hex() for name, file in self.files.items()}}

    @property
    def title(self) -> str:
        """Its name without parameters: that of the registry, the policy's own, the class's."""
        return self.name

    @property
    def given(self) -> str:
        """What one types to get it, without parameters."""
        return self.name

    @property
    def file_key(self) -> str:
        """Its name in files, without parameters."""
        return self.name

    @property
    def key(self) -> str:
        """Its name in files: the name, and the parameters where there are any."""
        words = (f"{name}_{_file_text(value)}" for name, value in self.settings.items())
        return "_".join([self.file_key, *words])

    @property
    def text(self) -> str:
        """What one types to get it."""
        files = {name: file.given for name, file in self.files.items()}
        return _typed(self.given, {**self.settings, **files})

    @property
    def algorithm(self) -> str:
        """The algorithm, in any implementation: that of ``tcp:bbr``, ``quic:bbr`` and ``bbr`` is ``bbr``."""
        return self.title

    @property
    def seed_text(self) -> str:
        """What its runs' random streams depend on: all versions of a policy meet the same losses, and so do
        the kernel's scheme and ours of one name."""
        return _typed(self.algorithm, self.settings)

    @property
    def transport(self) -> dict[str, Any]:
        """How it is carried where a flow does not say: some of ``profile``, ``ack_every``, ``mss``, ``header``,
        ``initial_window``, ``source``."""
        return {}

    @property
    def bounded(self) -> bool:
        """Whether window or rate have a bound of their own, whatever the path."""
        return False

    @property
    def identity(self) -> dict[str, Any]:
        """Scheme and parameters as the digest of a run has them. The content of what was loaded counts, its name and
        place do not."""
        return {}

    @property
    def version(self) -> str | None:
        """Hash of what was loaded for it; None for schemes of ccgym and of the system."""
        return None

    @property
    def provenance(self) -> Mapping[str, Any] | None:
        """What results record about what was loaded for it."""
        return None

    @property
    @abstractmethod
    def drawn(self) -> tuple[str, str, str]:
        """Label without parameters, color and marker."""

    @property
    def style(self) -> SchemeStyle:
        """Its label, color and marker; parameters are part of the label."""
        label, color, marker = self.drawn
        extra = ", ".join(f"{name} {_json_text(value)}" for name, value in self.settings.items())
        return SchemeStyle(key=self.key, label=f"{label} ({extra})" if extra else label, color=color, marker=marker)


def _typed(name: str, settings: Mapping[str, Any]) -> str:
    return ":".join([name, *(f"{key}={_json_text(value)}" for key, value in settings.items())])


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _file_text(value: Any) -> str:
    return "".join(char if char.isalnum() or char in "._" else "_" for char in _json_text(value))


class ExternalScheme(Scheme):
    """A transport that is not ours, with congestion control of its own: it runs on real paths only."""

    PREFIX: ClassVar[str]
    """Beginning of its names."""
    WHAT: ClassVar[str]
    """What it is, for errors."""
    NO_PARAMETERS: ClassVar[str] = ""
    """Why it takes no parameters, for errors."""

    @classmethod
    def claims(cls, name: str) -> bool:
        return name.startswith(cls.PREFIX)

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        parts = text.split(":")
        return [":".join(parts[:2]), *parts[2:]] if cls.claims(text) else None

    @property
    def algorithm(self) -> str:
        return self.name.removeprefix(self.PREFIX)

    @property
    def file_key(self) -> str:
        return self.title.replace(":", "_")

    def _elsewhere(self) -> str:
        """What sends such a flow outside of ccgym, for a hint; empty if nothing is worth a word."""
        return ""

    def _without_parameters(self, where: str) -> Self:
        if self.params:
            raise ConfigError(
                "unknown-parameter",
                f"{self.name} with parameters: {', '.join(self.params)}",
                where=where,
                expected=f"none: {self.NO_PARAMETERS}",
                hint=f"our own {self.algorithm} has parameters: `ccgym schemes {self.algorithm}`",
            )
        return self

    def _refusal(self, place: Venue) -> ConfigError | None:
        if place == "endpoint":
            return ConfigError(
                "scheme-unsuitable",
                f"{self.name} is {self.WHAT}, not a flow over UDP of ours",
                expected="a scheme of ours",
                hint=f"{self._elsewhere()}`ccgym evaluate --backend emulated` runs both side by side",
            )
        if place in ("real path", "real environment"):
            return None
        ours = f"; our own {self.algorithm} runs anywhere" if self.algorithm in registry() else ""
        return ConfigError(
            "scheme-unsuitable",
            f"{self.name} is {self.WHAT}, which cannot be simulated",
            expected="ccgym's own schemes, or a backend with real packets",
            hint=f"it needs real packets: --backend emulated{ours}",
        )

    def described(self, kind: str, reason: str | None, reference: str, summary: str = "") -> dict[str, Any]:
        """The scheme as :func:`ccgym.schemes.groups.descriptions` has ours.

        Args:
            kind: The field that tells it from others: ``kernel``.
            reason: Why it is not available; None where it is.
            reference: Where it is from.
            summary: What it is; by default that it is available.
        """
        label, color, marker = self.drawn
        return {
            "name": self.name,
            "label": label,
            "reference": reference,
            "summary": (summary or "available here") if reason is None else f"unavailable: {reason}",
            "color": color,
            "marker": marker,
            "parameters": [],
            kind: True,
            "available": reason is None,
        }


class Loaded(Described, Protocol):
    """What is loaded from a file for a scheme."""

    @property
    def given(self) -> str:
        """What one types to get it."""

    @property
    def file_key(self) -> str:
        """Its name in files."""


class FileScheme(Scheme):
    """A scheme that is loaded from a file."""

    @property
    @abstractmethod
    def loaded(self) -> Loaded:
        """What was loaded."""

    @property
    def title(self) -> str:
        return self.loaded.title

    @property
    def given(self) -> str:
        return self.loaded.given

    @property
    def file_key(self) -> str:
        return self.loaded.file_key

    @property
    def drawn(self) -> tuple[str, str, str]:
        return self.loaded.label, self.loaded.color, self.loaded.marker

    @property
    def version(self) -> str | None:
        return self.loaded.digest

    @property
    def provenance(self) -> Mapping[str, Any] | None:
        return self.loaded.provenance()
