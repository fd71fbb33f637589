"""Cards that no export wrote: each ends in one error that names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccgym.errors import ConfigError
from ccgym.schemes.policies import find, pretrained, read_card
from ccgym.schemes.policy_card import PolicyCard
from ccgym.schemes.style import COLOR_NAMES
from tests.refusals import refused

CARD = Path(__file__).parent / "data" / "policies" / "steady.json"


def card(**changes: Any) -> str:
    return json.dumps({**json.loads(CARD.read_text()), **changes})


def test_cards_that_come_along_are_accepted() -> None:
    assert [read_card(file) for file in pretrained().values()]
    again = PolicyCard.from_json(CARD.read_text())
    assert again.to_json() == CARD.read_text()


def test_the_digest_is_of_all_that_decides_behavior_and_of_nothing_else() -> None:
    cards = [card(), card(profile="tcp"), card(ack_every=2), card(onnx_sha256="0" * 64), card(agent={})]
    digests = [PolicyCard.from_json(text).digest for text in cards]
    assert len(set(digests)) == len(cards)
    assert PolicyCard.from_json(card(label="Other", training={"seed": 2})).digest == digests[0]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"color": "tealish"}, "card-invalid at mine.json: color"),
        ({"color": "url(http://host/)"}, "card-invalid at mine.json: color"),
        ({"marker": "$"}, "card-invalid at mine.json: marker"),
        ({"marker": "$f$"}, "card-invalid at mine.json: marker"),
        ({"marker": ""}, "card-invalid at mine.json: marker"),
        ({"label": r"$\frac{$"}, "card-invalid at mine.json: label"),
        ({"label": "A \x1b[2J"}, "card-invalid at mine.json: label"),
        ({"label": "A\u202eB"}, "card-invalid at mine.json: label"),
        ({"label": "A" * 100}, "card-invalid at mine.json: label"),
        ({"summary": "S \x1b]0;title\x07"}, "card-invalid at mine.json: summary"),
        ({"reference": "\x9b31m"}, "card-invalid at mine.json: reference"),
        ({"versions": ["1"]}, "card-invalid at mine.json: versions"),
        ({"versions": {"ccgym": 1}}, "card-invalid at mine.json: versions.ccgym"),
        ({"parity": "yes"}, "card-invalid at mine.json: parity"),
        ({"training": [1]}, "card-invalid at mine.json: training"),
        ({"training": {"steps": "many"}}, "card-invalid at mine.json: training.steps"),
        ({"training": {"seed": True}}, "card-invalid at mine.json: training.seed"),
        ({"training": {"wall_s": "long"}}, "card-invalid at mine.json: training.wall_s"),
        ({"training": {"config": []}}, "card-invalid at mine.json: training.config"),
    ],
)
def test_what_is_shown_or_drawn_is_checked(changes: dict[str, Any], found: str) -> None:
    with refused(ConfigError, found) as caught:
        PolicyCard.from_json(card(**changes), "mine.json")
    assert all(line.isprintable() for line in str(caught.value).splitlines()), "it is shown on terminals"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "1" * 5001 + "}", "", "\xff", "[]", "1"])
def test_no_text_is_a_traceback(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_bytes(text.encode("latin-1"))
    with refused(ConfigError, "card-invalid at mine.json"):
        read_card(file.with_suffix(".onnx"))


@pytest.mark.parametrize(("suffix", "code"), [(".onnx", "policy-missing"), (".json", "card-invalid")])
def test_a_directory_is_neither_network_nor_card(suffix: str, code: str, tmp_path: Path) -> None:
    for file in (CARD, CARD.with_suffix(".onnx")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / f"steady{suffix}").unlink()
    (tmp_path / f"steady{suffix}").mkdir()
    with refused(ConfigError, f"{code} at steady{suffix}"):
        find(str(tmp_path / "steady.onnx"))


def test_the_color_names_are_those_that_matplotlib_has() -> None:
    import matplotlib.colors as colors

    assert set(colors.CSS4_COLORS) == COLOR_NAMES
