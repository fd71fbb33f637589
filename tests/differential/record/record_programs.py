#!/usr/bin/env python3
"""Run the programs of the founding reports over the emulated path, and keep what is compared with our schemes.

  record_programs.py DIRECTORY [--only fillp,pcc] [--paths steps,walk] [--runs 3]

DIRECTORY is what `programs/build.sh` made, or the word `ours`: then our schemes run over the same emulated path, and
`recorded/programs/emulated/` keeps them. Each program runs RUNS times over each path of
tests/reproduction/genuine_programs.py, one run at a time, for 30 s; nothing else should run meanwhile.
`recorded/programs/NAME.csv.gz` is written after each run, and a later call adds what is missing, so that `--runs 5`
goes on from 3. With `--again` the paths that are asked for are recorded again.
"""

import argparse
import json
import pathlib
import sys

import machine

sys.path.insert(0, str(machine.RECORDED.parents[2]))

import ccgym
from ccgym.errors import CcgymError
from ccgym.evaluation.backends import backend
from ccgym.evaluation.simulate import Record
from tests.reproduction.genuine_programs import (
    DURATION_S,
    PATHS,
    RECORDED,
    SCHEMES,
    flows,
    network_path,
    read,
    recorded,
    write,
)


def record(program: str, scheme: str, paths: list[str], count: int, again: bool) -> list[str]:
    """Make what is missing; what failed."""
    file, failures = RECORDED / f"{program}.csv.gz", []
    file.parent.mkdir(parents=True, exist_ok=True)
    runs = {path: list(of_path) for path, of_path in recorded(program).items()} if file.exists() else {}
    for path in paths:
        if again:
            runs.pop(path, None)
        for number in range(len(runs.get(path, [])) + 1, count + 1):
            try:
                run = backend("emulated").run(
                    network_path(path), flows(path, scheme), f"{DURATION_S}s", number, Record(series="100ms")
                )
            except CcgymError as error:
                failures.append(f"{program}, {path}, run {number}: {error}")
                break
            runs.setdefault(path, []).append(read(path, run))
            write(file, {name: runs[name] for name in PATHS if name in runs})
            last = runs[path][-1]
            print(
                f"{program:16} {path:9} {number}  {last.throughput_mbps:6.2f} Mbit/s  {last.delay_p95_ms:7.1f} ms  "
                f"{100 * last.loss:6.2f} %  {'limited' if last.limited else ''}",
                flush=True,
            )
    return failures


def declare(name: str, version: str, command: str) -> None:
    """Keep what made a recording: version, command, machine."""
    place = RECORDED / "about.json"
    known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    known[name] = {"version": version, "command": f"record_programs.py {command}", "machine": machine.describe()}
    place.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(SCHEMES))
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    directory, paths = options.directory.resolve(), options.paths.split(",")
    failures = []
    for program in options.only.split(","):
        said = f"--only {program} --runs {options.runs}"
        if str(options.directory) == "ours":
            failures += record(f"emulated/{program}", SCHEMES[program], paths, options.runs, options.again)
            declare(f"emulated/{program}", f"ccgym {ccgym.__version__}", f"ours {said}")
        elif (declaration := directory / f"{program}.yaml").exists():
            failures += record(program, f"program:{declaration}", paths, options.runs, options.again)
            source = declaration.read_text(encoding="utf-8").partition("{here}/")[2].partition("/")[0]
            declare(program, (directory / f"{source}.version").read_text(encoding="utf-8").strip(), f"DIRECTORY {said}")
        else:
            print(f"{program}: not in {directory}", file=sys.stderr)
    print(*failures, sep="\n", file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
