"""The table of origins: where schemes come from, and all that follows from it.

===========  ====================================================================================
``python``   a class in a file, ``my_cca.py:MyCCA`` (:mod:`ccgym.schemes.python_classes`)
``kernel``   this machine's TCP, ``tcp:NAME`` (:mod:`ccgym.schemes.kernel`)
``quic``     a QUIC library's, ``quic:NAME`` (:mod:`ccgym.schemes.quic`)
``program``  a program of others, ``program:NAME`` (:mod:`ccgym.schemes.programs`)
``policy``   an exported policy: a name, a run directory, a ``.onnx`` file
             (:mod:`ccgym.schemes.policies`); inside it is the scheme ``learned`` with a parameter
``ccgym``    the native registry (:mod:`ccgym.schemes.registry`)
===========  ====================================================================================

A text is read by the first origin that claims it, and so is a name that was checked. A new origin is a class here.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from ccgym.emulation import kernel_tcp
from ccgym.emulation import quic as quic_program
from ccgym.emulation.programs import ProgramWords
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, explained, shown
from ccgym.schemes import kernel, parameter_files, policies, programs, python_classes, quic
from ccgym.schemes.policies import LearnedPolicy
from ccgym.schemes.python_classes import PythonScheme
from ccgym.schemes.registry import NOT_TYPED, POLICY, registry
from ccgym.schemes.style import Described

if TYPE_CHECKING:
    from ccgym.schemes.choice import SchemeChoice

Place: TypeAlias = Literal["simulator", "real path", "endpoint", "environment", "real environment"]
"""Where a flow is to run: in a run that is simulated, in one with real packets, alone as ``ccgym sender``, next to an
agent that learns, simulated or with real packets."""


class Origin:
    """Where a scheme comes from: the answers of a scheme of ccgym's own, where an origin has no other."""

    typed: str
    """What one types, for help."""
    meaning: str
    """What that is, for help."""
    window_known: bool = True
    """Whether a real path's result has the sender's window and what it has in flight."""

    def claims(self, name: str) -> bool:
        """Whether a scheme that was checked is of this origin, by its name."""
        return True

    def parts(self, text: str) -> list[str] | None:
        """Name and settings of a text; None if it is meant for another origin."""
        return text.split(":")

    def check(self, choice: SchemeChoice, where: str) -> SchemeChoice:
        """The choice by the name under which it runs, if it exists and takes these parameters.

        Raises:
            SchemeNotFoundError: There is no such scheme.
            ConfigError: It cannot be used, or not with these parameters.
        """
        return _of_registry(choice, where)

    def refusal(self, choice: SchemeChoice, place: Place) -> ConfigError | None:
        """Why it cannot run at a place; None if it can."""
        return None

    def why_unavailable(self, choice: SchemeChoice) -> str | None:
        """Why this machine lacks it for real packets; None if it does not."""
        return None

    def policy(self, choice: SchemeChoice) -> LearnedPolicy | None:
        """The policy that it runs."""
        return None

    def kernel(self, choice: SchemeChoice) -> str | None:
        """The kernel's algorithm that it is."""
        return None

    def program_words(self, choice: SchemeChoice) -> ProgramWords | None:
        """The programs of others that carry its flows, made ready; None where it is none of them.

        Raises:
            RealPathError: They cannot be made ready.
        """
        return None

    def algorithm(self, choice: SchemeChoice) -> str:
        """See :attr:`~ccgym.schemes.choice.SchemeChoice.algorithm`."""
        return self.title(choice)

    def settings(self, choice: SchemeChoice) -> Mapping[str, Any]:
        """The parameters that one types."""
        return choice.params

    def title(self, choice: SchemeChoice) -> str:
        """Its name without parameters."""
        return choice.name

    def given(self, choice: SchemeChoice) -> str:
        """What one types to get it, without parameters."""
        return choice.name

    def file_key(self, choice: SchemeChoice) -> str:
        """Its name in files, without parameters."""
        return choice.name

    def drawn(self, choice: SchemeChoice) -> tuple[str, str, str]:
        """Label, color and marker."""
        info = registry()[choice.name]
        label = str(info["label"])
        if any(parameter["file"] and choice.params.get(parameter["name"]) for parameter in info["parameters"]):
            label = label.partition(" (")[0]  # what stands in parentheses is about the file that is built in
        return label, str(info["color"]), str(info["marker"])

    def transport(self, choice: SchemeChoice) -> dict[str, Any]:
        """See :attr:`~ccgym.schemes.choice.SchemeChoice.transport`."""
        return dict(registry()[choice.name]["transport"])

    def bounded(self, choice: SchemeChoice) -> bool:
        """Whether window or rate have a bound of their own, whatever the path."""
        return bool(registry()[choice.name]["capabilities"]["bounded"])

    def identity(self, choice: SchemeChoice) -> dict[str, Any]:
        """See :attr:`~ccgym.schemes.choice.SchemeChoice.identity`."""
        return {}

    def version(self, choice: SchemeChoice) -> str | None:
        """See :attr:`~ccgym.schemes.choice.SchemeChoice.version`."""
        return None

    def provenance(self, choice: SchemeChoice) -> Mapping[str, Any] | None:
        """See :attr:`~ccgym.schemes.choice.SchemeChoice.provenance`."""
        return None


