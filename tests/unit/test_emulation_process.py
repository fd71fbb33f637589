"""Run processes: started, watched, ended; their errors; what they get. Small scripts stand for the native ones."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ccgym.emulation import control_pb2, job, process
from ccgym.emulation.control import Connection, Server
from ccgym.emulation.plan import Plan, PolicyFiles, trace_files
from ccgym.emulation.process import RunProcess, native_error, output_of, run_plan
from ccgym.errors import PathNotFoundError, RealPathError
from tests.refusals import refused

SPEC = {"seed": 1, "duration": 100_000_000, "uplink": [], "downlink": [], "flows": [{"scheme": "cubic"}]}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that holds nothing else."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def acting(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a script run in place of the process that does jobs; its argument is the descriptor of its job."""
    monkeypatch.setattr(
        job, "command", lambda memory: [sys.executable, "-c", f"import sys, time\n{script}", str(memory.fd)]
    )


# --- Plans ---------------------------------------------------------------------------------------------------------


def test_a_plan_as_the_native_core_reads_it(tmp_path: Path) -> None:
    plan = Plan(
        spec=SPEC,
        traces=trace_files(["12mbps.trace"]),
        policies={"aurora@1": PolicyFiles(Path("a.onnx"), Path("a.json"))},
    )
    document = plan.document(tmp_path / "result")
    assert json.loads(json.dumps(document)) == document
    assert set(document) == {
        "spec", "traces", "policies", "guests", "agent", "quic", "programs", "control", "backend",
        "result",
    }  # fmt: skip
    assert document["backend"] == {"kind": "emulated"}
    assert Path(document["traces"]["12mbps.trace"]).is_file()
    assert os.path.isabs(document["policies"]["aurora@1"]["onnx"])
    assert plan.duration_s == 0.1
    shells = Plan(spec=SPEC, mahimahi=(("mm-delay", "5"),)).document(tmp_path / "result")
    assert shells["backend"] == {"kind": "mahimahi", "shells": [["mm-delay", "5"]]}


def test_a_trace_that_is_not_there() -> None:
    with refused(PathNotFoundError, "unknown-trace"):
        trace_files(["no-such-trace"])


# --- Errors --------------------------------------------------------------------------------------------------------


def test_a_native_error_is_the_last_line() -> None:
    line = json.dumps({"place": "opening /dev/net/tun", "found": "EPERM", "expected": "rights", "hint": "be root"})
    error = native_error(f"something\n{line}\n\n")
    assert (error.where, error.found, error.expected, error.hint) == (
        "opening /dev/net/tun", "EPERM", "rights", "be root",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n", "panic", '{"place": "x"}', "[1]", '{"found": "early"}\nlate words'])
def test_what_is_no_native_error(text: str) -> None:
    assert native_error(text) is None


def test_an_error_of_the_run_process_names_its_step(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"place": "handshake of flow 0", "found": "no answer", "expected": "one", "hint": "look"})
    acting(monkeypatch, f"print('''{line}''', file=sys.stderr); sys.exit(2)")
    with refused(RealPathError, "run-failed at handshake of flow 0"):
        run_plan(Plan(SPEC))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('thread main panicked', file=sys.stderr); sys.exit(101)", "run-failed at backend emulated"),
        ("import os; os.kill(os.getpid(), 9)", "run-failed at backend emulated"),
    ],
)
def test_an_end_that_explains_nothing(
    script: str, words: list[str], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting(monkeypatch, script)
    with refused(RealPathError, words):
        run_plan(Plan(SPEC))
    assert list(temporary.iterdir()) == []


def test_what_a_run_process_says_is_kept_in_part(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"place": "step", "found": "EPERM", "expected": "", "hint": ""})
    script = f"for _ in range(2): sys.stderr.write('x' * 2**20)\nsys.stderr.write(chr(10) + '''{line}''')"
    acting(monkeypatch, f"{script}\nsys.exit(2)")
    with RunProcess(Plan(SPEC)) as run:
        with pytest.raises(RealPathError) as caught:
            run.wait()
        assert len(run._errors.read()) < 200_000
    assert caught.value.where == "step"


# --- Life and death ------------------------------------------------------------------------------------------------

WAITS_FOR_ITS_PARENT = "sys.stdin.buffer.read()"


