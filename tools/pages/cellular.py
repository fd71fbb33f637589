"""docs/cellular.md: the published cellular report next to ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pages.data import kept_rows, recorded
from pages.markdown import ROOT, table

LINKS = {
    "verizon-lte": "Verizon LTE",
    "tmobile-lte": "T-Mobile LTE",
    "tmobile-lte-driving": "T-Mobile LTE, driving",
}
"""The links of the experiment ``cellular``, and what the page calls them."""


def published_cellular() -> list[dict[str, str]]:
    """Pantheon's published means over a cellular link, with the scheme of ours and a note."""
    return kept_rows("pantheon-cellular")


def measured_cellular(row: Mapping[str, str], file: str, link: str) -> dict[str, float] | None:
    """Our means of a published scheme over a link; None where it was not run."""
    if not (ROOT / f"docs/data/{file}.csv").exists():
        return None
    key = row["scheme"].replace(":", "_").replace("=", "_")
    return recorded(file).get(key, {}).get(f"link={link}")


def cellular_columns() -> dict[str, tuple[str, str]]:
    """The columns of ours that there are numbers for: heading, then file and link."""
    files = {"cellular": "", "cellular-emulated": ", emulated"}
    return {
        f"{name}{suffix}": (file, link)
        for link, name in LINKS.items()
        for file, suffix in files.items()
        if (ROOT / f"docs/data/{file}.csv").exists()
    }


def numbers(throughput: object, delay: object, loss: object) -> str:
    """Throughput in Mbit/s, delay in ms and loss in percent, in a cell."""
    return f"{float(str(throughput)):.2f} / {float(str(delay)):.0f} / {float(str(loss)):.2f}"


def cellular() -> list[str]:
    """Pantheon's published means over a cellular link, and ours over recorded ones."""
    columns = cellular_columns()
    rows: list[Sequence[str]] = []
    for row in published_cellular():
        given = (row["throughput_mbps"], row["delay_p95_ms"], row["loss_percent"])
        found = [measured_cellular(row, *column) for column in columns.values()]
        cells = ["–" if m is None else numbers(m["throughput"], m["delay_p95"], 100 * m["loss"]) for m in found]
        rows.append((row["label"], numbers(*given) if all(given) else "no run succeeded", *cells, row["note"]))
    return table(["", "Published", *columns, "Why they differ"], rows)


def cellular_places() -> list[str]:
    """The places of the schemes by throughput and by delay, among those that both have."""
    columns = cellular_columns()
    both = [
        row for row in published_cellular() if row["delay_p95_ms"] and measured_cellular(row, "cellular", "verizon-lte")
    ]

    def places(values: Sequence[tuple[float, float] | None]) -> list[str]:
        known = [one for one in values if one is not None]
        return [
            "–" if one is None else f"{1 + sum(x[0] > one[0] for x in known)} / {1 + sum(x[1] < one[1] for x in known)}"
            for one in values
        ]

    shown = [places([(float(row["throughput_mbps"]), float(row["delay_p95_ms"])) for row in both])]
    for column in columns.values():
        found = [measured_cellular(row, *column) for row in both]
        shown.append(places([None if m is None else (m["throughput"], m["delay_p95"]) for m in found]))
    rows = [(row["label"], *own) for row, own in zip(both, zip(*shown, strict=True), strict=True)]
    return table(["", "Published", *columns], rows)


BLOCKS = {"docs/cellular.md": {"cellular": cellular, "cellular-places": cellular_places}}
