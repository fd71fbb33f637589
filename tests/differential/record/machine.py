"""What every recording notes about the machine, and how a shell is started on it."""

import datetime
import gzip
import os
import pathlib
import pwd
import shutil
import subprocess
import sys

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "recorded"
USER = os.environ.get("RECORD_USER", "ccrec")
REAL_TIME_PRIORITY = int(os.environ.get("RECORD_PRIORITY", "20"))  # 0: ordinary scheduling


def write_gzip(target: pathlib.Path, text: str) -> None:
    """The same bytes for the same text."""
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.encode())


def output_of(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def package_versions() -> dict[str, str]:
    names = ("mahimahi", "mahimahi-traces", "iptables", "dnsmasq-base", "tcpdump")
    return {name: output_of("dpkg-query", "-W", "-f=${Version}", name) for name in names}


def describe() -> dict:
    return {
        "date_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "kernel": f"{os.uname().release} {os.uname().version} {os.uname().machine}",
        "distribution": output_of("sh", "-c", '. /etc/os-release; echo "$PRETTY_NAME"'),
        "cores": os.cpu_count(),
        "real_time_priority": REAL_TIME_PRIORITY,
        "packages": package_versions(),
        "iptables_seen_by_mahimahi": output_of("iptables", "-V"),
    }


def require_root() -> None:
    if os.geteuid() != 0:
        sys.exit("run as root: capture, sysctl and real-time priority need it")
    for program in ("mm-link", "tcpdump", "nsenter", "chrt", "setpriv"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing; see README.md")


def prioritized(*command: str, below: int = 0) -> list[str]:
    if REAL_TIME_PRIORITY == 0:
        return list(command)
    return ["chrt", "--rr", str(REAL_TIME_PRIORITY - below), *command]


def real_time() -> bool:
    """Whether this process may give real-time priority."""
    command = ["chrt", "--rr", str(REAL_TIME_PRIORITY), "true"]
    return shutil.which("chrt") is not None and subprocess.run(command, capture_output=True).returncode == 0


def become_root_for_iptables(folder: pathlib.Path) -> None:
    """Put a script in iptables' place, in this mount namespace: since 1.8.8 it exits 111 for a setuid caller."""
    target = pathlib.Path("/usr/sbin/iptables").resolve()
    real, script = folder / "iptables", folder / "iptables-as-root"  # it goes by the name it is called by
    real.touch()
    script.write_text(f'#!/bin/sh -p\nexec setpriv --reuid 0 --regid 0 --clear-groups {real} -w 20 "$@"\n')
    script.chmod(0o755)
    for source, place in ((target, real), (script, target)):
        subprocess.run(["mount", "--bind", str(source), str(place)], check=True)


def as_user(*command: str) -> list[str]:
    """COMMAND with real-time priority, as the unprivileged user the shells insist on."""
    account = pwd.getpwnam(USER)
    return [
        *prioritized("setpriv"), f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups",
        *command,
    ]  # fmt: skip


def load() -> list[float]:
    return [round(value, 2) for value in os.getloadavg()]
