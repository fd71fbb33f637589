"""The header of mahimahi's link logs, for links that follow a delivery trace.

Five lines, and a sixth where the link is nested in other shells (ravinet/mahimahi @ae477d4
``src/frontend/link_queue.cc``). Our links start at the run's start, so the base timestamp is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ccgym.units import NS_PER_MS

Direction: TypeAlias = Literal["up", "down"]
"""``up``: data; ``down``: acknowledgements."""

MAHIMAHI_QUEUES = {
    "infinite": "infinite",
    "droptail": "droptail",
    "drophead": "drophead",
    "mahimahi_codel": "codel",
    "mahimahi_pie": "pie",
}
"""Names of queue disciplines: ours, and mahimahi's."""

_ARGUMENTS = ("target", "interval", "qdelay_ref", "max_burst")


def mm_log_header(
    uplink: Sequence[Mapping[str, Any]],
    downlink: Sequence[Mapping[str, Any]],
    direction: Direction,
    epoch_ms: float,
    command: Sequence[str],
    name: str,
) -> str | None:
    """The header for the first link of a direction; None where that link follows no trace, as no mm-link would.

    Args:
        uplink: the elements that data crosses, as in the specification given to the simulator.
        downlink: those that acknowledgements cross.
        direction: whose log it is.
        epoch_ms: start of the run, milliseconds since the epoch.
        command: the command line to name.
        name: the name of the log itself.
    """
    links = [element for element in (uplink if direction == "up" else downlink) if element["kind"] == "link"]
    if not links or links[0]["schedule"]["kind"] != "trace":
        return None
    link = links[0]
    side = "Uplink" if direction == "up" else "Downlink"
    quoted = " ".join(f"'{word}'" for word in command)
    lines = [
        f"# mahimahi mm-link ({side}) [{link['schedule']['name']}] > {name}",
        f"# command line: {quoted}",
        f"# queue: {queue_text(link['queue'])}",
        f"# init timestamp: {round(epoch_ms)}",
        "# base timestamp: 0",
    ]
    # Data crosses the outermost shell last. A delay counts in both directions and is named once.
    outer = [_shell(element, "up") for element in reversed(uplink)]
    outer += [_shell(element, "down") for element in downlink if element["kind"] == "loss"]
    if any(outer):
        lines.append(f"# mahimahi config: {''.join(outer)}")
    return "\n".join(lines)


def queue_text(queue: Mapping[str, Any]) -> str:
    """``droptail [packets=94]``, as mahimahi prints a queue."""
    shown = MAHIMAHI_QUEUES.get(queue["kind"], queue["kind"])
    limit = queue.get("limit") or {}
    settings = [f"{unit}={limit[unit]}" for unit in ("bytes", "packets") if limit.get(unit)]
    settings += [f"{name}={queue[name] // NS_PER_MS}" for name in _ARGUMENTS if name in queue]
    return f"{shown} [{', '.join(settings)}]" if settings else shown


def _shell(element: Mapping[str, Any], direction: Direction) -> str:
    """The label of an outer shell, with the blank that follows it; empty for elements that mahimahi does not have."""
    if element["kind"] == "delay" and isinstance(element["delay"], int):
        return f"[delay {element['delay'] // NS_PER_MS} ms] "
    if element["kind"] == "loss" and isinstance(element["probability"], (int, float)):
        return f"[loss {direction}={element['probability']:g}] "
    return ""
