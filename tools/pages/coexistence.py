"""docs/coexistence.md: all against all, two flows at a time."""

from __future__ import annotations

from pages.data import kept_rows
from pages.markdown import code, percent, table


def meetings() -> list[dict[str, str]]:
    """What all against all left in docs/data: a row for every scheme and condition."""
    return kept_rows("coexistence")


def met(metric: str, scheme: str, **at: str) -> float:
    """The mean of a metric of all against all over the conditions with these coordinates."""
    found = [
        float(row[metric])
        for row in meetings()
        if row["scheme"] == scheme and row[metric] and at.items() <= row.items()
    ]
    return sum(found) / len(found)


def met_schemes() -> list[str]:
    """The schemes of all against all."""
    return list(dict.fromkeys(row["scheme"] for row in meetings()))


def pairs() -> list[str]:
    """How two flows of one scheme share a link."""
    head = [""]
    for rtt in ("20 ms", "80 ms"):
        head += [f"{rtt}: first flow", "second flow", "Jain's index", "queueing delay"]
    rows = []
    for name in met_schemes():
        cells = []
        for rtt in ("20ms", "80ms"):
            own = {"opponent": "itself", "buffer": "1bdp", "rtt": rtt}
            first, second = (
                (met("other_share", name, **own, first=one) + met("share", name, **own, first=other)) / 2
                for one, other in (("opponent", "scheme"), ("scheme", "opponent"))
            )
            delay = met("queueing_delay", name, **own)
            cells += [percent(first), percent(second), f"{met('jain', name, **own):.2f}", f"{delay:.1f} ms"]
        rows.append((code(name), *cells))
    return table(head, rows)


def coexistence() -> list[str]:
    """Shares and harm of every scheme, by opponent and buffer."""
    buffers = ("0.5bdp", "1bdp", "4bdp")

    def by_buffer(metric: str, name: str, opponent: str) -> str:
        return " / ".join(f"{100 * met(metric, name, opponent=opponent, buffer=size):.0f}" for size in buffers)

    def harm(name: str, opponent: str) -> str:
        kinds = ("throughput_harm", "delay_harm", "loss_harm")
        return " / ".join(f"{100 * met(kind, name, opponent=opponent):.0f}" for kind in kinds)

    head = ["", "Share with Cubic", "Share with BBR", "Share with Reno", "Harm to Cubic", "Harm to Reno"]
    rows = [
        (code(name), *(by_buffer("share", name, one) for one in ("cubic", "bbr", "reno")),
         *(harm(name, one) for one in ("cubic", "reno")))
        for name in met_schemes()
    ]  # fmt: skip
    return table(head, rows)


BLOCKS = {"docs/coexistence.md": {"coexistence": coexistence}}
