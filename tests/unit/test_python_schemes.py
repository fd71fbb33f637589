"""Schemes in Python: how they are asked for, what identifies them, and what is said when they are wrong."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ccgym import NetworkPath, simulate, simulate_many
from ccgym.cli.endpoint import sender_job
from ccgym.emulation import python_schemes
from ccgym.emulation.python_schemes import PythonSource
from ccgym.errors import CcgymError, ConfigError, SimulationError
from ccgym.evaluation.run import Run, contender, parse_contenders
from ccgym.evaluation.simulate import Job
from ccgym.schemes.groups import GROUPS, expanded
from ccgym.schemes.reading import parse_scheme, read_scheme
from tests.commands import parsed
from tests.refusals import refused

AIMD = f"{Path(__file__).resolve().parents[2]}/examples/aimd.py:AIMD"
PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="60p")

WRONG = """\
class Raises:
    cwnd = 10

    def on_ack(self, ack):
        self.cwnd = 1 / 0  # line 5


class NotANumber:
    def __init__(self, after=20):
        self.cwnd, self.after = 10, after

    def on_ack(self, ack):
        self.after -= 1
        if self.after < 0:
            self.cwnd = float("nan")  # line 15


class Negative:
    cwnd = 100

    def on_loss(self, loss):
        self.cwnd = self.cwnd - 1000  # line 22


class Endless:
    cwnd = 1

    def on_ack(self, ack):
        self.cwnd *= 2  # line 29


class Text:
    def __init__(self):
        self.cwnd = "10"  # line 34

    def on_ack(self, ack): ...


class Undecided:
    def on_ack(self, ack): ...


class Late:
    cwnd = 10

    def on_start(self, start):
        self.pacing_rate_bps = 0  # line 47

    def on_interval(self, interval): ...


class Quits:
    cwnd = 10

    def on_ack(self, ack):
        raise SystemExit(3)  # line 56


class Two:
    def on_ack(self, ack):
        self.cwnd = 10
        if ack:
            self.cwnd = 0.5  # line 63

    cwnd = 10


class Short:
    cwnd, interval_s = 10, 0.01

    def on_interval(self, interval):
        self.interval_s = 1e-6  # line 72


class Deaf:
    cwnd = 10


class Fails:
    def __init__(self):
        raise RuntimeError("not today")  # line 81

    def on_ack(self, ack): ...
