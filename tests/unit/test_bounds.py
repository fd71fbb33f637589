"""Simulations have bounds: in memory, in what they take on, and in how long they go on after Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from ccgym import NetworkPath, simulate
from ccgym.errors import ConfigError, SimulationError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.prepared_run import Record
from ccgym.schemes.reading import scheme_of
from ccgym.tracetools.check import check_trace
from tests.refusals import explained, refused

OPEN = NetworkPath(mahimahi="mm-delay 20")
LOSSY = NetworkPath(mahimahi="mm-delay 20 mm-loss uplink 0.001")
NOTHING = Record(packets=False, series="0s")


# --- Paths that limit nothing ------------------------------------------------------------------------------------


def test_a_path_without_a_link_is_remarked_on() -> None:
    assert [finding.code for finding in OPEN.check()] == ["no-link"]
    assert LOSSY.check() == []
    assert NetworkPath(mahimahi="mm-delay 20 mm-link 12mbps 12mbps").check() == []


@pytest.mark.parametrize("scheme", ["cubic", "bbr", "oracle"])
def test_greedy_flows_without_a_link_are_refused(scheme: str) -> None:
    with refused(SimulationError, "path-without-link"):
        simulate(OPEN, [scheme], "1s")
    with refused(ConfigError, "path-without-link at path"):
        Experiment(path=OPEN, schemes=(scheme_of("fixed_rate"), scheme_of(scheme)))


def test_evaluate_refuses_before_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.commands import evaluate as main

    out = tmp_path / "out"
    assert main(["--mahimahi", "mm-delay 20", "--schemes", "cubic,fixed_rate", "--no-figures", "--out", str(out)]) == 2
    explained(capsys.readouterr().err, "path-without-link at --mahimahi")
    assert not out.exists()


@pytest.mark.parametrize(
    ("path", "flow"),
    [
        (OPEN, "fixed_rate:rate_mbps=8"),
        (OPEN, "fixed_window:cwnd=20"),
        (OPEN, "aurora"),
        (OPEN, {"scheme": "cubic", "source": "1MB"}),
        (OPEN, {"scheme": "cubic", "source": {"kind": "rate", "rate": "8mbps"}}),
        (NetworkPath(mahimahi="mm-delay 20 mm-loss uplink 0.01"), "cubic"),
    ],
)
def test_flows_that_something_limits_run(path: NetworkPath, flow: object) -> None:
    assert simulate(path, [flow], "1s").flows[0].sent_packets > 10  # type: ignore[list-item]


# --- Memory --------------------------------------------------------------------------------------------------------


def test_memory_is_bounded_by_an_option() -> None:
    with refused(SimulationError, "memory-exceeded"):
        simulate(LOSSY, ["bbr"], "2s", record=Record(packets=False, series="0s", max_memory="50MB"))
    wide = NetworkPath(rate="1gbps", rtt="1ms")
    with refused(SimulationError, "memory-exceeded"):
        simulate(wide, ["cubic"], "10s", record=Record(max_memory="5MB"))
    with refused(SimulationError, "memory-exceeded"):
        simulate(NetworkPath(rate="12kbps", rtt="1ms"), ["cubic"], "1000000s")
    assert simulate(wide, ["cubic"], "100ms", record=Record(max_memory="1GB")).total.throughput_mbps > 100


@pytest.mark.parametrize(
    ("size", "code"), [("94p", "quantity-malformed"), ("4", "unit-missing"), ("1bdp", "quantity-malformed")]
)
def test_memory_needs_its_unit(size: str, code: str) -> None:
    with refused(ConfigError, f"{code} at max_memory"):
        simulate(NetworkPath(rate="12mbps", rtt="1ms"), ["cubic"], "1s", record=Record(max_memory=size))


def limited(code: str, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Run Python code that gets so much more address space than it has when it begins with its work."""
    prologue = f"""
        import resource
        from ccgym import NetworkPath, simulate
        from ccgym.errors import SimulationError
        from ccgym.evaluation.prepared_run import Record
        path = NetworkPath(rate="12mbps", rtt="40ms")
        simulate(path, ["cubic", "bbr"], "1s")
        have = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (have + {megabytes} * 1_000_000, -1))
    """
    text = textwrap.dedent(prologue) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
