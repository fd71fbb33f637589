"""What all kinds of schemes have alike: wrong names are refused, seeds are those of our scheme, looks differ."""

from __future__ import annotations

import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import CcgymError, ConfigError, SchemeNotFoundError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.simulate import simulate
from ccgym.schemes.reading import parse_scheme
from tests.refusals import refused

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        # Our own.
        ("cubci", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("", ConfigError, "argument-missing at --schemes"),
        (",", ConfigError, "argument-missing at --schemes"),
        ("cubic,cubic", ConfigError, "duplicate at --schemes"),
        ("fixed_window:cwnd=1,fixed_window:cwnd=1", ConfigError, "duplicate at --schemes"),
        ("fixed_window:cwnd", ConfigError, "text-malformed at --schemes"),
        ("fixed_window:=5", ConfigError, "text-malformed at --schemes"),
        ("fixed_window:cwnd=1:cwnd=2", ConfigError, "duplicate at --schemes"),
        ("fixed_window:cwmd=5", ConfigError, "unknown-parameter at --schemes: scheme fixed_window"),
        ("fixed_window:cwnd=many", ConfigError, "parameter-invalid at --schemes: scheme fixed_window, parameter cwnd"),
        ("fixed_window:cwnd=-1", ConfigError, "parameter-invalid at --schemes: scheme fixed_window, parameter cwnd"),
        # The kernel's TCP.
        ("tcp:", ConfigError, "argument-missing at --schemes"),
        ("tcp:Bad Name", ConfigError, "argument-missing at --schemes"),
        ("tcp:" + "x" * 16, ConfigError, "argument-missing at --schemes"),
        ("tcp:../etc", ConfigError, "argument-missing at --schemes"),
        ("tcp:cubci", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("tcp:cubic:beta=0.5", ConfigError, "unknown-parameter at --schemes"),
        ("tcp:bbr,tcp:bbr", ConfigError, "duplicate at --schemes"),
        # QUIC by a library.
        ("quic:", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("quic:cubci", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("quic:cubic:beta=0.5", ConfigError, "unknown-parameter at --schemes"),
        ("quic:bbr,quic:bbr", ConfigError, "duplicate at --schemes"),
        # External programs.
        ("program:", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("program:iperf4", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("program:/nowhere/wrapper.py", SchemeNotFoundError, "unknown-scheme at --schemes"),
        ("program:/nowhere/mine.yaml", ConfigError, "file-unreadable at /nowhere/mine.yaml"),
        ("program:iperf3:cc=bbr", ConfigError, "unknown-parameter at --schemes"),
        ("program:iperf3:cca=b b", ConfigError, "text-malformed at --schemes"),
        ("program:iperf3:cca={port}", ConfigError, "text-malformed at --schemes"),
        ("program:iperf3,program:iperf3", ConfigError, "duplicate at --schemes"),
    ],
)
def test_wrong_schemes(text: str, kind: type[CcgymError], word: str) -> None:
    with refused(kind, word):
        parse_contenders(text, "--schemes")


@pytest.mark.parametrize("name", ["tcp:bbr", "quic:bbr", "program:iperf3"])
def test_what_is_not_ours_cannot_be_simulated(name: str) -> None:
    with refused(ConfigError, "scheme-unsuitable at flows[1]"):
        simulate(PATH, ["cubic", name], "1s")
    with refused(ConfigError, "scheme-unsuitable at schemes"):
        Experiment(path=PATH, schemes=parse_contenders(f"cubic,{name}"))
    with refused(ConfigError, "scheme-unsuitable at --scheme"):
        parse_scheme(name).refuse("endpoint", "--scheme")


@pytest.mark.parametrize("name", ["tcp:bbr", "quic:bbr"])
def test_it_meets_the_same_losses_as_ours(name: str) -> None:
    made = Experiment(path=PATH, schemes=parse_contenders(f"{name},bbr,cubic"), backend="emulated")
    theirs, ours, other = (made.run_seed(one, 1) for one in made.schemes)
    assert theirs == ours != other
