"""Pantheon's wrapper scripts, unchanged: executable files with the sub-commands ``deps``, ``run_first``, ``setup``,
``setup_after_reboot``, ``sender`` and ``receiver`` (StanfordSNR/pantheon, ``src/wrappers``).

``deps`` prints the required Debian packages; ccgym never installs packages. ``setup`` runs once for each content of
the file, ``setup_after_reboot`` once per boot, both before the first flow. The cache folder ``programs/`` records which
of them have run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ccgym.config.catalog import cache_directory
from ccgym.config.yaml_loader import Loaded, load_yaml
from ccgym.emulation.programs import Answer, ProgramWords, ask
from ccgym.errors import ConfigError, RealPathError, located, shown
from ccgym.files import UnreadableError, atomic_write, read_bytes, read_json
from ccgym.schemes.style import check_color, check_label, check_marker

MAX_BYTES: Final = 2**20
"""Max size of a wrapper, bytes."""
TIMEOUTS_S: Final = {"deps": 20.0, "run_first": 20.0, "setup_after_reboot": 120.0, "setup": 3600.0}
"""Max time of each sub-command, seconds; ``setup`` may compile."""
STYLES: Final = "config.yml"
"""Pantheon's file with names, colors and markers of schemes: in the wrapper's folder, or in the folder above."""
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
"""File with an id that the kernel draws at every boot."""

_READY: Final[dict[str, ProgramWords]] = {}
"""Commands of the wrappers that this process has prepared, by digest."""
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(frozen=True)
class Wrapper:
    """A wrapper script."""

    path: Path
    digest: str
    label: str
    color: str
    marker: str

    @classmethod
    def load(cls, path: Path, where: str) -> Wrapper:
        """Load the wrapper at an absolute path.

        Raises:
            ConfigError: The wrapper cannot be executed, or Pantheon's file with styles cannot be used.
        """
        try:
            content = read_bytes(path, MAX_BYTES)
        except (OSError, UnreadableError) as error:
            raise ConfigError(
                "file-unreadable",
                f"{path} cannot be read: {error}",
                where=where,
                expected="one of Pantheon's wrapper scripts",
            ) from None
        if not os.access(path, os.X_OK):
            raise ConfigError(
                "program-unstartable",
                f"{path} cannot be executed",
                where=where,
                expected="a wrapper script of Pantheon, which is executable",
                hint=f"run chmod +x {path}; write a scheme in Python as FILE.py:CLASS, without program:",
            )
        label, color, marker = _style(path)
        return cls(path, hashlib.sha256(bytes(path) + b"\0" + content).hexdigest(), label, color, marker)

    @property
    def name(self) -> str:
        """Path of the wrapper."""
        return str(self.path)

    @property
    def title(self) -> str:
        """Name in Pantheon: the name of the file."""
        return self.path.stem

    def provenance(self) -> dict[str, Any]:
        """Return the facts about the wrapper that results record."""
        return {"wrapper": self.title, "file": str(self.path), "sha256": self.digest}

    def check(self, params: Mapping[str, Any], where: str) -> None:
        """Refuse all parameters, because wrappers have none."""
        if params:
            raise ConfigError(
                "unknown-parameter",
                f"{self.path.name} with parameters: {', '.join(params)}",
                where=where,
                expected="no parameters: Pantheon's wrappers have none",
            )

    def why_unavailable(self) -> str | None:
        """Return the missing packages; ``None`` if nothing is missing, or if ``deps`` fails."""
        try:
            missing = self._missing_packages()
        except RealPathError:
            # The run reports this as an error.
            return None
        return (
            f"{self.path.name} needs packages that are not here (sudo apt-get install {missing})" if missing else None
        )

    def words(self, params: Mapping[str, Any]) -> ProgramWords:
        """Set up the wrapper and return the commands to start."""
        with _ONE_AT_A_TIME:
            if self.digest not in _READY:
                if missing := self._missing_packages():
                    raise RealPathError(
                        "package-missing",
                        f"packages are missing: {missing}",
                        where=self._step("deps"),
                        expected="all packages that `deps` prints",
                        hint=f"run sudo apt-get install {missing}",
                    )
                self._set_up()
                _READY[self.digest] = self._first()
            return _READY[self.digest]

    def _first(self) -> ProgramWords:
        listens = self._ask("run_first").output.strip()
        listening, connecting = ("{port}",), ("{address}", "{port}")
        path = str(self.path)
        if listens == "receiver":
            return ProgramWords("receiver", (path, "sender", *connecting), (path, "receiver", *listening))
        if listens == "sender":
            return ProgramWords("sender", (path, "sender", *listening), (path, "receiver", *connecting))
        raise RealPathError(
            "protocol-error",
            f"it printed {shown(listens)}",
            where=self._step("run_first"),
            expected="the end that listens: sender or receiver",
            hint="check that this is a wrapper script of Pantheon",
        )

    def _missing_packages(self) -> str:
        """Return the missing Debian packages, separated by spaces; empty on systems other than Debian."""
        packages = self._ask("deps").output.split()
        query = shutil.which("dpkg-query")
        if query is None or not packages:
            return ""

        def there(package: str) -> bool:
            words = [query, "--show", "--showformat=${db:Status-Status}", "--", package]
            answer = ask(words, TIMEOUTS_S["deps"], self._step("deps"))
            return answer.status == 0 and "installed" in answer.output.split()

        return " ".join(package for package in packages if not there(package))

    def _set_up(self) -> None:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
        state = cache_directory() / "programs" / f"{self.title}-{self.digest[:16]}.json"
        try:
            known = read_json(state)
        except (FileNotFoundError, UnreadableError):
            known = {}
        done = dict(known) if isinstance(known, Mapping) else {}
        for command, mark in (("setup", True), ("setup_after_reboot", boot)):
            if done.get(command) != mark:
                self._ask(command)
                done[command] = mark
                atomic_write(state, json.dumps({"wrapper": str(self.path), **done}, indent=1) + "\n", parents=True)

    def _ask(self, command: str) -> Answer:
        words = [str(self.path), command]
        step = self._step(command)
        answer = ask(words, TIMEOUTS_S[command], step)
        if answer.status == 0:
            return answer
        said = answer.last_lines()
        raise RealPathError(
            "program-failed",
            f"it ended with status {answer.status}" + (f"; its last output: {said}" if said else ""),
            where=step,
            expected="status 0",
            hint=f"run `{' '.join(words)}` by hand; Pantheon's own wrappers need Python 2 as `python`",
        )

    def _step(self, command: str) -> str:
        return f"{self.path.name} {command}"


def _style(path: Path) -> tuple[str, str, str]:
    """Return label, color and marker, from Pantheon's file with styles if there is one."""
    for file in (path.parent / STYLES, path.parent.parent / STYLES):
        if file.is_file():
            loaded = load_yaml(file)
            known = loaded.data.get("schemes") if isinstance(loaded.data, Mapping) else None
            entry = known.get(path.stem) if isinstance(known, Mapping) else None
            if isinstance(entry, Mapping):
                return _checked(loaded, path.stem, entry)
    return path.stem, "dimgray", "1"


def _checked(loaded: Loaded, key: str, entry: Mapping[Any, Any]) -> tuple[str, str, str]:
    found = []
    checks = (("name", check_label, key), ("color", check_color, "dimgray"), ("marker", check_marker, "1"))
    for field, check, default in checks:
        with located(loaded.where(("schemes", key, field))):
            found.append(check(str(entry.get(field, default))))
    label, color, marker = found
    return label, color, marker
