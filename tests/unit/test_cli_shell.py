"""``ccgym shell``, ``sender``, ``receiver``: command lines, and the jobs that they become."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli import endpoint, shell
from ccgym.cli.main import main as cli
from ccgym.config.path import NetworkPath
from ccgym.emulation import job
from ccgym.errors import ConfigError
from tests.commands import parsed
from tests.refusals import refused


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The jobs of the processes that this one would have become."""
    seen: list[dict[str, Any]] = []

    def remember(program: str, line: list[str], environment: dict[bytes, bytes]) -> None:
        assert program == line[0]
        assert line[1].endswith("__main__.py")
        assert environment == job.environment_at_start()
        assert os.get_inheritable(int(line[2]))
        with open(int(line[2]), closefd=False) as document:
            seen.append(json.loads(document.read()))
        raise SystemExit(7)

    monkeypatch.setattr(job.os, "execve", remember)
    return seen


def told(line: str) -> dict[str, Any]:
    """What the shell gets for these words."""
    return shell.job(parsed("shell", line.split()))[0]


# --- Paths ---------------------------------------------------------------------------------------------------------


def test_a_named_path_becomes_elements() -> None:
    fields = told("--path 77.72mbps --seed 5 -- iperf3 -c x --path y")
    compiled = NetworkPath.named("77.72mbps").compile()
    assert fields["path"] == {"uplink": compiled.uplink, "downlink": compiled.downlink}
    assert list(fields["traces"]) == ["77.72mbps.trace"]
    assert all(Path(trace).is_file() for trace in fields["traces"].values())
    assert (fields["label"], fields["seed"]) == ("[77.72mbps] ", 5)
    assert fields["command"] == ["iperf3", "-c", "x", "--path", "y"]
    assert told("--path=77.72mbps --name other iperf3")["label"] == "[other] "


