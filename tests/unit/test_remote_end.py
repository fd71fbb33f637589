"""What the other machine says and gets: messages, plans and results, also malformed ones and such without end.

Small scripts stand for SSH.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ccgym import _core
from ccgym.cli import tunnel_end
from ccgym.config.hosts import Hosts
from ccgym.emulation import python_schemes, remote, remote_end
from ccgym.emulation.plan import Plan, PolicyFiles, TunnelEnd
from ccgym.emulation.programs import ProgramWords
from ccgym.emulation.python_schemes import PythonSource
from ccgym.emulation.remote_end import RemoteEnd, remote_command
from ccgym.emulation.remote_messages import packed_half, unpacked_half
from ccgym.errors import ConfigError, RealPathError
from tests.refusals import refused


def there(tmp_path: Path, script: str) -> Hosts:
    """A machine on which a script runs in place of ccgym; its arguments are those of SSH."""
    file = tmp_path / "ssh.py"
    file.write_text(
        f"import json, sys, time\ndef say(**what): print(json.dumps({{'ccgym': what}}), flush=True)\n{script}\n"
    )
    return Hosts("far:some where", ssh=shlex.join([sys.executable, str(file)]))


HELLO = f"say(hello={{'version': {_core.__version__!r}, 'git': 'a'}})"


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
    with RemoteEnd(
        there(tmp_path, f"sys.stdin.readline(); print({line}, end='', flush=True); sys.stdin.read()")
    ) as end:
        end.send({}, longest_result=2**22)
        with refused(RealPathError, "protocol-error at some where"):
            end.wait("result", 10)


def test_a_machine_that_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_end, "SLACK_S", 0.5)
    monkeypatch.setattr(remote_end, "GRACE_S", 0.5)
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
    script = f"sys.stderr.write('first line\\n')\nfor _ in range(2): sys.stderr.write({MEGABYTE})"
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
    back = Plan.unpacked(data)
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