class OfRegistry(Origin):
    """Schemes of ccgym's own."""

    typed = "NAME:PARAMETER=VALUE"
    meaning = "a scheme with a parameter; more may follow, as in cubic:beta=0.5:mode=linux"


class OfOthers(Origin, ABC):
    """Transports that are not ours, with congestion control of their own: they run on real paths only."""

    @abstractmethod
    def algorithm(self, choice: SchemeChoice) -> str:
        """The name without the prefix."""

    @abstractmethod
    def is_what(self, choice: SchemeChoice) -> str:
        """What it is, for errors."""

    @abstractmethod
    def elsewhere(self, choice: SchemeChoice) -> str:
        """What sends such a flow outside of ccgym, for a hint; empty if nothing is worth a word."""

    def parts(self, text: str) -> list[str] | None:
        parts = text.split(":")
        return [":".join(parts[:2]), *parts[2:]] if self.claims(text) else None

    def refusal(self, choice: SchemeChoice, place: Place) -> ConfigError | None:
        algorithm = self.algorithm(choice)
        if place == "endpoint":
            return ConfigError(
                "scheme-unsuitable",
                f"{choice.name} is {self.is_what(choice)}, not a flow over UDP of ours",
                expected="a scheme of ours",
                hint=f"{self.elsewhere(choice)}`ccgym evaluate --backend emulated` runs both side by side",
            )
        if place in ("real path", "real environment"):
            return None
        ours = f"; our own {algorithm} runs anywhere" if algorithm in registry() else ""
        return ConfigError(
            "scheme-unsuitable",
            f"{choice.name} is {self.is_what(choice)}, which cannot be simulated",
            expected="ccgym's own schemes, or a backend with real packets",
            hint=f"it needs real packets: --backend emulated{ours}",
        )

    def file_key(self, choice: SchemeChoice) -> str:
        return choice.name.replace(":", "_")

    def transport(self, choice: SchemeChoice) -> dict[str, Any]:
        return {}

    def bounded(self, choice: SchemeChoice) -> bool:
        return False


class OfKernel(OfOthers):
    """The kernel's TCP."""

    typed = "tcp:NAME"
    meaning = "this machine's kernel TCP, on real backends"

    def claims(self, name: str) -> bool:
        return kernel.algorithm_of(name) is not None

    def check(self, choice: SchemeChoice, where: str) -> SchemeChoice:
        kernel.check(self.algorithm(choice), choice.params, where)
        return choice

    def is_what(self, choice: SchemeChoice) -> str:
        return "the TCP of this machine's kernel"

    def elsewhere(self, choice: SchemeChoice) -> str:
        return f"iperf3 -C {self.algorithm(choice)} sends one; "

    def why_unavailable(self, choice: SchemeChoice) -> str | None:
        return kernel_tcp.why_unavailable(self.algorithm(choice))

    def kernel(self, choice: SchemeChoice) -> str:
        return self.algorithm(choice)

    def algorithm(self, choice: SchemeChoice) -> str:
        return choice.name.removeprefix(kernel.PREFIX)

    def drawn(self, choice: SchemeChoice) -> tuple[str, str, str]:
        algorithm = self.algorithm(choice)
        return kernel_tcp.label(algorithm), *kernel.color_and_marker(algorithm)


