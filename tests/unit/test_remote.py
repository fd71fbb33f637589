"""Runs between two machines: who they are, how the other one is spoken to, and what reports say of it.

Small scripts stand for SSH, and the simulator for what lies between.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym import _core
from ccgym.cli import tunnel_end
from ccgym.cli.evaluate import main, parser
from ccgym.cli.pantheon import evaluate_words
from ccgym.cli.pantheon import parser as pantheon_parser
from ccgym.cli.remote import remote_path
from ccgym.config.hosts import HostPath, Hosts, hosts_of
from ccgym.config.path import NetworkPath
from ccgym.emulation import doctor, python_schemes, remote, remote_end
from ccgym.emulation.plan import Plan, PolicyFiles, TunnelEnd
from ccgym.emulation.process import RunOutcome
from ccgym.emulation.programs import ProgramWords
from ccgym.emulation.python_schemes import PythonSource
from ccgym.emulation.remote_end import RemoteEnd, packed_half, remote_command, unpacked_half
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation.backends import backend
from ccgym.evaluation.backends import remote as remote_backend
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.pantheon.analysis import path_text
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.prepared_run import prepare
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import path_digest
from ccgym.report import pantheon_words
from ccgym.report.evaluation_report import page_values
from ccgym.report.evaluation_table import clock_text
from ccgym.report.pantheon_words import figure_title, repeated
from tests.refusals import explained, refused

CELLULAR = Hosts(
    "me@stanford:pantheon",
    local_if="ens5",
    remote_if="ppp0",
    ntp_addr="time.stanford.edu",
    local_desc="AWS California 1",
    remote_desc="Stanford cellular",
)


def there(tmp_path: Path, script: str) -> Hosts:
    """A machine on which a script runs in place of ccgym; its arguments are those of SSH."""
    file = tmp_path / "ssh.py"
    file.write_text(
        f"import json, sys, time\ndef say(**what): print(json.dumps({{'ccgym': what}}), flush=True)\n{script}\n"
    )
    return Hosts("far:some where", ssh=shlex.join([sys.executable, str(file)]))


HELLO = f"say(hello={{'version': {_core.__version__!r}, 'git': 'a'}})"


# --- Who they are --------------------------------------------------------------------------------------------------


def test_titles_and_data_paths_are_those_of_pantheons_report() -> None:
    assert CELLULAR.title == "AWS California 1 to Stanford cellular"
    assert CELLULAR.text == "AWS California 1 on ens5 (local) → Stanford cellular on ppp0 (remote)"
    back = Hosts("stanford", sender_side="remote", remote_desc="Stanford cellular")
    assert back.text == "Stanford cellular (remote) → local host (local)"
    assert Hosts("me@far:x").title == "local host to me@far:x"


def test_metadata_are_pantheons_and_are_read_back() -> None:
    assert CELLULAR.metadata() == {
        "mode": "remote",
        "remote_path": "me@stanford:pantheon",
        "sender_side": "local",
        "server_side": "remote",
        "local_if": "ens5",
        "remote_if": "ppp0",
        "ntp_addr": "time.stanford.edu",
        "local_desc": "AWS California 1",
        "remote_desc": "Stanford cellular",
    }
    assert Hosts.of_metadata(CELLULAR.metadata()) == CELLULAR
    assert path_text(CELLULAR.metadata()) == CELLULAR.text
    assert Hosts.of_metadata({"mode": "local"}) is None
    # Old versions of Pantheon wrote less.
    bare = Hosts.of_metadata({"mode": "remote"})
    assert bare is not None
    assert bare.text == "local host (local) → remote host (remote)"


def test_which_machines_decides_what_a_run_is_and_how_one_reaches_them_does_not() -> None:
    digest = path_digest(HostPath(CELLULAR))
    names = ("remote_path", "sender_side", "server_side", "local_addr", "remote_addr", "local_if", "remote_if",
             "ntp_addr", "local_desc", "remote_desc")  # fmt: skip
    for name in names:
        value = {"sender_side": "remote", "server_side": "local"}.get(name, "other")
        assert path_digest(HostPath(Hosts(**{**vars(CELLULAR), name: value}))) != digest, name
    for name, value in {"ssh": "ssh -p 99", "tunnel_port": 4000}.items():
        assert path_digest(HostPath(Hosts(**{**vars(CELLULAR), name: value}))) == digest


def test_a_path_between_machines_is_not_described() -> None:
    path = HostPath(CELLULAR)
    assert hosts_of(path) is CELLULAR
    assert NetworkPath.from_any(path) is path
    assert path.describe() == CELLULAR.text
    assert path.check() == []
    compiled = path.compile()
    assert (compiled.uplink, compiled.downlink) == ([], [])
    assert hosts_of(NetworkPath.from_any("12mbps")) is None


@pytest.mark.parametrize(("path", "name"), [(HostPath(CELLULAR), "emulated"), ("12mbps", "remote")])
def test_a_backend_for_each_kind_of_path(path: Any, name: str) -> None:
    with refused(ConfigError, "backend-unsuitable at backend"):
        Experiment(path, ["cubic"], backend=name)
    with refused(ConfigError, "backend-unsuitable at backend remote"):
        backend("remote").run("12mbps", ["cubic"], 1, 1)


# --- The command line ----------------------------------------------------------------------------------------------


def hosts(line: str) -> Hosts:
    path = remote_path(parser().parse_args(shlex.split(line)))
    assert path is not None
    return path.hosts


def test_options_of_both_commands_name_the_same_machines() -> None:
    options = (
        "--sender remote --tunnel-server local --local-addr 1.2.3.4 --local-if ens5 --remote-if ppp0 --ntp-addr t "
        "--local-desc 'A 1' --remote-desc 'B 2' --remote-addr 5.6.7.8 --tunnel-port 99 --ssh 'ssh -p 2'"
    )
    expected = Hosts(
        "me@far:dir", "remote", "local", "1.2.3.4", "5.6.7.8", 99, "ens5", "ppp0", "t", "A 1", "B 2", "ssh -p 2"
    )
    assert hosts(f"--remote me@far:dir {options}") == expected
    line = shlex.split(f"test remote me@far:dir --schemes 'cubic bbr' -t 20 --run-times 3 {options}")
    words = evaluate_words(pantheon_parser().parse_args(line))
    assert hosts(shlex.join(words)) == expected
    found = parser().parse_args(words)
    assert (found.schemes, found.runtime, found.runs, found.logs, found.mahimahi) == ("cubic,bbr", "20", 3, "all", None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--trace 12mbps --ntp-addr x", "option-needed"),
        ("--remote far --trace 12mbps", "options-conflict"),
        ("--remote far --backend emulated", "options-conflict"),
        ("--backend remote --trace 12mbps", "option-needed"),
        ("--remote far --sender there", "unknown-choice at --sender"),
        ("--remote far --tunnel-server local", "option-needed"),
        ("--remote far --tunnel-port 70000", "out-of-range at --tunnel-port"),
        ("--remote -oProxyCommand=x", "command-line"),
        ("--remote ''", "text-malformed at --remote"),
        ("--remote far --experiment calibrated", "options-conflict"),
        ("--remote far --sweep rtt=1ms,2ms", "options-conflict"),
        ("--remote far --remote-addr no.such.host.invalid --schemes cubic", "remote-unreachable at --remote-addr"),
        ("--remote far --ssh /no/such/program --remote-addr 127.0.0.1 --schemes cubic", "program-unstartable at --ssh"),
        ("--remote far --ssh false --schemes cubic", "remote-unreachable at --remote-addr"),
    ],
)
def test_what_makes_no_sense_says_so(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "require", lambda name: None)
    assert main(shlex.split(line)) == 2
    explained(capsys.readouterr().err, said)
    assert list(tmp_path.iterdir()) == []


# --- The other machine ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("", "ccgym tunnel-end"),
        ("/opt/my ccgym/", "'/opt/my ccgym'/.venv/bin/ccgym tunnel-end"),
        ("~/ccgym", "~/ccgym/.venv/bin/ccgym tunnel-end"),
        ("~", "~/.venv/bin/ccgym tunnel-end"),
        ("$(reboot)", "'$(reboot)'/.venv/bin/ccgym tunnel-end"),
    ],
)
def test_what_the_shell_there_is_told(folder: str, command: str) -> None:
    assert remote_command(Hosts(f"far:{folder}")) == command


def test_it_is_asked_and_answers(tmp_path: Path) -> None:
    script = (
        f"print('welcome'); {HELLO}; heard = json.loads(sys.stdin.readline())\n"
        "say(check=dict(name=sys.argv[1], found=sys.argv[2], remedy=json.dumps(heard)))"
    )
    with RemoteEnd(there(tmp_path, script)) as end:
        assert end.hello()["git"] == "a"
        end.send({"check": True})
        assert end.wait("check", 10) == {
            "name": "far",
            "found": "'some where'/.venv/bin/ccgym tunnel-end",
            "remedy": '{"check": true}',
        }


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("print('Host key verification failed.', file=sys.stderr); sys.exit(255)", "remote-unreachable at some where"),
        ("print('Permission denied (publickey).', file=sys.stderr); sys.exit(255)", "remote-unreachable at some where"),
        (
            "print('connect to host far port 22: refused', file=sys.stderr); sys.exit(255)",
            "remote-unreachable at some where",
        ),
        ("print('sh: no such file', file=sys.stderr); sys.exit(127)", "program-missing at some where"),
        ("print('error: invalid choice: tunnel-end', file=sys.stderr); sys.exit(2)", "version-mismatch at some where"),
        ("say(hello={'version': '0.0.0', 'git': 'a'})", "version-mismatch at some where"),
        ("print('Traceback'); sys.exit(3)", "run-failed at some where"),
        (
            "say(error=dict(where='step', found='EPERM', expected='', hint='be root'))",
            "run-failed at far:some where: step",
        ),
        ("say(listening=1)", "protocol-error at some where"),
    ],
)
def test_what_goes_wrong_there_names_the_machine(script: str, what: str, tmp_path: Path) -> None:
    with RemoteEnd(there(tmp_path, script)) as end, refused(RealPathError, what):
        end.hello()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("hello", "None"),
        ("hello", "{'version': 1, 'git': 'a'}"),
        ("hello", "{'version': '0'}"),
        ("check", "0"),
        ("check", "'text'"),
        ("check", "{'name': 'a', 'found': 'b'}"),
        ("check", "{'name': 'a', 'found': [], 'remedy': 'c'}"),
        ("listening", "None"),
        ("listening", "0"),
        ("listening", "65536"),
        ("listening", "10**4000"),
        ("listening", "True"),
        ("listening", "1.5"),
        ("listening", "'9'"),
        ("listening", "[9]"),
        ("ntp", "5"),
        ("ntp", "None"),
        ("ntp", "{}"),
        ("ntp", "{'failure': 1}"),
        ("ntp", "{'offset_ms': 'a'}"),
        ("ntp", "{'offset_ms': [1]}"),
        ("ntp", "{'offset_ms': float('nan')}"),
        ("ntp", "{'offset_ms': 1e300}"),
        ("ntp", "{'offset_ms': 10**400}"),
        ("result", "5"),
        ("result", "'AAAA'"),
        ("result", "{}"),
    ],
)
def test_malformed_messages(kind: str, content: str, tmp_path: Path) -> None:
    far = there(tmp_path, f"say({kind}={content})")
    with RemoteEnd(far) as end, refused(RealPathError, "protocol-error at some where"):
        end.wait(kind, 10)


DEEP = "x = []\nfor _ in range(900): x = [x]\n"


@pytest.mark.parametrize(
    "content",
    ["None", "x", "{'found': x, 'where': x}", "{'found': chr(27) + '[2J' + chr(0xd800)}", "{'code': x, 'hint': 7}"],
)
def test_malformed_errors(content: str, tmp_path: Path) -> None:
    far = there(tmp_path, f"{DEEP}say(error={content})")
    with RemoteEnd(far) as end, refused(RealPathError, "run-failed") as caught:
        end.hello()
    assert caught.value.found
    assert all(one.isprintable() for line in str(caught.value).splitlines() for one in line)


def test_a_result_has_a_longest(tmp_path: Path) -> None:
    half = packed_half(bytes(2**20))
    with RemoteEnd(there(tmp_path, f"sys.stdin.readline(); say(result={half!r})")) as end:
        end.send({}, longest_result=2**20 - 1)
        with refused(RealPathError, "protocol-error at some where"):
            end.wait("result", 10)


@pytest.mark.parametrize("line", ["'[[' + 2**20 * '[],'", """'{"ccgym": {"result": "' + 2**23 * 'A'"""])
def test_a_long_line_is_not_read_to_its_end(line: str, tmp_path: Path) -> None:
    with RemoteEnd(there(tmp_path, f"sys.stdin.readline(); print({line}, end='', flush=True); time.sleep(60)")) as end:
        end.send({}, longest_result=2**22)
        with refused(RealPathError, "protocol-error at some where"):
            end.wait("result", 10)


def test_a_machine_that_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_end, "SLACK_S", 0.5)
    with RemoteEnd(there(tmp_path, "time.sleep(60)")) as end:
        with refused(RealPathError, "no-answer at some where"):
            end.send({"plan": "x" * 2**20})
        halt = threading.Event()
        halt.set()
        with refused(RealPathError, "run-abandoned at some where"):
            end.send({"plan": "x" * 2**20}, halt)


PLAN: dict[str, Any] = {
    "spec": {"duration": 10**9, "flows": []},
    "policies": {},
    "python": {},
    "programs": {},
    "tunnel": {"end": "senders", "secret": "0" * 32, "connect": "127.0.0.1:9"},
}


@pytest.mark.parametrize(
    "request_",
    [
        "no JSON",
        "[" * 100_000,
        "5",
        "[]",
        "{}",
        {"plan": None},
        {"plan": PLAN, "ntp": 5},
        {"plan": {**PLAN, "spec": []}},
        {"plan": {**PLAN, "spec": {"duration": 1e400}}},
        {"plan": {**PLAN, "spec": {"duration": -1}}},
        {"plan": {**PLAN, "policies": {"a": ["AA=="]}}},
        {"plan": {**PLAN, "policies": {"a": 5}}},
        {"plan": {**PLAN, "python": {"a": {"file": 1}}}},
        {"plan": {**PLAN, "programs": {"a": {}}}},
        {"plan": {**PLAN, "tunnel": None}},
        {"plan": {**PLAN, "tunnel": {**PLAN["tunnel"], "other": 1}}},
        {"plan": {**PLAN, "tunnel": {**PLAN["tunnel"], "secret": 5}}, "ntp": None},
        {"plan": {**PLAN, "tunnel": {**PLAN["tunnel"], "connect": "127.0.0.1:99999"}}, "ntp": None},
    ],
)
def test_malformed_requests(
    request_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "request"
    file.write_text((request_ if isinstance(request_, str) else json.dumps(request_)) + "\n")
    with file.open() as sent:
        monkeypatch.setattr(sys, "stdin", sent)
        monkeypatch.setattr(tunnel_end, "_watch", lambda halt: None)
        assert tunnel_end.main() == 2
    hello, error = (json.loads(line)["ccgym"] for line in capfd.readouterr().out.splitlines())
    assert list(hello) == ["hello"]
    assert error["error"]["code"] in ("protocol-error", "run-failed")


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    begun = time.monotonic()
    with RemoteEnd(there(tmp_path, "sys.stdin.read()")) as end:
        with refused(RealPathError, "no-answer at some where"):
            end.wait("hello", 0.5)
        halt = threading.Event()
        halt.set()
        with refused(RealPathError, "run-abandoned at some where"):
            end.wait("hello", 60, halt)
    assert time.monotonic() - begun < 10, "it ends as soon as its standard input closes"


MEGABYTE = "'x' * 2**20"


@pytest.mark.parametrize("ending", ["", " + chr(10)"])
def test_a_machine_that_writes_without_end_is_given_up(ending: str, tmp_path: Path) -> None:
    flood = f"while True: sys.stdout.write({MEGABYTE}{ending})"
    begun = time.monotonic()
    with RemoteEnd(there(tmp_path, flood)) as end, pytest.raises(RealPathError) as caught:
        end.hello()
    assert time.monotonic() - begun < 10
    assert len(str(caught.value)) < 10_000


def test_messages_that_are_not_read_wait_there(tmp_path: Path) -> None:
    with RemoteEnd(there(tmp_path, f"{HELLO}\nwhile True: say(listening=1)")) as end:
        end.hello()
        assert end.wait("listening", 10) == 1
        time.sleep(0.3)
        assert end._messages.qsize() <= 16


def test_what_ssh_says_is_kept_in_part(tmp_path: Path) -> None:
    script = f"sys.stderr.write('first line\\n')\nfor _ in range(20): sys.stderr.write({MEGABYTE})"
    with RemoteEnd(there(tmp_path, f"{script}\nsys.stderr.write('\\nlast line')\nsys.exit(3)")) as end:
        with pytest.raises(RealPathError):
            end.hello()
        said = end._errors.read()
    assert len(said) < 200_000
    assert said.startswith(b"first line\n")
    assert said.endswith(b"\nlast line")


@pytest.mark.parametrize("text", ["", "AAAA", "no base 64 ?", packed_half(bytes(1000))[:-8], None])
def test_halves_that_are_none(text: Any) -> None:
    with pytest.raises(RealPathError):
        unpacked_half(text)


def test_halves_travel_as_text() -> None:
    half = bytes(range(256)) * 1000
    text = packed_half(half)
    assert len(text) < len(half)
    assert unpacked_half(text) == half


def test_a_plan_arrives_with_the_files_that_it_names(tmp_path: Path) -> None:
    for name in ("a.onnx", "a.json"):
        (tmp_path / name).write_bytes(f"content of {name}".encode())
    source = PythonSource("mine.py", "Mine", "class Mine: pass")
    end = TunnelEnd("senders", "0" * 32, connect="1.2.3.4:5", interface="ppp0")
    plan = Plan(
        spec={"duration": 10**9, "flows": []},
        policies={"a@1": PolicyFiles(tmp_path / "a.onnx", tmp_path / "a.json")},
        python={"python:mine": source},
        programs={1: ProgramWords("receiver", ("iperf3", "-c"), ("iperf3", "-s"))},
        tunnel=end,
    )
    data = json.loads(json.dumps(plan.packed()))
    (tmp_path / "a.onnx").unlink()
    back = Plan.unpacked(data, Path("/lib/onnx.so"))
    assert (back.spec, back.python, back.programs, back.tunnel) == (plan.spec, plan.python, plan.programs, plan.tunnel)
    assert back.policies["a@1"].onnx.read_bytes() == b"content of a.onnx"
    assert back.policies["a@1"].card.read_bytes() == b"content of a.json"
    assert len(back.held) == 2
    document = back.document(tmp_path / "result", "/proc/self/fd/9")
    assert document["guests"] == python_schemes.document({"python:mine": source})
    assert document["backend"] == {
        "kind": "remote",
        "end": "senders",
        "secret": "0" * 32,
        "listen": None,
        "connect": "1.2.3.4:5",
        "interface": "ppp0",
        "status": "/proc/self/fd/9",
    }


def test_the_machine_that_waits_is_found(tmp_path: Path) -> None:
    ssh = there(tmp_path, "print('user me'); print('hostname 127.0.0.1') if sys.argv[1] == '-G' else None").ssh
    assert remote.server_address(Hosts("far", ssh=ssh)) == "127.0.0.1"
    assert remote.server_address(Hosts("far", remote_addr="127.0.0.2")) == "127.0.0.2"
    assert remote.server_address(Hosts("far", server_side="local", local_addr="localhost")) == "127.0.0.1"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_answer_about_an_address_is_bounded(stream: str, tmp_path: Path) -> None:
    script = f"for _ in range(400): sys.{stream}.write({MEGABYTE})\nprint('hostname 127.0.0.1')"
    begun = time.monotonic()
    ssh = there(tmp_path, script).ssh
    if stream == "stderr":
        assert remote.server_address(Hosts("far", ssh=ssh)) == "127.0.0.1"
    else:
        with pytest.raises(ConfigError) as caught:
            remote.server_address(Hosts("far", ssh=ssh))
        assert caught.value.where == "--remote-addr"
    assert time.monotonic() - begun < 10


def test_two_checkouts_are_worth_a_note() -> None:
    assert remote._of_checkouts("branch: main @ 1", "branch: main @ 1") == []
    (note,) = remote._of_checkouts("branch: main @ 1", "branch: main @ 2\nM a.py")
    assert "here branch: main @ 1; there branch: main @ 2, with changes" in note


# --- What comes out ------------------------------------------------------------------------------------------------

BETWEEN = NetworkPath(rate="12mbps", rtt="40ms", queue="40p")


class StandIn:
    """Stands for both machines: simulates what they are told over a path that nothing in the results describes."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.applied = "ntp"

    def run(self, plan: Plan, hosts: Hosts, halt: threading.Event | None = None) -> RunOutcome:
        self.plans.append(plan)
        compiled = BETWEEN.compile()
        spec = {**json.loads(json.dumps(plan.spec)), "uplink": compiled.uplink, "downlink": compiled.downlink}
        report: dict[str, Any] = {
            "backend": "remote",
            "notes": [],
            "started_epoch_ms": 1.7e12,
            "system": ["Linux 4.15.0-1045-aws"],
            "clocks": {
                "offset_ms": 1.5,
                "drift_ppm": -2.25,
                "bound_ms": 20.125,
                "applied": self.applied,
                "ntp_offset_ms": 1.5 if self.applied == "ntp" else -77.0,
            },
        }
        if self.applied == "ntp":
            report["clock_offsets_ms"] = {"Local": 2.345, "Remote": 1.811}
        return RunOutcome(_core.simulate(json.dumps(spec), {}), report)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand = StandIn()
    monkeypatch.setattr(remote_backend, "run_between", stand.run)
    monkeypatch.setattr(remote_backend.BetweenHosts, "require", lambda *_: None)
    return stand


