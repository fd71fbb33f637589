"""mahimahi's command line: with a command in it, as ``ccgym shell`` reads it, and what of a path it can express."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccgym.config.mahimahi import CommandLine, parse_command_line
from ccgym.config.models import Delay, Link
from ccgym.config.path import NetworkPath
from ccgym.emulation import shell_path
from ccgym.errors import ConfigError, PathNotFoundError
from tests.refusals import refused

COMMANDS = json.loads((Path(__file__).parent / "data" / "mahimahi_commands.json").read_text())
"""Command lines and the native elements that they have always meant."""


def parse(line: str) -> CommandLine:
    return parse_command_line(line.split())


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: " ".join(row["words"]))
def test_the_shell_and_the_simulator_see_the_same_path(row: dict[str, list[object]], tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("1\n")
    traces = {word: trace for word in row["words"] if isinstance(word, str)}
    command = ["iperf3", "-c", "$MAHIMAHI_BASE", "--once"]
    for words in (row["words"], [*row["words"], "--", *command]):
        path = shell_path.from_mahimahi(words, traces)
        assert path.elements == {"uplink": row["uplink"], "downlink": row["downlink"]}
    assert path.command == tuple(command)
    chain = NetworkPath.from_mahimahi(row["words"]).chain
    compiled = [[element.compiled(direction) for element in chain] for direction in ("uplink", "downlink")]
    up, down = ([element for element in way if element is not None] for way in compiled)
    assert (up[::-1], down) == (row["uplink"], row["downlink"])


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("mm-delay 5 ping -c 3 host", "ping -c 3 host"),
        ("mm-delay 5 -- ping -c 3 host", "ping -c 3 host"),
        ("mm-link a b cat x", "cat x"),
        ("mm-link a b cat --uplink-log=f x", "cat x"),
        ("mm-link a b -- cat --uplink-log=f x", "cat --uplink-log=f x"),
        ("mm-loss uplink 0.1 mm-link a b --once -- mm-delay 5 sh -c true", "sh -c true"),
        ("mm-delay 5 mm-webreplay folder", "mm-webreplay folder"),
        ("mm-meter mm-delay 5 /usr/bin/mm-delay 6", "/usr/bin/mm-delay 6"),
    ],
)
def test_the_command_begins_where_the_tools_end(line: str, command: str) -> None:
    assert parse(line).command == tuple(command.split())


def test_links_know_their_logs_their_place_and_what_surrounds_them(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("1\n")
    line = "mm-delay 20 mm-link up down -u u.log --once -- mm-loss uplink 0.01 mm-link a b --downlink-log=d.log"
    path = shell_path.from_mahimahi(line.split(), dict.fromkeys(("up", "down", "a", "b"), trace))
    assert path.label == "[delay 20 ms] [link] [loss up=0.01] [link] "
    outer, inner = path.link_logs
    # Upwards a packet meets inner link, loss, outer link, delay; downwards delay, outer link, inner link.
    assert (outer["direction"], outer["element"], outer["file"]) == ("uplink", 2, "u.log")
    assert (inner["direction"], inner["element"], inner["file"]) == ("downlink", 2, "d.log")
    assert (outer["outer"], inner["outer"]) == ("[delay 20 ms] ", "[delay 20 ms] [link] [loss up=0.01] ")
    assert inner["command_line"] == "'mm-link' 'a' 'b' '--downlink-log=d.log'"
    assert path.ends_with == [["up", "down"]]


def test_labels_show_the_words_as_typed() -> None:
    labels = [shell.label for shell in parse("mm-onoff downlink 1.0 2 mm-intermittent uplink .5 1 mm-meter").shells]
    assert labels == ["[onoff (down) on=1.0s off=2s] ", "[intermittent (up) on=.5s off=1s] ", "[meter] "]


def test_meters_are_accepted_with_a_note() -> None:
    notes = [
        note for shell in parse("mm-meter --meter-uplink -- mm-link a b --meter-all").shells for note in shell.notes
    ]
    assert len(notes) == 2
    assert all("no effect" in note for note in notes)


WORDS = [
    "mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter", "uplink", "downlink", "5", "0.1",
    "a", "--", "-", "-u", "-d", "-uü", "--once", "--uplink-queue", "--uplink-queue=droptail", "--uplink-queue-args",
    "--uplink-queue-args=packets=5", "--downlink-queue=pie", "--downlink-queue-args=bytes=5,qdelay_ref=1,max_burst=2",
    "--downlink-log=x", "--meter-all", "packets=",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=20))
def test_any_words_are_read_or_explained(words: list[str]) -> None:
    with contextlib.suppress(ConfigError):
        parse_command_line(words)


def test_reading_tools_loads_no_models() -> None:
    """A start of ``ccgym shell`` with tools and files takes no longer than it must."""
    script = (
        "import sys\n"
        "from ccgym.cli import main, shell\n"
        "words = ['--', 'mm-delay', '5', 'mm-loss', 'uplink', '0.1', '--', 'true']\n"
        "shell.job(main.load('shell').parse('ccgym shell', words))\n"
        "print([name for name in ('pydantic', 'numpy', 'yaml', 'rich', 'ccgym._core') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_rate_does_where_there_is_no_trace_of_that_name() -> None:
    path = NetworkPath.from_mahimahi("mm-delay 20 mm-link 24mbps 12mbps")
    compiled = path.compile()
    (link,) = [one for one in compiled.uplink if one["kind"] == "link"]
    assert link["schedule"] == {"kind": "rate", "rate": 24_000_000}
    (back,) = [one for one in compiled.downlink if one["kind"] == "link"]
    assert back["schedule"]["name"] == "12mbps"
    shell = shell_path.from_mahimahi(["mm-link", "24mbps", "24mbps", "sh"], {})
    assert shell.elements["uplink"][0]["schedule"] == {"kind": "rate", "rate": 24_000_000}
    with pytest.raises(PathNotFoundError):
        NetworkPath.from_mahimahi("mm-link no-such-trace 12mbps").compile()


def test_mahimahi_liberties() -> None:
    plain = NetworkPath.from_mahimahi("mm-delay 7 mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=9")
    for command in (
        "mm-delay 7 \\\n mm-link --uplink-queue droptail a --uplink-queue-args 'packets=9' b",
        "mm-delay 7 mm-link a b -u up.log -ddown.log --uplink-queue=droptail --uplink-queue-args=packets=9",
        'mm-delay 007 mm-link --meter-all -ux a b --uplink-queue=droptail --uplink-queue-args="packets=9"  --',
        "mm-delay 7 mm-meter --meter-uplink mm-link a b --uplink-queue=droptail --uplink-queue-args=packets=9,",
    ):
        assert NetworkPath.from_mahimahi(command) == plain
    assert NetworkPath.from_mahimahi(["mm-delay", "7"]) == NetworkPath.from_mahimahi("mm-delay 7")
    # getopt permutes: the outer mm-link takes options that stand behind the inner tool.
    permuted = NetworkPath.from_mahimahi("mm-link a b mm-delay 3 --once")
    assert [type(element) for element in permuted.chain] == [Link, Delay]
    assert permuted.chain[0] == Link.model_validate({**permuted.chain[0].model_dump(), "once": True})


def test_to_mahimahi_makes_real_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path))
    words = NetworkPath.named("77.72mbps").to_mahimahi(materialize=True).split()
    file = Path(words[words.index("mm-link") + 1])
    assert file.name == "77.72mbps.trace"
    assert file.is_relative_to(tmp_path)
    assert file.read_bytes().count(b"\n") == 388_600
    file.write_bytes(b"1\n")
    NetworkPath.named("77.72mbps").to_mahimahi(materialize=True)
    assert file.read_bytes().count(b"\n") == 388_600
    assert NetworkPath.from_mahimahi(words).mean_rate_mbps == NetworkPath.named("77.72mbps").mean_rate_mbps

    made = NetworkPath(rate="32mbps", rtt="16ms", queue="1bdp").to_mahimahi().split()
    assert made[:2] == ["mm-delay", "8"]
    assert Path(made[3]).name == "32mbps.trace"
    assert Path(made[4]).name == "1008mbps.trace"
    assert made[5:] == ["--uplink-queue=droptail", "--uplink-queue-args=packets=43"]
    stepped = NetworkPath(rate=[("0s", "12mbps"), ("1s", "24mbps")], rtt="16ms", queue="9p").to_mahimahi(duration="2s")
    assert NetworkPath.from_mahimahi(stepped).mean_rate_mbps == pytest.approx(18, rel=0.01)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rate": "32mbps", "rtt": "15ms"},
        {"rate": "32mbps", "rtt": [("0s", "10ms"), ("1s", "20ms")]},
        {"rate": "32mbps", "rtt": "16ms", "queue": "codel"},
        {"rate": "32mbps", "rtt": "16ms", "loss": [("0s", 0.1), ("1s", 0.2)]},
        {"rate": "32mbps", "rtt": "16ms", "jitter": "1ms"},
    ],
)
def test_what_mahimahi_cannot_express(arguments: dict[str, object]) -> None:
    path = NetworkPath(**arguments)  # type: ignore[arg-type]
    with refused(ConfigError, "mahimahi-inexpressible"):
        path.to_mahimahi()
    assert path.mahimahi_parts()["uplink_trace"] == "32mbps"  # for Pantheon's metadata there is always a word


def test_pantheons_metadata_words() -> None:
    assert NetworkPath.named("77.72mbps").mahimahi_parts() == {
        "uplink_trace": "77.72mbps.trace",
        "downlink_trace": "77.72mbps.trace",
        "prepend_mm_cmds": "mm-delay 51 mm-loss uplink 0.0006",
        "append_mm_cmds": None,
        "extra_mm_link_args": "--uplink-queue=droptail --uplink-queue-args=packets=94",
    }