class OfQuic(OfOthers):
    """A QUIC library's controllers."""

    typed = "quic:NAME"
    meaning = "QUIC by the library quinn, on real backends: cubic, bbr or reno (docs/quic.md)"

    def claims(self, name: str) -> bool:
        return quic.algorithm_of(name) is not None

    def check(self, choice: SchemeChoice, where: str) -> SchemeChoice:
        quic.check(self.algorithm(choice), choice.params, where)
        return choice

    def is_what(self, choice: SchemeChoice) -> str:
        return "QUIC by the library quinn"

    def elsewhere(self, choice: SchemeChoice) -> str:
        return ""

    def why_unavailable(self, choice: SchemeChoice) -> str | None:
        return quic_program.why_unavailable()

    def algorithm(self, choice: SchemeChoice) -> str:
        return choice.name.removeprefix(quic.PREFIX)

    def drawn(self, choice: SchemeChoice) -> tuple[str, str, str]:
        algorithm = self.algorithm(choice)
        return quic_program.label(algorithm), *quic.color_and_marker(algorithm)

    def identity(self, choice: SchemeChoice) -> dict[str, Any]:
        version = self.version(choice)
        return {} if version is None else {"quic": version}

    def version(self, choice: SchemeChoice) -> str | None:
        return quic_program.version(self.algorithm(choice))


class OfProgram(OfOthers):
    """Programs of others."""

    typed = "program:NAME"
    meaning = "a sender and a receiver of others, on real backends; also FILE.yaml, wrapper.py (docs/programs.md)"
    window_known = False

    def claims(self, name: str) -> bool:
        return name.startswith(programs.PREFIX)

    def parts(self, text: str) -> list[str] | None:
        # A path may hold a colon.
        if not self.claims(text):
            return None
        name, *settings = re.split(r":(?=[^:=/]+=)", text)
        return [name, *settings]

    def check(self, choice: SchemeChoice, where: str) -> SchemeChoice:
        program = programs.find(choice.name.removeprefix(programs.PREFIX), where)
        program.check(choice.params, where)
        return replace(choice, name=programs.PREFIX + program.name)

    def is_what(self, choice: SchemeChoice) -> str:
        return "a program of others"

    def elsewhere(self, choice: SchemeChoice) -> str:
        return ""

    def why_unavailable(self, choice: SchemeChoice) -> str | None:
        return self.program(choice).why_unavailable()

    def program_words(self, choice: SchemeChoice) -> ProgramWords:
        return self.program(choice).words(choice.params)

    def program(self, choice: SchemeChoice) -> programs.Program:
        """The program of a choice."""
        return programs.find(choice.name.removeprefix(programs.PREFIX))

    def algorithm(self, choice: SchemeChoice) -> str:
        return self.program(choice).title

    def title(self, choice: SchemeChoice) -> str:
        return programs.PREFIX + self.program(choice).title

    def file_key(self, choice: SchemeChoice) -> str:
        return self.title(choice).replace(":", "_")

    def drawn(self, choice: SchemeChoice) -> tuple[str, str, str]:
        program = self.program(choice)
        return program.label, program.color, program.marker

    def identity(self, choice: SchemeChoice) -> dict[str, Any]:
        return {"scheme": self.title(choice), "program": self.version(choice)}

    def version(self, choice: SchemeChoice) -> str | None:
        return self.program(choice).digest

    def provenance(self, choice: SchemeChoice) -> Mapping[str, Any] | None:
        return self.program(choice).provenance()


class Loaded(Described, Protocol):
    """What is loaded from a file for a scheme."""

    @property
    def given(self) -> str:
        """What one types to get it."""

    @property
    def file_key(self) -> str:
        """Its name in files."""


