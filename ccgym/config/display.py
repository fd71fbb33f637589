"""Display of objects in notebooks: a table and optionally a small picture, as self-contained HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], picture: str = "") -> str:
    """Return a title and a table below it, for ``_repr_html_``.

    Args:
        title: The line above the table.
        head: Names of the columns with their units; may be empty.
        rows: Texts. The first column is aligned left, the other columns right.
        picture: SVG below the table.
    """

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ("left", *["right"] * len(cells)) if head else ("left",) * len(cells)
        parts = zip(cells, sides, strict=False)
        made = (f'<{tag} style="text-align:{side};padding:2px 10px">{escape(cell)}</{tag}>' for cell, side in parts)
        return f"<tr>{''.join(made)}</tr>"

    top = f"<thead>{line('th', head)}</thead>" if head else ""
    body = "".join(line("td", row) for row in rows)
    return f"<div><b>{escape(title)}</b><table>{top}<tbody>{body}</tbody></table>{picture}</div>"


def sparklines(curves: Sequence[tuple[str, Sequence[float]]], label: str) -> str:
    """Draw curves over time in one small picture, from zero to the largest value; return SVG.

    Args:
        curves: Color of each curve, and its values at equal time steps.
        label: Text below the picture.
    """
    width, height = 420, 60
    top = max((value for _, values in curves for value in values), default=0.0) or 1.0
    longest = max((len(values) for _, values in curves), default=1)
    lines = ""
    for color, values in curves:
        step = width / max(1, longest - 1)
        points = " ".join(f"{step * at:.1f},{height * (1 - value / top):.1f}" for at, value in enumerate(values))
        lines += f'<polyline fill="none" stroke="{escape(color)}" stroke-width="1.5" points="{points}"/>'
    return (
        f'<svg viewBox="0 -2 {width} {height + 4}" width="{width}" height="{height}">{lines}</svg>'
        f"<div><small>{escape(label)}, 0 to {top:.4g}</small></div>"
    )