def test_everything_crosses_all_of_several_links(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    near, far = ({"rate": rate, "rtt": "20ms", "queue": "50p"} for rate in ("10mbps", "5mbps"))
    file.write_text(json.dumps({"links": {"near": near, "far": far}}), encoding="utf-8")
    found = told(f"--path {file} -- true")["path"]
    one, other = (NetworkPath.from_any(link).compile() for link in (near, far))
    assert found == {"uplink": [*one.uplink, *other.uplink], "downlink": [*other.downlink, *one.downlink]}


def test_traces_of_the_catalog_are_found(tmp_path: Path) -> None:
    mine = tmp_path / "mine.trace"
    mine.write_text("1\n2\n")
    line = f"mm-delay 20 mm-loss uplink 0.01 mm-link --once 12mbps.trace {mine} --uplink-queue droptail"
    line += " --uplink-queue-args packets=9 -- mm-link 0.57mbps-poisson.trace 12mbps.trace -- cat mm-link 5mbps.trace"
    fields = told(f"--packet-memory 64 --seed 3 --trace 0.57mbps-poisson.trace={mine} {line}")
    assert (fields["packet_memory"], fields["seed"]) == (64 << 20, 3)
    assert list(fields["traces"]) == ["12mbps.trace", str(mine), "0.57mbps-poisson.trace"]
    assert all(Path(file).is_file() for file in fields["traces"].values())
    assert fields["traces"]["0.57mbps-poisson.trace"] == str(mine), "as --trace says"
    assert fields["command"] == ["cat", "mm-link", "5mbps.trace"]
    assert fields["ends_with"] == [["12mbps.trace", str(mine)]]


def test_a_path_from_json(tmp_path: Path) -> None:
    link = {"kind": "link", "schedule": {"kind": "trace", "name": "t", "once": True}, "queue": {"kind": "infinite"}}
    delay = {"kind": "delay", "delay": 5_000_000}
    file = tmp_path / "path.json"
    document = {"uplink": [link, delay], "downlink": [delay], "traces": {"t": "t.trace", "u": "u.trace"}, "facts": {}}
    file.write_text(json.dumps(document))
    fields = told(f"--spec {file} --trace t=mine.trace --uplink-log u.log -- id -u")
    assert fields["path"] == {"uplink": [link, delay], "downlink": [delay]}
    assert fields["traces"] == {"t": "mine.trace", "u": "u.trace"}
    assert fields["label"] == "[path] "
    (log,) = fields["link_logs"]
    assert (log["direction"], log["element"], log["file"]) == ("uplink", 0, "u.log")
    assert log["command_line"].startswith(f"'ccgym' 'shell' '--spec' '{file}' '--trace'")
    assert fields["ends_with"] == [["t"]]
    with refused(ConfigError, "path-without-link at ccgym shell --downlink-log"):
        told(f"--spec {file} --downlink-log d.log -- true")
    file.write_text("")
    with refused(ConfigError, f"file-unreadable at {file}"):
        told(f"--spec {file}")
    for damaged in ("[1]", '{"uplink": []}', '{"uplink": [], "downlinks": []}', '{"uplink": [1], "downlink": []}'):
        file.write_text(damaged)
        with refused(ConfigError, f"file-malformed at {file}"):
            told(f"--spec {file}")


# --- Options -------------------------------------------------------------------------------------------------------


def test_options_end_where_the_path_begins() -> None:
    fields = told("--seed=7 --outside cat --tunnel-log p -- mm-delay 5 -- id -u")
    assert (fields["seed"], fields["outside"]) == (7, {"command": "cat", "log": None, "port": None})
    assert (fields["datalink_log"], fields["acklink_log"]) == ("p_datalink.log", "p_acklink.log")
    assert fields["command"] == ["id", "-u"]
    without_dashes = told("--isolated mm-delay 5 id")
    assert (without_dashes["placement"], without_dashes["command"]) == ("isolated", ["id"])
    assert told("mm-delay 5 -- id --help")["command"] == ["id", "--help"]
    assert told("--outside mm-link mm-delay 5")["outside"]["command"] == "mm-link"
    assert told("--outside s --outside-port 5201 --outside-log o -- mm-delay 5")["outside"]["port"] == 5201
    assert told("--host --user nobody --flows 3 --summary mm-delay 5").items() >= {
        "placement": "host_outside", "user": "nobody", "flows": 3, "summary": True,
    }.items()  # fmt: skip


def test_the_process_becomes_the_shell(became: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli(["shell", "mm-meter", "mm-delay", "5", "--", "true"])
    assert end.value.code == 7, "the status is that of the process that it becomes"
    assert became == [{"shell": told("mm-meter mm-delay 5 -- true")}]
    assert capsys.readouterr().err.startswith("note: mm-meter")


def test_what_this_process_adds_to_its_environment_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCGYM_ADDED_LATER", "1")
    start = job.environment_at_start()
    assert b"CCGYM_ADDED_LATER" not in start
    assert start[b"PATH"], "what it was started with is there"


# --- Endpoints -----------------------------------------------------------------------------------------------------


def sender(line: str) -> dict[str, Any]:
    """What a sender to somewhere gets."""
    return endpoint.sender_job(parsed("sender", ["--to", "10.0.0.2:5001", *line.split()]))


def test_a_policy_becomes_files() -> None:
    fields = sender("--scheme aurora:start_rate_mbps=3 --duration 5")
    flow = fields["flow"]
    assert (fields["name"], flow["scheme"], flow["params"]["start_rate_mbps"]) == ("aurora", "learned", 3)
    files = fields["policies"][flow["params"]["policy"]]
    assert all(Path(file).is_file() for file in (files["onnx"], files["card"]))
    assert flow["profile"] == "udp", "the one that it was trained over"
    assert sender("--scheme aurora --profile=tcp")["flow"]["profile"] == "tcp"


def test_what_a_sender_is_told() -> None:
    fields = sender("--scheme=cubic:beta=0.5:mode=linux --bytes 1000 --deadline 1.5 --report-every 500ms --seed 4")
    assert fields == {
        "name": "cubic",
        "to": "10.0.0.2:5001",
        "flow": {
            "scheme": "cubic", "params": {"beta": 0.5, "mode": "linux"}, "profile": "tcp", "mss": 1448, "header": 52,
            "initial_window": 10, "ack_every": 1, "source": {"kind": "bytes", "bytes": 1000},
        },
        "duration": 3600 * 10**9,
        "seed": 4,
        "deadline": 15 * 10**8,
        "report_every": 5 * 10**8,
        "json": False,
    }  # fmt: skip
    plain = sender("--scheme cubic --bind 10.0.0.1 --json")
    assert (plain["duration"], plain["bind"], plain["json"], plain["flow"]["source"]) == (
        10**10, "10.0.0.1", True, {"kind": "greedy"},
    )  # fmt: skip


def test_what_a_receiver_is_told() -> None:
    given = parsed("receiver", ["--listen", "10.0.0.2:5001", "--flows=3", "--report-every", "0"])
    assert endpoint.receiver_job(given) == {
        "listen": "10.0.0.2:5001", "flows": 3, "once": False, "duration": None, "idle": 30 * 10**9, "report_every": 0,
        "json": False,
    }  # fmt: skip


def test_endpoints_become_processes(became: list[dict[str, Any]]) -> None:
    for words in (["receiver", "--listen", "10.0.0.2:5001"], ["sender", "--to", "10.0.0.2:5001", "--scheme", "cubic"]):
        with pytest.raises(SystemExit):
            cli(words)
    assert [list(job) for job in became] == [["receiver"], ["sender"]]
    assert cli(["sender"]) == 2
    assert len(became) == 2
