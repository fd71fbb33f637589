"""External programs over real paths: those that come with ccgym, and Pantheon's wrappers."""

from __future__ import annotations

import importlib.util
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.emulation import doctor, kernel_tcp
from ccgym.errors import RealPathError
from ccgym.evaluation.backends import backend
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run_record import RunRecord
from tests.commands import evaluate as main

PATH = NetworkPath.from_mahimahi(
    "mm-delay 10 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail --uplink-queue-args=packets=40",
    name="small",
)

pytestmark = pytest.mark.real("netns")

IPERF3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3: sudo apt-get install iperf3")


def check_full(run: RunRecord) -> None:
    """The only flow of a run fills the path."""
    (flow,) = run.flows
    assert 7 < flow.throughput_mbps < 12.6
    assert flow.delay_p95_ms >= 10
    assert flow.mean_cwnd_packets is None, "it does not tell"
    assert 6 < flow.goodput_mbps < flow.throughput_mbps
    assert run.series["flows"][0]["received_bytes"][-1] == run.counters["flows"][0]["received_bytes"] > 2_000_000


@IPERF3
@pytest.mark.parametrize("cca", ["cubic", pytest.param("reno", marks=pytest.mark.long)])
def test_iperf3(cca: str) -> None:
    if kernel_tcp.why_unavailable(cca) is not None:
        pytest.skip(f"this kernel has no {cca}")
    run = backend("emulated").run(PATH, [f"program:iperf3:cca={cca}"], 4, 1)
    check_full(run)
    sender, receiver = run.path_report["programs"]
    assert (sender["end"], receiver["end"]) == ("sender", "receiver")
    assert "Mbits/sec" in sender["text"]
    assert "Server listening on 5001" in receiver["text"]


@IPERF3
def test_iperf3_beside_ours() -> None:
    run = backend("emulated").run(PATH, [{"scheme": "program:iperf3", "start": "0.5s"}, "cubic"], 4, 1)
    program, ours = run.flows
    assert (program.scheme, ours.scheme) == ("program:iperf3", "cubic")
    assert program.throughput_mbps > 1
    assert ours.throughput_mbps > 1


@IPERF3
@pytest.mark.skipif(shutil.which("mm-link") is None, reason="needs mahimahi: sudo apt-get install mahimahi")
@pytest.mark.long
def test_iperf3_inside_mahimahi() -> None:
    found = doctor.obstacle("mahimahi", doctor.examine(measure=False))
    if found is not None:
        pytest.skip(f"{found.name}: {found.found}")
    check_full(backend("mahimahi").run(PATH, ["program:iperf3"], 4, 1))


@IPERF3
def test_what_it_cannot_do_is_an_error_with_its_own_words() -> None:
    with pytest.raises(RealPathError) as caught:
        backend("emulated").run(PATH, ["program:iperf3:cca=absent"], 2, 1)
    error = caught.value
    assert "the sender of program:iperf3" in error.where
    assert "unable to set TCP_CONGESTION" in error.found
    assert error.expected
    assert error.hint


@pytest.mark.skipif(importlib.util.find_spec("libtorrent") is None, reason="needs libtorrent: pip install libtorrent")
@pytest.mark.long
def test_utp_keeps_to_its_target_delay() -> None:
    path = NetworkPath(rate="12mbps", rtt="20ms", queue="300p", name="deep")
    medians = []
    for target in (50, 25):
        run = backend("emulated").run(path, [f"program:utp:target={target}"], 8, 1)
        check_full(run)
        assert "1 peers" in run.path_report["programs"][0]["text"]
        late = run.packets.departure_ns > 4e9
        medians.append(float(np.median(run.packets.delay_ns[late])) / 1e6)
    # Propagation, the target, and as much again for what slow start left: the queue would hold 300 ms.
    assert 10 + 0.6 * 50 < medians[0] < 10 + 2 * 50, medians
    assert 10 + 0.6 * 25 < medians[1] < 10 + 2 * 25, medians