def test_it_is_told_what_to_do_and_ends_with_its_standard_input(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting(
        monkeypatch,
        "import json\n"
        "((kind, plan),) = json.load(open(int(sys.argv[1]))).items()\n"
        "open(plan['result'], 'w').write('here')\n"
        "print('ready to', kind, file=sys.stderr, flush=True)\n"
        "sys.stdin.buffer.read()",
    )
    with RunProcess(Plan(SPEC)) as run:
        _until(lambda: b"ready to run" in run._errors.read())
        assert run.poll() is None
        assert run._result.read() == b"here"
        assert list(temporary.iterdir()) == [], "it lies in memory"
    assert run.poll() == 0
    assert list(temporary.iterdir()) == []
    run.end()


def test_what_does_not_hear_is_killed_with_its_children(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    child = tmp_path / "child"
    acting(
        monkeypatch,
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(child.pid) + chr(10))\n"
        "time.sleep(600)",
    )
    with RunProcess(Plan(SPEC)) as run:
        _until(lambda: child.exists() and child.read_text().endswith("\n"))
    assert run.poll() == -9
    _until(lambda: _is_gone(int(child.read_text())))
    assert list(temporary.iterdir()) == []


def test_a_run_that_stalls_is_killed_and_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, "print('still connecting', file=sys.stderr, flush=True); time.sleep(600)")
    with RunProcess(Plan(SPEC)) as run:
        _until(lambda: b"still connecting" in run._errors.read())
        with refused(RealPathError, "run-stalled at backend emulated") as caught:
            run.wait(slack_s=0.5)
    assert "still connecting" in caught.value.found, "what it said last"
    assert run.poll() == -9
    assert list(temporary.iterdir()) == []


def test_a_run_can_be_given_up_from_another_thread(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, WAITS_FOR_ITS_PARENT)
    asked = []

    class Halt(threading.Event):
        def is_set(self) -> bool:
            asked.append(1)
            return len(asked) == 2

    with refused(RealPathError, "run-abandoned at backend emulated"):
        run_plan(Plan({**SPEC, "duration": 600 * 10**9}), Halt())
    assert len(asked) == 2, "it ends in the turn in which it gets that"
    assert list(temporary.iterdir()) == []


def test_control_c_ends_the_run(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, WAITS_FOR_ITS_PARENT)

    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    with RunProcess(Plan(SPEC)) as run, monkeypatch.context() as patch:
        patch.setattr(run._process, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.wait()
    assert run.poll() == 0
    assert list(temporary.iterdir()) == []


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _until(holds: Callable[[], bool]) -> None:
    """Wait for what must come, however slow the machine."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- Commands that answer ------------------------------------------------------------------------------------------


def test_answers_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, "print(open(int(sys.argv[1])).read())")
    assert output_of("doctor", {"measure": False}) == {"doctor": {"measure": False}}


@pytest.mark.parametrize(
    ("script", "word", "timeout_s"),
    [
        (
            'print(\'{"place": "doctor", "found": "trouble"}\', file=sys.stderr); sys.exit(2)',
            "run-failed at doctor",
            60,
        ),
        ("sys.exit(3)", "run-failed at ccgym doctor", 60),
        ("print('not json')", "protocol-error at ccgym doctor", 60),
        ("time.sleep(60)", "no-answer at ccgym doctor", 0.5),
    ],
)
def test_answers_that_are_none(script: str, word: str, timeout_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, script)
    with refused(RealPathError, word):
        output_of("doctor", {}, timeout_s=timeout_s)


def test_the_run_process_finds_ccgym_anywhere_and_nothing_else(tmp_path: Path) -> None:
    for name in ("ccgym", "json", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the working directory was imported')")
    memory = job.memory("doctor", {"measure": "no"})
    done = subprocess.run(
        job.command(memory), cwd=tmp_path, env={"PATH": "/bin"}, capture_output=True, text=True, pass_fds=(memory.fd,)
    )
    memory.close()
    assert (done.returncode, done.stdout) == (2, "")


# --- Messages --------------------------------------------------------------------------------------------------------


def test_messages_may_come_in_pieces() -> None:
    near, far = socket.socketpair()
    connection = Connection(near)
    data = b""
    for sequence in (1, 300):
        body = control_pb2.FromSender(
            interval=control_pb2.Interval(sequence=sequence, observation=[0.5] * 100)
        ).SerializeToString()
        data += bytes([len(body) & 0x7F | 0x80, len(body) >> 7]) + body
    found = []
    for byte in data:
        far.send(bytes([byte]))
        connection.receive()
        while (message := connection.next()) is not None:
            found.append(message.sequence)
    assert found == [1, 300]
    assert connection.is_open
    far.close()
    connection.receive()
    assert not connection.is_open
    connection.act(control_pb2.Interval(), [0.0])  # the other end is closed, which is seen when listening
    connection.close()


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x0f", b"\x03\x0a\x7f\x00", b"\x00"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    near, far = socket.socketpair()
    connection = Connection(near)
    far.send(data)
    connection.receive()
    with refused(RealPathError, "protocol-error at the sender's control socket"):
        connection.next()
    connection.close()
    far.close()


def test_a_socket_is_private_and_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    server = Server()
    assert server.path.parent.stat().st_mode & 0o777 == 0o700
    assert server.accept(0.0) is None
    server.close()
    server.close()
    assert not server.path.parent.exists()


def test_the_types_are_those_of_the_messages() -> None:
    stub = Path(control_pb2.__file__).with_suffix(".pyi")
    typed = {
        node.name: {line.target.id for line in node.body if isinstance(line, ast.AnnAssign)}
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    real = {
        name: set(value.DESCRIPTOR.fields_by_name)
        for name, value in vars(control_pb2).items()
        if hasattr(value, "DESCRIPTOR")
    }
    assert typed == real
