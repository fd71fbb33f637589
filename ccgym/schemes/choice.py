"""A scheme with parameters, as one asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccgym.schemes import parameter_files
from ccgym.schemes.origins import Origin, origin_of
from ccgym.schemes.parameter_files import ParameterFile
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.style import SchemeStyle


@dataclass(frozen=True)
class SchemeChoice:
    """A scheme with parameters, as a user asked for it: ``fixed_window:cwnd=100``.

    What follows from them depends on where the scheme comes from, its :class:`~ccgym.schemes.origins.Origin`. The check
    there turns the name of a policy into the scheme ``learned``, and a class into its version; until then nothing but
    the parts is known.
    """

    name: str
    """Name in the registry, of a policy, of the kernel's, or of a class in a file."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from the defaults."""
    loaded: LearnedPolicy | None = field(default=None, repr=False, compare=False)
    """The policy, with the place that it was loaded from; the check fills it in."""

    @property
    def origin(self) -> Origin:
        """Where it comes from."""
        return origin_of(self.name)

    @property
    def policy(self) -> LearnedPolicy | None:
        """The policy that it runs; None where it is not a learned scheme."""
        return self.origin.policy(self)

    @property
    def kernel(self) -> str | None:
        """The kernel's algorithm that it is; None for the schemes that are not."""
        return self.origin.kernel(self)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parameters that one types."""
        return self.origin.settings(self)

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
        return self.origin.title(self)

    @property
    def key(self) -> str:
        """Its name in files: the name, and the parameters where there are any."""
        words = (f"{name}_{_file_text(value)}" for name, value in self.settings.items())
        return "_".join([self.origin.file_key(self), *words])

    @property
    def text(self) -> str:
        """What one types to get it."""
        files = {name: file.given for name, file in self.files.items()}
        return _typed(self.origin.given(self), {**self.settings, **files})

    @property
    def algorithm(self) -> str:
        """The algorithm, whichever implementation: that of ``tcp:bbr``, ``quic:bbr`` and ``bbr`` is ``bbr``."""
        return self.origin.algorithm(self)

    @property
    def seed_text(self) -> str:
        """What its runs' random streams depend on: all versions of a policy meet the same losses, and so do
        the kernel's scheme and ours of one name."""
        return _typed(self.algorithm, self.settings)

    @property
    def transport(self) -> dict[str, Any]:
        """How it is carried where a flow does not say: some of ``profile``, ``ack_every``, ``mss``, ``header``,
        ``initial_window``, ``source``."""
        return self.origin.transport(self)

    @property
    def identity(self) -> dict[str, Any]:
        """Scheme and parameters as the digest of a run has them. The content of what was loaded counts, its name and
        place do not."""
        return self.origin.identity(self)

    @property
    def version(self) -> str | None:
        """Hash of what was loaded for it; None for schemes of ccgym and of the system."""
        return self.origin.version(self)

    @property
    def provenance(self) -> Mapping[str, Any] | None:
        """What results record about what was loaded for it."""
        return self.origin.provenance(self)

    @property
    def style(self) -> SchemeStyle:
        """Its label, color and marker; parameters are part of the label."""
        label, color, marker = self.origin.drawn(self)
        extra = ", ".join(f"{name} {_json_text(value)}" for name, value in self.settings.items())
        return SchemeStyle(key=self.key, label=f"{label} ({extra})" if extra else label, color=color, marker=marker)


def _typed(name: str, settings: Mapping[str, Any]) -> str:
    return ":".join([name, *(f"{key}={_json_text(value)}" for key, value in settings.items())])


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _file_text(value: Any) -> str:
    return "".join(char if char.isalnum() or char in "._" else "_" for char in _json_text(value))