"""


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    return file


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("Raises", "scheme-raised at wrong.py:5: Raises.on_ack"),
        ("NotANumber", "scheme-answer-invalid at wrong.py:15: NotANumber.on_ack"),
        ("Negative", "scheme-answer-invalid at wrong.py:22: Negative.on_loss"),
        ("Endless", "scheme-answer-invalid at wrong.py:29: Endless.on_ack"),
        ("Text", "scheme-answer-invalid at wrong.py:34: Text.__init__"),
        ("Undecided", "scheme-answer-invalid at wrong.py: Undecided.__init__"),
        ("Late", "scheme-answer-invalid at wrong.py:47: Late.on_start"),
        ("Quits", "scheme-raised at wrong.py:56: Quits.on_ack"),
        ("Two", "scheme-answer-invalid at wrong.py:63: Two.on_ack"),
        ("Short", "scheme-answer-invalid at wrong.py:72: Short.on_interval"),
    ],
)
def test_a_run_ends_with_the_line(wrong: Path, name: str, what: str) -> None:
    with refused(SimulationError, what):
        simulate(PATH, [f"{wrong}:{name}"], "20s")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{file}:Deaf", "unknown-class"),
        ("{file}:Fails", "scheme-raised at wrong.py:81: Fails.__init__"),
        ("{file}:Raise", "unknown-class at wrong.py"),
        ("{file}:NotANumber:afetr=3", "unknown-parameter at --schemes"),
        ("{file}", "argument-missing at --schemes"),
        ("{file}:a b", "argument-missing at --schemes"),
        ("nowhere.py:AIMD", "file-unreadable at --schemes"),
        ("{broken}:Any", "scheme-unimportable at broken.py:2"),
        ("{raising}:Any", "scheme-unimportable at raising.py:2"),
    ],
)
def test_what_cannot_be_asked_for(wrong: Path, text: str, what: str) -> None:
    files = {"broken": "import math\ndef f(:\n", "raising": "import math\nnothing\n"}
    for name, source in files.items():
        (wrong.parent / f"{name}.py").write_text(source)
    given = text.format(file=wrong, **{name: wrong.parent / f"{name}.py" for name in files})
    with refused(CcgymError, what) as caught:
        parse_contenders(given, "--schemes")
    assert caught.value.where.startswith("--schemes")


def test_what_one_types() -> None:
    choice = parse_scheme(f"{AIMD}:beta=0.7")
    assert re.fullmatch(r"AIMD\.py@[0-9a-f]{8}", choice.name)
    assert (choice.title, choice.text, choice.seed_text) == ("AIMD", f"{AIMD}:beta=0.7", "AIMD:beta=0.7")
    assert re.fullmatch(r"AIMD_[0-9a-f]{8}_beta_0\.7", choice.key)
    assert choice.style.label == "AIMD (aimd.py) (beta 0.7)"
    assert parse_scheme(choice.text) == choice
    assert read_scheme("a:b.py:C:x=1").name == "a:b.py:C", "a path may hold a colon"
    both = contender(f"{AIMD}+cubic@5s")
    assert [flow.start_ns for flow in both.flows] == [0, 5 * 10**9]


def test_the_content_of_the_file_identifies_a_run(tmp_path: Path) -> None:
    source = Path(AIMD.rpartition(":")[0]).read_text()

    def digest(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return Run(PATH, contender(f"{tmp_path}/{name}:AIMD"), 10**9, 1).digest

    one, moved = digest("one.py", source), digest("two.py", source)
    assert one == moved, "the place does not count"
    assert digest("one.py", source + "\n# changed\n") != one


def test_a_run_keeps_the_version_that_was_checked(tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    file.write_text("class A:\n    cwnd = 10\n    def on_ack(self, ack): ...\n")
    flows = contender(f"{file}:A").flows
    before = simulate(PATH, flows, "1s").trajectory_hash
    file.write_text("class A:\n    cwnd = 20\n    def on_ack(self, ack): ...\n")
    assert simulate(PATH, flows, "1s").trajectory_hash == before
    assert simulate(PATH, [f"{file}:A"], "1s").trajectory_hash != before


def test_marks_come_back_to_those_that_ask(tmp_path: Path) -> None:
    file = tmp_path / "marked.py"
    file.write_text(
        "class Unmarked:\n    cwnd, ecn = 100, False\n    def on_ack(self, ack):\n        assert not ack.ce_packets\n"
        "class Marked(Unmarked):\n    ecn = True\n"
    )
    path = NetworkPath(rate="12mbps", rtt="20ms", queue={"kind": "codel", "limit": "200p", "ecn": True})
    simulate(path, [f"{file}:Unmarked"], "3s")
    with refused(SimulationError, "scheme-raised at marked.py:4: Marked.on_ack"):
        simulate(path, [f"{file}:Marked"], "3s")


def test_one_of_many_that_fails_ends_the_others(wrong: Path) -> None:
    with refused(SimulationError, "scheme-raised at wrong.py:5: Raises.on_ack"):
        simulate_many([Job(PATH, [f"{wrong}:Raises"], "5s", seed) for seed in range(4)], threads=2)


def test_endpoints_and_environments_refuse_them() -> None:
    with refused(ConfigError, "scheme-unsuitable at --scheme"):
        sender_job(parsed("sender", ["--to", "127.0.0.1:1", "--scheme", AIMD]))
    from ccgym.envs import LinkEnv

    with refused(ConfigError, "scheme-unsuitable at flows[0]"):
        LinkEnv("aurora", path=PATH, flows=[AIMD])


def test_a_run_process_says_it_as_json(
    wrong: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ccgym import _core

    source = PythonSource(str(wrong), "Raises", WRONG)
    sources = json.dumps(python_schemes.document({"Raises.py@test": source}))
    assert python_schemes.make_all(sources)["Raises.py@test"].__name__ == "Raises"
    ended: list[int] = []
    monkeypatch.setattr(python_schemes.os, "_exit", ended.append)
    python_schemes.end_process(_core.SchemeFailure("Raises.py@test", "on_ack", "cwnd", "nan"))
    said = json.loads(capsys.readouterr().err.rstrip().rpartition("\n")[2])
    assert ended == [2]
    assert (said["code"], said["place"]) == ("scheme-answer-invalid", f"{wrong}:5: Raises.on_ack")


def test_groups() -> None:
    assert expanded(["learned", "cubic"])[-1] == "cubic"
    assert expanded(["classic", "cubic"]).count("cubic") == 1, "by name and by a group"
    assert "cubic:beta=0.5" in expanded(["classic", "cubic:beta=0.5"])
    assert set(GROUPS["default"].members()) <= set(GROUPS["all"].members())
    assert not {"oracle", "aurora"} & set(GROUPS["classic"].members())
    titles = [one.key for one in parse_contenders("classic,eagle")]
    assert titles[-1] == "eagle"
    for word, group in GROUPS.items():
        assert len(parse_contenders(word)) == len(set(group.members())) > 0, word


@pytest.mark.parametrize(
    "body", ["while True: pass", pytest.param("__import__('time').sleep(0.05)", marks=pytest.mark.long)]
)
def test_one_control_c_ends_a_scheme_that_does_not_return(body: str, tmp_path: Path) -> None:
    file = tmp_path / "busy.py"
    file.write_text(f"class Busy:\n    cwnd = 10\n    def on_ack(self, ack):\n        {body}\n")
    command = [sys.executable, "-u", "-m", "ccgym.cli.main", "evaluate", "--trace", "12mbps", "--schemes"]
    command += [f"{file}:Busy", "--runs", "2", "--out", str(tmp_path / "out"), "--no-figures"]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(
        command,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "out" / "ccgym_manifest.json").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    finally:
        process.kill()
        process.wait()
