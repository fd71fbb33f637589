"""``ccgym shell``, ``sender``, ``receiver``: what the native commands are given for names of paths and policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccgym.cli import endpoint, shell
from ccgym.cli.main import main as cli
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, NotFoundError, SchemeNotFoundError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of the native commands that this process would have become."""
    seen: list[list[str]] = []

    def remember(program: str, line: list[str], environment: dict[bytes, bytes]) -> None:
        assert program == line[0]
        assert line[1].endswith("__main__.py")
        assert environment == shell.environment_at_start()
        seen.append(line[2:])
        raise SystemExit(7)

    monkeypatch.setattr(shell.os, "execve", remember)
    return seen


# --- Paths ---------------------------------------------------------------------------------------------------------


def test_a_named_path_becomes_a_file(cache: Path) -> None:
    words = shell.prepared(["--path", "77.72mbps", "--seed", "5", "--", "iperf3", "-c", "x", "--path", "y"])
    assert words[0] == "--spec"
    assert words[2:] == ["--name", "77.72mbps", "--seed", "5", "--", "iperf3", "-c", "x", "--path", "y"]
    file = Path(words[1])
    assert file.is_relative_to(cache)
    document = json.loads(file.read_text())
    compiled = NetworkPath.named("77.72mbps").compile()
    assert (document["uplink"], document["downlink"]) == (compiled.uplink, compiled.downlink)
    assert all(Path(trace).is_file() for trace in document["traces"].values())
    assert list(document["traces"]) == ["77.72mbps.trace"]
    assert shell.prepared(["--path=77.72mbps", "iperf3"])[:2] == words[:2], "the same path is the same file"


def test_traces_of_the_catalog_are_explained(tmp_path: Path) -> None:
    mine = tmp_path / "mine.trace"
    mine.write_text("1\n2\n")
    line = f"mm-delay 20 mm-loss uplink 0.01 mm-link --once 12mbps.trace {mine} --uplink-queue droptail"
    given = [*line.split(), "--", "mm-link", "0.57mbps-poisson.trace", "12mbps.trace", "--", "mm-link", "b", "c"]
    given[-3:] = ["cat", "mm-link", "12mbps.trace"]
    words = shell.prepared(["--packet-memory", "64", "--seed", "3", *given])
    assert words[:4] == ["--packet-memory", "64", "--seed", "3"]
    assert words[-len(given) :] == given, "the line stays as it was typed"
    explained = words[4 : -len(given)]
    assert explained[::2] == ["--trace"] * 2
    files = dict(word.split("=", 1) for word in explained[1::2])
    assert list(files) == ["12mbps.trace", "0.57mbps-poisson.trace"]
    assert all(Path(file).is_file() for file in files.values())


def test_the_command_is_none_of_our_business() -> None:
    for line in (
        "mm-delay 5 cat 12mbps.trace",
        "-- mm-delay 5 -- cat mm-link no.trace no.trace",
        "--seed 3 mm-delay 5 sh",
        "--outside mm-link mm-delay 5",
    ):
        assert shell.prepared(line.split()) == line.split()


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("--path 77.27mbps", "did you mean '77.72mbps'"),
        ("--path", "--path without a path"),
        ("mm-link 12mbsp.trace 12mbps.trace", "did you mean"),
    ],
)
def test_wrong_names(line: str, word: str) -> None:
    with pytest.raises((ConfigError, NotFoundError)) as caught:
        shell.prepared(line.split())
    assert word in str(caught.value)


def test_the_shell_becomes_the_native_one(became: list[list[str]]) -> None:
    with pytest.raises(SystemExit) as end:
        cli(["shell", "mm-delay", "5", "--", "true"])
    assert end.value.code == 7, "the status is the native command's"
    assert became == [["shell", "mm-delay", "5", "--", "true"]]


def test_help(became: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["sender", "-h"], ["receiver", "--help"]):
        assert cli(words) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"usage: ccgym {words[0]}")
        assert max(len(line) for line in text.splitlines()) <= 100
    assert became == []
    with pytest.raises(SystemExit):
        cli(["shell", "--help"])
    assert "--path NAME|FILE" in capsys.readouterr().out
    assert became == [["shell", "--help"]], "the rest is the native one's"


def test_a_shell_without_a_path(became: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["shell"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "no path" in shown.err
    assert "--path NAME|FILE" in shown.err
    assert became == []


def test_what_this_process_adds_to_its_environment_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCGYM_ADDED_LATER", "1")
    start = shell.environment_at_start()
    assert b"CCGYM_ADDED_LATER" not in start
    assert start[b"PATH"], "what it was started with is there"


def test_a_damaged_file_in_the_cache_is_written_again() -> None:
    file = shell.spec_file("12mbps")
    text = file.read_text()
    file.write_text("{}")
    assert shell.spec_file("12mbps") == file
    assert file.read_text() == text


def test_a_wrong_name_is_an_explained_mistake(became: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["shell", "--path", "nowhere", "--", "true"]) == 2
    assert "ccgym paths" in capsys.readouterr().err
    assert became == []


# --- Endpoints -----------------------------------------------------------------------------------------------------


def test_a_policy_becomes_files() -> None:
    given = ["--to", "10.0.0.2:5001", "--scheme", "aurora:start_rate_mbps=3", "--duration", "5"]
    words = endpoint.resolved(given)
    assert words[:4] == ["--to", "10.0.0.2:5001", "--scheme", "learned:start_rate_mbps=3"]
    assert words[-2:] == ["--duration", "5"]
    for name in ("--policy", "--card", "--onnx-runtime"):
        assert Path(words[words.index(name) + 1]).is_file()
    assert words[words.index("--profile") + 1] == "udp", "the one that it was trained over"
    assert endpoint.resolved([*given, "--profile=tcp"]).count("--profile") == 0


def test_classic_schemes_stay_what_they_are() -> None:
    assert endpoint.resolved(["--scheme=cubic:beta=0.5:mode=linux"]) == ["--scheme", 'cubic:beta=0.5,mode="linux"']
    assert endpoint.resolved(["--to", "a:1"]) == ["--to", "a:1"]


def test_schemes_that_cannot_be_sent() -> None:
    with pytest.raises(SchemeNotFoundError, match="did you mean 'cubic'"):
        endpoint.resolved(["--scheme", "cubci"])
    with pytest.raises(ConfigError, match="kernel's TCP"):
        endpoint.resolved(["--scheme", "tcp:bbr"])


def test_endpoints_become_the_native_ones(became: list[list[str]]) -> None:
    for words in (["receiver", "--listen", "10.0.0.2:5001"], ["sender", "--to", "10.0.0.2:5001", "--scheme", "cubic"]):
        with pytest.raises(SystemExit):
            cli(words)
    with pytest.raises(SystemExit):
        cli(["sender"])
    assert became.pop() == ["sender"], "it says what is missing, with status 2"
    assert became == [
        ["receiver", "--listen", "10.0.0.2:5001"],
        ["sender", "--to", "10.0.0.2:5001", "--scheme", "cubic"],
    ]
