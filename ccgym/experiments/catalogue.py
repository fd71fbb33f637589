"""A catalogue: sets of experiments that are run one after the other, each with its own report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from ccgym.config.configurations import find_config
from ccgym.config.declared import Strict
from ccgym.config.yaml_loader import load_yaml, validate
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.load import FOLDERS


class Catalogue(Strict):
    """The content of a file such as ``configs/experiments/benchmark.yaml``."""

    kind: Literal["catalogue"]
    title: str
    """Label of the catalogue."""
    parts: Mapping[str, str] = Field(min_length=1)
    """Names of experiments, with short descriptions."""

    def only(self, names: Sequence[str]) -> Catalogue:
        """Return the catalogue with only these parts.

        Raises:
            ConfigError: There is no such part.
        """
        for name in names:
            if name not in self.parts:
                raise ConfigError(
                    "unknown-name",
                    f"no part is called {shown(name)}",
                    expected=", ".join(self.parts),
                    hint=did_you_mean(name, self.parts),
                    where="--only",
                )
        return self.model_copy(update={"parts": {name: self.parts[name] for name in self.parts if name in names}})


def load_catalogue(name: str = "benchmark") -> Catalogue:
    """Read a catalogue: a YAML file, or the name of a file in ``configs/experiments``."""
    return validate(load_yaml(find_config(name, folders=FOLDERS)), Catalogue)