class OfFile(Origin, ABC):
    """Schemes that are loaded from files."""

    @abstractmethod
    def loaded(self, choice: SchemeChoice) -> Loaded | None:
        """What was loaded; None where nothing was, and the registry answers."""

    def title(self, choice: SchemeChoice) -> str:
        loaded = self.loaded(choice)
        return super().title(choice) if loaded is None else loaded.title

    def given(self, choice: SchemeChoice) -> str:
        loaded = self.loaded(choice)
        return super().given(choice) if loaded is None else loaded.given

    def file_key(self, choice: SchemeChoice) -> str:
        loaded = self.loaded(choice)
        return super().file_key(choice) if loaded is None else loaded.file_key

    def drawn(self, choice: SchemeChoice) -> tuple[str, str, str]:
        loaded = self.loaded(choice)
        return super().drawn(choice) if loaded is None else (loaded.label, loaded.color, loaded.marker)

    def version(self, choice: SchemeChoice) -> str | None:
        loaded = self.loaded(choice)
        return None if loaded is None else loaded.digest

    def provenance(self, choice: SchemeChoice) -> Mapping[str, Any] | None:
        loaded = self.loaded(choice)
        return None if loaded is None else loaded.provenance()


class OfPolicy(OfFile):
    """Exported policies, which run as the scheme ``learned``."""

    typed = "a run directory or FILE.onnx"
    meaning = "a learned scheme: a run directory of `ccgym train`, an exported file"

    def claims(self, name: str) -> bool:
        return name == policies.SCHEME

    def parts(self, text: str) -> list[str] | None:
        # A path may hold a colon, as of a run named by the time of day.
        if not policies.looks_like_a_path(text):
            return None
        parts = text.split(":")
        first = next((place for place, part in enumerate(parts) if place and "=" in part), len(parts))
        return [":".join(parts[:first]), *parts[first:]]

    def loaded(self, choice: SchemeChoice) -> LearnedPolicy | None:
        if POLICY not in choice.params:
            return None
        return choice.loaded or policies.loaded(str(choice.params[POLICY]))

    def policy(self, choice: SchemeChoice) -> LearnedPolicy | None:
        return self.loaded(choice)

    def settings(self, choice: SchemeChoice) -> Mapping[str, Any]:
        return {name: value for name, value in choice.params.items() if name != POLICY}

    def transport(self, choice: SchemeChoice) -> dict[str, Any]:
        # As a rule `udp`: it was trained over that, so its observations mean the same; over `tcp` the handshake,
        # retransmissions and recovery would be new to it.
        policy = self.loaded(choice)
        if policy is None:
            return super().transport(choice)
        return {"profile": policy.card.profile, "ack_every": policy.card.ack_every}

    def bounded(self, choice: SchemeChoice) -> bool:
        return True

    def identity(self, choice: SchemeChoice) -> dict[str, Any]:
        return {"params": dict(self.settings(choice)), "policy": self.version(choice)}


class OfPython(OfFile):
    """Classes in Python files."""

    typed = "FILE.py:CLASS"
    meaning = "a scheme written in Python (docs/python-schemes.md)"

    def claims(self, name: str) -> bool:
        return python_classes.is_key(name) or python_classes.parts(name) is not None

    def parts(self, text: str) -> list[str] | None:
        return python_classes.parts(text)

    def check(self, choice: SchemeChoice, where: str) -> SchemeChoice:
        scheme = python_classes.find(choice.name, where)
        scheme.check(choice.params, where)
        return replace(choice, name=scheme.key)

    def refusal(self, choice: SchemeChoice, place: Place) -> ConfigError | None:
        if place in ("simulator", "real path"):
            return None
        return ConfigError(
            "scheme-unsuitable",
            f"{self.given(choice)} is a scheme in Python",
            expected="a scheme of ccgym's own, or a policy: others do not run here",
            hint="`ccgym evaluate` runs schemes in Python, simulated or with --backend emulated",
        )

    def loaded(self, choice: SchemeChoice) -> PythonScheme:
        return python_classes.find(choice.name)

    def transport(self, choice: SchemeChoice) -> dict[str, Any]:
        return {}

    def bounded(self, choice: SchemeChoice) -> bool:
        return False

    def identity(self, choice: SchemeChoice) -> dict[str, Any]:
        return {"scheme": self.title(choice), "python": self.version(choice)}


ORIGINS: Final[Sequence[Origin]] = (OfProgram(), OfPython(), OfKernel(), OfQuic(), OfPolicy(), OfRegistry())
"""In the order in which they are asked."""


def origin_of(name: str) -> Origin:
    """The origin of a scheme by its name."""
    return next(origin for origin in ORIGINS if origin.claims(name))


