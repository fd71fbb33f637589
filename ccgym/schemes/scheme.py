"""A scheme with parameters, and the properties that depend on its origin.

====================  =====================================================================================
``NativeScheme``      the native registry (:mod:`ccgym.schemes.native`)
``PolicyScheme``      an exported policy: a name, a run directory, a ``.onnx`` file (:mod:`ccgym.schemes.native`);
                      it runs as the scheme ``learned`` with a parameter
``PythonScheme``      a class in a file, ``my_cca.py:MyCCA`` (:mod:`ccgym.schemes.python_classes`)
``KernelTcp``         TCP of this machine's kernel, ``tcp:NAME`` (:mod:`ccgym.schemes.kernel`)
``QuicScheme``        QUIC by a library, ``quic:NAME`` (:mod:`ccgym.schemes.quic`)
``ExternalProgram``   an external program, ``program:NAME`` (:mod:`ccgym.schemes.programs`)
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
"""The place where a flow runs: a simulated run, a run with real packets, ``ccgym sender``, or an environment (with a
learning agent), simulated or with real packets."""

MAX_NAME: Final = 4096
"""Max characters of a name or path."""


@dataclass(frozen=True)
class Scheme(ABC):
    """A scheme with parameters, as a user typed it: ``fixed_window:cwnd=100``.

    :meth:`checked` returns the scheme with the name under which it runs. Before this check only the parts are known.
    """

    name: str
    """Name: in the registry, or of a policy, of a kernel algorithm, of a class in a file."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from the defaults."""

    TYPED: ClassVar[str]
    """The typed form, for help."""
    MEANING: ClassVar[str]
    """Description of this kind of scheme, for help."""
    WINDOW_KNOWN: ClassVar[bool] = True
    """Whether results of real paths contain the sender's window and packets in flight."""

    @classmethod
    @abstractmethod
    def claims(cls, name: str) -> bool:
        """Return whether a name is of this kind."""

    @classmethod
    def parts(cls, text: str) -> list[str] | None:
        """Return name and settings of a text; ``None`` if the text is of another kind."""
        return text.split(":")

    def checked(self, where: str = "") -> Scheme:
        """Return the scheme with the name under which it runs, if it exists and accepts these parameters.

        Raises:
            SchemeNotFoundError: No scheme and no policy has this name.
            ConfigError: The scheme does not accept these parameters, or cannot be used.
        """
        if len(self.name) > MAX_NAME:
            raise ConfigError(
                "too-large",
                f"{len(self.name)} characters",
                where=where,
                expected=f"a name or file of a scheme, at most {MAX_NAME} characters",
            )
        return self._check(where)

    @abstractmethod
    def _check(self, where: str) -> Scheme: ...

    def refuse(self, place: Venue, where: str) -> None:
        """Raise :class:`ConfigError` if the scheme cannot run at a place.

        Args:
            place: The place where the scheme would run.
            where: The option or argument, for the error.
        """
        error = self._refusal(place)
        if error is not None:
            raise error.at(where)

    def _refusal(self, place: Venue) -> ConfigError | None:
        return None

    def why_unavailable(self) -> str | None:
        """Return why the scheme is not available on this machine for real packets; ``None`` if it is available."""
        return None

    @property
    def policy(self) -> LearnedPolicy | None:
        """The policy of a learned scheme; ``None`` for other schemes."""
        return None

    @property
    def kernel(self) -> str | None:
        """The kernel algorithm of the scheme; ``None`` for other schemes."""
        return None

    def program_words(self) -> ProgramWords | None:
        """Prepare and return the external programs of the flow; ``None`` for other schemes.

        Raises:
            RealPathError: The programs cannot be prepared.
        """
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parameters that users type."""
        return self.params

    @property
    def files(self) -> dict[str, ParameterFile]:
        """Parameters that are files, by name; the check has read the files."""
        return {
            name: file for name, value in self.params.items() if (file := parameter_files.loaded(value)) is not None
        }

    @property
    def native_params(self) -> dict[str, Any]:
        """Parameters of a checked scheme for the native core, with the content of files."""
        return {**self.params, **{name: file.content.hex() for name, file in self.files.items()}}

    @property
    def title(self) -> str:
        """Name without parameters: from the registry, of the policy, or of the class."""
        return self.name

    @property
    def given(self) -> str:
        """The scheme as typed by the user, without parameters."""
        return self.name

    @property
    def file_key(self) -> str:
        """Name in file names, without parameters."""
        return self.name

    @property
    def key(self) -> str:
        """Name in file names, with parameters if there are any."""
        words = (f"{name}_{_file_text(value)}" for name, value in self.settings.items())
        return "_".join([self.file_key, *words])

    @property
    def text(self) -> str:
        """The scheme as typed by the user, with parameters."""
        files = {name: file.given for name, file in self.files.items()}
        return _typed(self.given, {**self.settings, **files})

    @property
    def algorithm(self) -> str:
        """The algorithm, independent of its implementation: ``bbr`` for ``tcp:bbr``, ``quic:bbr`` and ``bbr``."""
        return self.title

    @property
    def seed_text(self) -> str:
        """The text on which the random streams of runs depend. All versions of a policy get the same losses; the
        kernel's scheme and ccgym's scheme of the same name, too."""
        return _typed(self.algorithm, self.settings)

    @property
    def transport(self) -> dict[str, Any]:
        """Default transport of its flows: some of ``profile``, ``ack_every``, ``mss``, ``header``,
        ``initial_window``, ``source``."""
        return {}

    @property
    def bounded(self) -> bool:
        """Whether the scheme itself bounds its window or rate, on every path."""
        return False

    @property
    def identity(self) -> dict[str, Any]:
        """Scheme and parameters in the digest of a run. The content of loaded files is included; their names and
        paths are not."""
        return {}

    @property
    def version(self) -> str | None:
        """Hash of the loaded file; ``None`` for schemes of ccgym and of the system."""
        return None

    @property
    def provenance(self) -> Mapping[str, Any] | None:
        """The facts about the loaded file that results record."""
        return None

    @property
    @abstractmethod
    def drawn(self) -> tuple[str, str, str]:
        """Label without parameters, color and marker."""

    @property
    def style(self) -> SchemeStyle:
        """Label, color and marker; the label contains the parameters."""
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
    """An external transport with its own congestion control. It runs only on real paths."""

    PREFIX: ClassVar[str]
    """Prefix of the names."""
    WHAT: ClassVar[str]
    """Description, for errors."""
    NO_PARAMETERS: ClassVar[str] = ""
    """Reason why there are no parameters, for errors."""

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
        """Return a hint how to send such a flow without ccgym; empty if there is none."""
        return ""

    def _without_parameters(self, where: str) -> Self:
        if self.params:
            raise ConfigError(
                "unknown-parameter",
                f"{self.name} with parameters: {', '.join(self.params)}",
                where=where,
                expected=f"no parameters: {self.NO_PARAMETERS}",
                hint=f"for ccgym's own {self.algorithm} with parameters, see `ccgym schemes {self.algorithm}`",
            )
        return self

    def _refusal(self, place: Venue) -> ConfigError | None:
        if place == "endpoint":
            return ConfigError(
                "scheme-unsuitable",
                f"{self.name} is {self.WHAT}, not a flow of ccgym over UDP",
                expected="a scheme of ccgym",
                hint=f"{self._elsewhere()}run both together with `ccgym evaluate --backend emulated`",
            )
        if place in ("real path", "real environment"):
            return None
        ours = f", or use ccgym's own {self.algorithm}, which runs everywhere" if self.algorithm in registry() else ""
        return ConfigError(
            "scheme-unsuitable",
            f"{self.name} is {self.WHAT}, which cannot be simulated",
            expected="ccgym's own schemes, or a backend with real packets",
            hint=f"use real packets: --backend emulated{ours}",
        )

    def described(self, kind: str, reason: str | None, reference: str, summary: str = "") -> dict[str, Any]:
        """Describe the scheme as in :func:`ccgym.schemes.groups.descriptions`.

        Args:
            kind: The field that marks this kind of scheme: ``kernel``.
            reason: Reason why the scheme is not available; ``None`` if it is available.
            reference: Source of the scheme.
            summary: Description. Default: the statement that the scheme is available.
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
    """An object that is loaded from a file for a scheme."""

    @property
    def given(self) -> str:
        """The scheme as typed by the user."""

    @property
    def file_key(self) -> str:
        """Name in file names."""


class FileScheme(Scheme):
    """A scheme that is loaded from a file."""

    @property
    @abstractmethod
    def loaded(self) -> Loaded:
        """The loaded object."""

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
