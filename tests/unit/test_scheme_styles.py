"""How schemes of the registry are drawn."""

from __future__ import annotations

from ccgym.schemes.registry import _STYLES, registry
from ccgym.schemes.style import check_color, check_marker


def test_every_scheme_has_a_style_of_its_own() -> None:
    styles = [(str(entry["color"]), str(entry["marker"])) for entry in registry().values()]
    assert len(set(styles)) == len(styles)
    for color, marker in styles:
        assert (check_color(color), check_marker(marker)) == (color, marker)


def test_styles_are_of_schemes_that_exist_and_stay() -> None:
    assert _STYLES.keys() <= registry().keys()
    assert registry()["copa"]["color"] == "red"
    # The first two without a style of their own, in the order of the registry.
    assert [registry()[name]["color"] for name in ("bbr3", "kestrel")] == ["crimson", "indigo"]