def test_packets_fit_into_the_tunnel(stand_in: StandIn) -> None:
    run = backend("remote").run(HostPath(CELLULAR), ["cubic", {"scheme": "bbr", "mss": 1000}], 1, 1)
    (plan,) = stand_in.plans
    sizes = [flow["mss"] + flow["header"] for flow in plan.spec["flows"]]
    assert sizes[0] == remote.MTU == 1464
    assert sizes[1] < 1100
    assert (run.backend, run.link.capacity_mbps, run.link.utilization) == ("remote", None, None)
    assert run.series is not None
    with refused(ConfigError, "backend-unsuitable at flows[0]"):
        backend("remote").run(HostPath(CELLULAR), [{"scheme": "cubic", "rtt": "50ms"}], 1, 1)


OPTIONS = (
    "--remote me@stanford:pantheon --local-if ens5 --remote-if ppp0 --ntp-addr time.stanford.edu "
    "--local-desc 'AWS California 1' --remote-desc 'Stanford cellular' --schemes cubic,bbr --runs 2 --runtime 3"
)


def evaluated(out: Path, *options: str) -> ResultSet:
    assert main([*shlex.split(OPTIONS), "--out", str(out), *options]) == 0
    return ResultSet.load(out)


@pytest.mark.long
def test_reports_have_pantheons_words(stand_in: StandIn, tmp_path: Path) -> None:
    results = evaluated(tmp_path)
    metadata = json.loads((tmp_path / "pantheon_metadata.json").read_text())
    assert CELLULAR.metadata().items() <= metadata.items()
    assert "uplink_trace" not in metadata
    assert pantheon_words.tested(results) == (
        "Data path: AWS California 1 on ens5 (local) → Stanford cellular on ppp0 (remote).",
        "",
    )
    assert repeated(results)[-1] == (
        "NTP offsets were measured against time.stanford.edu and have been applied to correct the timestamps in logs."
    )
    assert figure_title(results, of_means=True) == (
        "test from AWS California 1 to Stanford cellular, 2 runs of 3s each per scheme\n(mean of all runs by scheme)"
    )
    statistics = (tmp_path / "cubic_stats_run1.log").read_text()
    assert "Local clock offset: 2.345 ms\nRemote clock offset: 1.811 ms\n" in statistics
    assert "capacity" not in statistics
    assert "utilization" not in statistics
    page = (tmp_path / "pantheon_report.html").read_text()
    assert CELLULAR.text in page
    assert "drifted by -2.25 ppm" in page
    assert (tmp_path / "pantheon_report.pdf").exists()
    assert results.backend == "remote"
    assert not any(flag["level"] == "warning" for flag in results.flags)