def test_memory_does_not_grow_where_nothing_is_recorded() -> None:
    # Two million packets: five bytes for each would be too much.
    done = limited(
        """
        simulate(path, ["cubic", "bbr"], "2000s", record=Record(packets=False, series="0s"))
        """,
        10,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
def test_an_allocation_that_fails_is_an_error() -> None:
    grows = "NetworkPath(mahimahi='mm-delay 20 mm-loss uplink 0.001')"
    for scheme, path in (("bbr", grows), ("cubic", "NetworkPath(rate='10gbps', rtt='2ms')")):
        done = limited(
            f"""
            try:
                simulate({path}, [{scheme!r}], "60s")
            except SimulationError as error:
                assert (error.code, "max_memory" in error.expected) == ("memory-exceeded", False), error
            else:
                raise SystemExit("it had enough")
            """,
            150,
        )
        assert done.returncode == 0, done.stderr


# --- Ctrl-C --------------------------------------------------------------------------------------------------------

PROLOGUE = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import json
import numpy as np
from ccgym import NetworkPath, _core, simulate
from ccgym.schemes.flow import flow_spec
from ccgym.evaluation.prepared_run import Record, prepare
from ccgym.evaluation.simulate import Job, simulate_many
NOTHING = Record(packets=False, series="0s")
PATH = NetworkPath(rate="1gbps", rtt="40ms", queue="1bdp")
# Native code runs by the time this is said: other threads of Python run while it does.
threading.Thread(target=lambda: (time.sleep(1), print("simulating", flush=True)), daemon=True).start()
try:
{body}
except KeyboardInterrupt:
    sys.exit(130)
"""

BODIES = {
    "one flow": "simulate(PATH, ['cubic'], '100000s', record=NOTHING)",
    "held packets": """
path = NetworkPath(rate="1gbps", rtt="40ms", queue={"kind": "codel", "limit": "1000p"}, jitter="1ms")
simulate(path, ['cubic'], '100000s', record=NOTHING)
""",
    "many flows": "simulate(PATH, ['cubic'] * 5000, '1000s', record=NOTHING)",
    "many runs": "simulate_many([Job(PATH, ['cubic'], '100000s', seed) for seed in range(8)], record=NOTHING)",
    "the first decision": """
from ccgym.schemes.policies import pretrained
agent = json.loads(pretrained()["aurora"].with_name("card.json").read_text())["agent"]
document = dict(prepare(PATH, ['cubic', 'cubic'], '100000s', 1, NOTHING).document)
document["flows"][1].update(scheme="learned", start=99_000 * 10**9)
batch = _core.AgentBatch(json.dumps(agent), 1)
batch.reset(0, json.dumps(document), {}, 0, np.zeros((1, batch.observation_size), dtype=np.float32))
""",
    "decisions in several threads": """
from ccgym.schemes.policies import pretrained
agent = json.loads(pretrained()["aurora"].with_name("card.json").read_text())["agent"]
agent["clock"] = {"kind": "fixed", "interval": 1000 * 10**9}
path = NetworkPath(rate="10gbps", rtt="40ms", queue="1bdp")
document = dict(prepare(path, ["cubic", "cubic"], "100000s", 1, NOTHING).document)
document["flows"][0].update(scheme="learned")
document["flows"][1].update(start=1001 * 10**9)
batch = _core.AgentBatch(json.dumps(agent), 2, 1, 2)
obs = np.zeros((2, batch.observation_size), dtype=np.float32)
for index in range(2):
    batch.reset(index, json.dumps(document), {}, 0, obs)
batch.step(
    np.zeros((2, batch.action_size), dtype=np.float32), obs, np.zeros(2), np.zeros((2, len(batch.terms()))),
    np.zeros((2, len(batch.columns()))), np.zeros(2, dtype=np.uint8), np.zeros(2, dtype=np.uint8),
)
""",
    "evaluate": """
from tests.commands import evaluate as main
out = sys.argv[1] + "/out"
sys.exit(main(["--mahimahi", "mm-delay 20 mm-link 12mbps 12mbps", "--schemes", "cubic,bbr", "--runs", "50",
               "--runtime", "80000", "--no-figures", "--logs", "none", "--out", out]))
""",
}


@pytest.mark.parametrize("name", list(BODIES))
def test_ctrl_c_ends_it(name: str, tmp_path: Path) -> None:
    """By itself each would take minutes."""
    code = PROLOGUE.format(body=textwrap.indent(BODIES[name].strip(), "    "))
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() == "simulating":
                    break
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, error
    assert "Traceback" not in error


# --- What a path and a trace may be --------------------------------------------------------------------------------


def test_paths_of_very_many_elements_are_refused() -> None:
    element = {"kind": "loss", "probability": "1%"}
    for make, what in (
        (lambda: NetworkPath(mahimahi="mm-delay 1 " * 9_000), "too-large at (mm-delay)"),
        (lambda: NetworkPath(mahimahi="mm-link 12mbps 12mbps -- " * 4_000), "too-large at (mm-link)"),
        (lambda: NetworkPath(rate="5mbps", rtt="1ms", elements=[element] * 20_000), "wrong-count at elements"),
        (lambda: NetworkPath(chain=[element] * 20_000), "too-large at chain"),
    ):
        with refused(ConfigError, what):
            make()


def test_a_trace_of_terabits_is_no_trace() -> None:
    found = check_trace(np.ones(3_000_000, dtype=np.uint64))
    assert [(one.severity, one.code) for one in found] == [("error", "too-fast")]
    assert "36 Tbit/s" in found[0].message
    assert check_trace(np.ones(5, dtype=np.uint64)) == []


def test_policies_claim_only_so_much() -> None:
    import hashlib
    import json

    from ccgym import _core
    from ccgym.schemes.policies import pretrained

    file = pretrained()["indigo"]
    card, onnx = json.loads(file.with_name("card.json").read_text()), file.read_bytes()
    assert card["onnx_sha256"] == hashlib.sha256(onnx).hexdigest()
    for size in (2 * 10**9, 9 * 10**18):
        card["policy"]["state_size"] = size
        with pytest.raises(ValueError, match="65536") as caught:
            _core.Policy.load(onnx, json.dumps(card))
        assert vars(caught.value)["place"] == "card.policy.state_size"
