"""The path of ``ccgym shell``: elements in the native core's form, traces, logs, and labels.

Paths are given as mahimahi's shells, by name or YAML file, or as JSON. Reading shells imports no slow modules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.errors import ConfigError, shown

if TYPE_CHECKING:
    from ccgym.config.declared import Direction

DIRECTIONS: Final[tuple[Direction, ...]] = ("uplink", "downlink")


@dataclass
class ShellPath:
    """A path with all data for a shell."""

    origin: str
    """Name of the path in errors."""
    label: str
    """Text before the prompt."""
    elements: dict[Direction, list[dict[str, Any]]]
    """The native elements of each direction, in the order in which packets cross them."""
    traces: dict[str, Path] = field(default_factory=dict)
    """Files of the traces that the elements name."""
    link_logs: list[dict[str, Any]] = field(default_factory=list)
    """Logs of links: ``direction``, ``element`` (its index there), ``file``, ``command_line``, ``outer``."""
    ends_with: list[list[str]] = field(default_factory=list)
    """Groups of traces: the shell ends when all of a group have been played."""
    command: tuple[str, ...] = ()
    """Command inside the path, if the path contains one."""
    notes: list[str] = field(default_factory=list)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the job."""
        return {
            "path": self.elements,
            "origin": self.origin,
            "label": self.label,
            "traces": {name: str(file) for name, file in self.traces.items()},
            "link_logs": self.link_logs,
            "ends_with": self.ends_with,
        }


def from_mahimahi(words: Sequence[str], traces: Mapping[str, Path]) -> ShellPath:
    """Return a path, with its command, from mahimahi's tools.

    Args:
        words: The command line.
        traces: Files of traces; other names are files, or traces of the catalog.

    Raises:
        ConfigError: A word is wrong; the error names its tool and number.
        PathNotFoundError: A trace does not exist.
    """
    from ccgym.config.mahimahi import parse_command_line

    line = parse_command_line(words)
    path = ShellPath("the path", "", {"uplink": [], "downlink": []}, command=line.command)
    for shell in line.shells:
        path.notes += shell.notes
        for direction in DIRECTIONS:
            element = shell.native(direction)
            if element is None:
                continue
            if element["kind"] == "link" and element["schedule"]["kind"] == "trace":
                name = element["schedule"]["name"]
                path.traces[name] = traces.get(name) or _trace_file(name)
            if direction in shell.logs:
                path.link_logs.append(
                    {
                        "direction": direction,
                        "element": len(path.elements[direction]),
                        "file": shell.logs[direction],
                        "command_line": shell.command_line,
                        "outer": path.label,
                    }
                )
            path.elements[direction].append(element)
        if shell.element is not None and shell.element.get("once"):
            path.ends_with.append([shell.element[direction]["trace"] for direction in DIRECTIONS])
        path.label += shell.label
    # A packet from the command crosses the innermost shell first.
    path.elements["uplink"].reverse()
    for log in path.link_logs:
        if log["direction"] == "uplink":
            log["element"] = len(path.elements["uplink"]) - 1 - log["element"]
    return path


def from_name(name: str, logs: Mapping[Direction, str], command_line: str) -> ShellPath:
    """Return a path from its name or YAML file.

    Args:
        name: The name or file.
        logs: Files for logs of the first link of a direction.
        command_line: Command line in their headers.

    Raises:
        CcgymError: There is no such path, or no link for a log.
    """
    from ccgym.config.path import NetworkPath
    from ccgym.emulation.plan import trace_files

    try:
        network = NetworkPath.from_any(name)
    except ConfigError as error:
        raise error.at("--path") from None
    compiled = network.compile()
    elements = {direction: getattr(compiled, direction) for direction in DIRECTIONS}
    path = ShellPath("the path", f"[{Path(name).name}] ", elements, trace_files(network.trace_names()))
    _add_links(path, logs, command_line)
    return path


def from_json(
    file: Path, label: str, traces: Mapping[str, Path], logs: Mapping[Direction, str], command_line: str
) -> ShellPath:
    """Return a path from a JSON file, as ``ccgym paths show PATH --spec`` writes it, with files of its traces.

    Raises:
        ConfigError: The file cannot be read, or is not a path.
    """
    where = f"reading the path {file}"
    expected = 'JSON {"uplink": […], "downlink": […], "traces": {name: file}}'
    hint = "write such a file with `ccgym paths show PATH --spec`"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ConfigError("file-unreadable", found, where=where, expected=expected, hint=hint) from None
    wrong = _not_a_path(data)
    if wrong is not None:
        raise ConfigError("file-malformed", wrong, where=where, expected=expected, hint=hint)
    files = {name: Path(given) for name, given in data.get("traces", {}).items()}
    elements = {direction: data[direction] for direction in DIRECTIONS}
    path = ShellPath(f"the path {file}", f"[{label}] ", elements, {**files, **traces})
    _add_links(path, logs, command_line)
    return path


def _not_a_path(data: object) -> str | None:
    """Return the problem of a JSON document that should be a path; the native core checks the fields of elements."""
    if not isinstance(data, dict):
        return shown(data)
    kinds = {"uplink": list, "downlink": list, "traces": dict, "facts": dict}
    for key, value in data.items():
        if not isinstance(value, kinds.get(key, ())):
            return f"{key}: {shown(value)}"
    for direction in DIRECTIONS:
        if direction not in data:
            return f"no {direction}"
        if not all(isinstance(element, dict) for element in data[direction]):
            return f"{direction}: {shown(data[direction])}"
    return None


def _add_links(path: ShellPath, logs: Mapping[Direction, str], command_line: str) -> None:
    """Add logs of the first link of each direction; and the end, after the end of all links that end."""
    ending: list[str] = []
    for direction in DIRECTIONS:
        links = {place: one for place, one in enumerate(path.elements[direction]) if one.get("kind") == "link"}
        schedules = [link.get("schedule") or {} for link in links.values()]
        ending += [str(schedule.get("name")) for schedule in schedules if schedule.get("once")]
        if direction not in logs:
            continue
        if not links:
            raise ConfigError(
                "path-without-link",
                "no link in that direction",
                where=f"ccgym shell --{direction}-log",
                expected="a path with a link in that direction",
            )
        path.link_logs.append(
            {
                "direction": direction,
                "element": next(iter(links)),
                "file": logs[direction],
                "command_line": command_line,
                "outer": "",
            }
        )
    if ending:
        path.ends_with = [ending]


def _trace_file(name: str) -> Path:
    """Return the file of a link's trace: the named file, or a trace of the catalog."""
    if Path(name).is_file():
        return Path(name)
    from ccgym.config.catalog import resolve_trace

    try:
        return resolve_trace(name).materialize()
    except ConfigError as error:
        raise error.at("mm-link") from None
