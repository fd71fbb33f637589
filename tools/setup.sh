#!/bin/sh
# Finds a Python that is new enough and runs tools/setup.py with it, which does all other steps.
#
#   tools/setup.sh [--profile demo|train|test|dev|wheel]       PYTHON=python3.12 tools/setup.sh …   to choose the interpreter
#
# Fast if no step is outdated: then it uses the virtual environment's Python.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 2
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

complete() { # new enough, and able to make a virtual environment
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for test in complete new_enough; do
        for candidate in python3.14 python3.13 python3.12 python3.11 python3; do
            if command -v "$candidate" >/dev/null 2>&1 && "$test" "$candidate"; then
                printf '%s\n' "$candidate"
                return 0
            fi
        done
    done
    return 1
}

if [ -n "${PYTHON:-}" ]; then
    command -v "$PYTHON" >/dev/null 2>&1 ||
        fail "PYTHON=$PYTHON: there is no such program." \
            "Leave PYTHON unset to have one found, or name a Python 3.11 or newer, as in: make demo PYTHON=python3.12"
    new_enough "$PYTHON" ||
        fail "PYTHON=$PYTHON is $("$PYTHON" --version 2>&1 | head -n 1 || true); ccgym needs Python 3.11 or newer." \
            "Leave PYTHON unset to have one found, or name a newer one, as in: make demo PYTHON=python3.12"
    exec "$PYTHON" tools/setup.py --chosen "$@"
fi

if [ -x .venv/bin/python ] && new_enough .venv/bin/python; then
    exec .venv/bin/python tools/setup.py "$@"
fi

python=$(find_python) || {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        printf 'setup: no Python 3.11 or newer here: installing the distribution'\''s\n'
        apt-get update -qq >/dev/null 2>&1 || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null ||
            fail "apt-get install python3 python3-venv failed (see above)."
    fi
    python=$(find_python)
} || fail "no Python 3.11 or newer was found (tried python3.14 … python3.11, python3)." \
    "On Debian 12, Ubuntu 24.04 or newer:   sudo apt-get install python3 python3-venv gcc libc6-dev" \
    "Elsewhere install it your way and name it:   make demo PYTHON=/path/to/python3.12"
exec "$python" tools/setup.py "$@"