def test_raw_logs_are_in_each_ends_own_clock_and_merge_to_the_same_packets(stand_in: StandIn, tmp_path: Path) -> None:
    evaluated(tmp_path, "--no-figures", "--logs", "all", "--raw-logs")
    for link in ("datalink", "acklink"):
        merged = PantheonDirectory.open(tmp_path).runs[0].read(link)
        (tmp_path / f"bbr_{link}_run1.log").unlink()
        raw = PantheonDirectory.open(tmp_path).runs[0]
        assert raw.logs[link].merged is None
        again = raw.read(link)
        assert merged is not None
        assert again is not None
        assert np.abs(again.delay_ns - merged.delay_ns).max() <= 2000, "rounded to the microsecond at both ends"


def test_offsets_that_were_not_applied_are_not_said_to_be(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.applied = "in-band"
    results = evaluated(tmp_path, "--no-figures")
    assert not any("NTP" in sentence for sentence in repeated(results))
    assert "clock offset" not in (tmp_path / "cubic_stats_run1.log").read_text()
    text = clock_text(results.cells[0])
    assert "±20.125 ms" in text
    assert "-77.000 ms, lies outside" in text
    assert page_values(results, tmp_path)["schemes"][0][1][0]["clocks"] == text


def test_finished_runs_are_kept_and_another_direction_is_another_experiment(
    stand_in: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(tmp_path, "--no-figures")
    ran = len(stand_in.plans)
    evaluated(tmp_path, "--no-figures", "--ssh", "ssh -p 2222", "--tunnel-port", "5000")
    assert len(stand_in.plans) == ran
    assert main([*shlex.split(OPTIONS), "--out", str(tmp_path), "--no-figures", "--sender", "remote"]) == 2
    explained(capsys.readouterr().err, "directory-taken")


@pytest.mark.parametrize("name", ["cubic_run1.csv", "cubic_datalink_run1.log"])
@pytest.mark.parametrize("harm", [lambda text: text[:-20], lambda text: text.replace("1", "2", 1), None])
def test_harmed_files_of_a_run_with_real_packets_are_noticed(
    stand_in: StandIn, tmp_path: Path, name: str, harm: Callable[[str], str] | None
) -> None:
    options = ("--no-figures", "--logs", "all")
    evaluated(tmp_path, *options)
    ran, file = len(stand_in.plans), tmp_path / name
    if harm is None:
        file.unlink()
    else:
        file.write_text(harm(file.read_text()))
    evaluated(tmp_path, *options)
    assert [flow["scheme"] for plan in stand_in.plans[ran:] for flow in plan.spec["flows"]] == ["cubic"]
    evaluated(tmp_path, *options)
    assert len(stand_in.plans) == ran + 1


def test_its_directory_is_named_after_the_machines(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(f"{OPTIONS} --no-figures")) == 0
    assert [one.name for one in (tmp_path / "results").iterdir()] == ["AWS-California-1-to-Stanford-cellular-remote"]


def test_the_obstacle_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "require", lambda name: None)
    found = "{'name': 'rights', 'status': 'missing', 'found': 'no namespaces', 'remedy': 'be root'}"
    far = there(tmp_path, f"{HELLO}; sys.stdin.readline(); say(check={found})")
    path = HostPath(Hosts("far", remote_addr="127.0.0.1", ssh=far.ssh))
    with refused(PlatformError, "capability-missing at remote far") as caught:
        backend("remote").require(path, 10**9)
    assert caught.value.hint == "be root", "what that machine said"


def test_a_run_is_prepared_without_facts_of_the_path() -> None:
    assert prepare(HostPath(CELLULAR), ["cubic"], 1).document["facts"] is None