MAX_NAME: Final = 4096
"""Longer texts are neither names nor paths of files."""


def check(choice: SchemeChoice, where: str = "") -> SchemeChoice:
    """The choice by the name under which it runs, if the scheme exists and takes these parameters.

    Raises:
        SchemeNotFoundError: No scheme and no policy has that name.
        ConfigError: It does not take these parameters, or cannot be used.
    """
    if len(choice.name) > MAX_NAME:
        raise ConfigError(
            "too-large",
            f"{len(choice.name)} characters",
            where=where,
            expected=f"a scheme's name or file, at most {MAX_NAME} of them",
        )
    return choice.origin.check(choice, where)


def refuse(choice: SchemeChoice, place: Place, where: str) -> None:
    """Raise :class:`ConfigError` if a scheme cannot run at a place.

    Args:
        choice: The scheme, checked.
        place: Where it is to run.
        where: The option or argument, for the error.
    """
    error = choice.origin.refusal(choice, place)
    if error is not None:
        raise error.at(where)


def _of_registry(choice: SchemeChoice, where: str) -> SchemeChoice:
    """Check a scheme of the registry, or a policy, which becomes ``learned``."""
    from ccgym import _core

    choice = _with_files(_resolved(choice, where), where)
    settings = {name: value for name, value in choice.native_params.items() if name in choice.settings}
    try:
        _core.check_scheme(choice.name, json.dumps(settings))
    except ValueError as error:
        info = registry()[choice.name]
        names = ", ".join(p["name"] for p in info["parameters"] if choice.policy is None or p["name"] not in NOT_TYPED)
        title = choice.title
        refused = explained(ConfigError, error, "parameter-invalid", where=where)
        if refused.code == "unknown-parameter":
            refused.expected = f"parameters of {title}: {names}" if names else f"no parameters: {title} has none"
        if names and not refused.hint:
            refused.hint = f"`ccgym schemes` explains them; write them as {title}:NAME=VALUE"
        raise refused from None
    return choice


def _resolved(choice: SchemeChoice, where: str) -> SchemeChoice:
    """The choice by its name in the registry: a policy's name or path becomes ``learned`` with that policy."""
    known = registry()
    if choice.loaded is not None or (choice.name in known and choice.name != policies.SCHEME):
        return choice
    text, settings = choice.name, dict(choice.params)
    if choice.name == policies.SCHEME:
        given = settings.pop(POLICY, None)
        if not isinstance(given, str) or not given:
            raise ConfigError(
                "policy-missing",
                f"{policies.SCHEME} without a policy" if given is None else f"{POLICY} is {shown(given)}",
                where=where,
                expected="the name of a policy, a run directory or a .onnx file",
                hint=f"name the policy itself, as in {next(iter(policies.pretrained()), 'path/to/policy.onnx')}",
            )
        text = given
    elif POLICY in settings:
        raise ConfigError(
            "parameter-invalid",
            f"{shown(choice.name)} with a parameter {POLICY}",
            where=where,
            expected="the policy as the name of the scheme, and no other",
        )
    policy = policies.find(text, where)
    if policy is None:
        names = [name for name in known if name != policies.SCHEME] + list(policies.pretrained())
        others = ", ".join(origin.typed for origin in ORIGINS if not isinstance(origin, OfRegistry))
        raise SchemeNotFoundError(
            "unknown-scheme",
            f"no scheme is called {shown(text)}",
            expected=f"one of {', '.join(names)}; or {others}",
            hint=did_you_mean(text, names, "`ccgym schemes` lists them with their parameters"),
            where=where,
        )
    return replace(choice, name=policies.SCHEME, params={POLICY: policy.key, **settings}, loaded=policy)


def _with_files(choice: SchemeChoice, where: str) -> SchemeChoice:
    """The choice with what is a file read."""
    names = [
        p["name"] for p in registry()[choice.name]["parameters"] if p["file"] and choice.params.get(p["name"], "") != ""
    ]
    if not names:
        return choice
    read = {
        name: parameter_files.load(choice.params[name], f"{where} {choice.name}:{name}".strip()).key for name in names
    }
    return replace(choice, params={**choice.params, **read})
