"""Cards that nobody's export wrote: each ends in one error that names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccgym.errors import ConfigError
from ccgym.schemes.policies import find, pretrained, read_card
from ccgym.schemes.policy_card import PolicyCard
from ccgym.schemes.style import COLOR_NAMES

CARD = Path(__file__).parent / "data" / "policies" / "steady.json"


def card(**changes: Any) -> str:
    return json.dumps({**json.loads(CARD.read_text()), **changes})


def test_cards_that_come_along_are_accepted() -> None:
    assert [read_card(file) for file in pretrained().values()]
    again = PolicyCard.from_json(CARD.read_text())
    assert again.to_json() == CARD.read_text()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"color": "tealish"}, "color: 'tealish'"),
        ({"color": "url(http://host/)"}, "color"),
        ({"marker": "$"}, "marker"),
        ({"marker": "$f$"}, "marker"),
        ({"marker": ""}, "marker"),
        ({"label": r"$\frac{$"}, "label"),
        ({"label": "A \x1b[2J"}, "label"),
        ({"label": "A\u202eB"}, "label"),
        ({"label": "A" * 100}, "label"),
        ({"summary": "S \x1b]0;title\x07"}, "summary"),
        ({"reference": "\x9b31m"}, "reference"),
        ({"versions": ["1"]}, "versions"),
        ({"versions": {"ccgym": 1}}, r"versions\.ccgym"),
        ({"parity": "yes"}, "parity"),
        ({"training": [1]}, "training"),
        ({"training": {"steps": "many"}}, r"training\.steps"),
        ({"training": {"seed": True}}, r"training\.seed"),
        ({"training": {"wall_s": "long"}}, r"training\.wall_s"),
        ({"training": {"config": []}}, r"training\.config"),
    ],
)
def test_what_is_shown_or_drawn_is_checked(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigError, match=found) as caught:
        PolicyCard.from_json(card(**changes), "mine.json")
    assert caught.value.where == "mine.json"
    assert str(caught.value).isprintable() or "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "1" * 5001 + "}", "", "\xff", "[]", "1"])
def test_no_text_is_a_traceback(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="the card"):
        read_card(file.with_suffix(".onnx"))


@pytest.mark.parametrize("suffix", [".onnx", ".json"])
def test_a_directory_is_neither_network_nor_card(suffix: str, tmp_path: Path) -> None:
    for file in (CARD, CARD.with_suffix(".onnx")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / f"steady{suffix}").unlink()
    (tmp_path / f"steady{suffix}").mkdir()
    with pytest.raises(ConfigError):
        find(str(tmp_path / "steady.onnx"))


def test_the_color_names_are_those_that_matplotlib_has() -> None:
    import matplotlib.colors as colors

    assert set(colors.CSS4_COLORS) == COLOR_NAMES