# --- Pantheon's wrappers ---------------------------------------------------------------------------------------------

COMMON = '''\
#!/usr/bin/env python3
"""A scheme of Pantheon's kind: datagrams at a fixed rate, whatever happens to them."""
import argparse, os, socket, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser()
commands = parser.add_subparsers(dest="option")
for name in ("deps", "run_first", "setup", "setup_after_reboot"):
    commands.add_parser(name)
'''
RECEIVER_FIRST = """\
commands.add_parser("receiver").add_argument("port", type=int)
sender = commands.add_parser("sender")
sender.add_argument("ip")
sender.add_argument("port", type=int)
args = parser.parse_args()
if args.option == "run_first":
    print("receiver")
elif args.option == "setup":
    open(os.path.join(HERE, "set-up"), "a").write("once\\n")
elif args.option == "receiver":
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0", args.port))
    while True:
        sock.recv(1500)
elif args.option == "sender":
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        sock.sendto(b"x" * 1400, (args.ip, args.port))
        time.sleep(0.0012)
"""
SENDER_FIRST = """\
commands.add_parser("sender").add_argument("port", type=int)
receiver = commands.add_parser("receiver")
receiver.add_argument("ip")
receiver.add_argument("port", type=int)
args = parser.parse_args()
if args.option == "run_first":
    print("sender")
elif args.option == "sender":
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0", args.port))
    data, peer = sock.recvfrom(1500)
    while True:
        sock.sendto(b"x" * 1400, peer)
        time.sleep(0.0012)
elif args.option == "receiver":
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.sendto(b"please", (args.ip, args.port))
    while True:
        sock.recv(1500)
"""
CONFIG = """\
schemes:
  first:
    name: First Scheme
    color: teal
    marker: '^'
  second:
    name: Second Scheme
    color: crimson
    marker: '*'
"""


def wrapper(folder: Path, name: str, text: str) -> Path:
    """A wrapper in Pantheon's layout: ``config.yml``, and ``wrappers/``."""
    file = folder / "wrappers" / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    (folder / "config.yml").write_text(CONFIG)
    file.write_text(COMMON + textwrap.dedent(text))
    file.chmod(0o755)
    return file


@pytest.mark.long
def test_wrappers_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path / "cache"))
    first = wrapper(tmp_path, "first", RECEIVER_FIRST)
    second = wrapper(tmp_path, "second", SENDER_FIRST)
    out = tmp_path / "results"
    command = ["--trace", "12mbps", "--backend", "emulated", "--runs", "2", "--runtime", "3", "--no-figures"]
    assert main([*command, "--schemes", f"program:{first},program:{second},reno", "--out", str(out)]) == 0
    assert (first.parent / "set-up").read_text() == "once\n"
    results = ResultSet.load(out)
    assert [style.key for style in results.styles] == ["program_first", "program_second", "reno"]
    assert (results.styles[0].label, results.styles[1].color) == ("First Scheme", "crimson")
    assert len(results.cells) == 6
    for cell in results.cells:
        assert cell.record.flows[0].throughput_mbps > 2
    assert (out / "program_first_run1_programs.log").exists()
    assert (out / "program_first_datalink_run1.log").exists()


@pytest.mark.skipif(shutil.which("mm-link") is None, reason="needs mahimahi: sudo apt-get install mahimahi")
@pytest.mark.long
def test_a_sender_that_listens_is_unavailable_inside_mahimahi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.obstacle("mahimahi", doctor.examine(measure=False))
    if found is not None:
        pytest.skip(f"{found.name}: {found.found}")
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path / "cache"))
    run = backend("mahimahi").run(PATH, [f"program:{wrapper(tmp_path, 'second', SENDER_FIRST)}"], 2, 1)
    assert "--backend emulated" in run.path_report["unavailable"][0][1]
