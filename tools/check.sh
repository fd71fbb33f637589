#!/usr/bin/env bash
# The checks behind `make lint`, `make test` and `make test-long`. Run inside the environment (.venv/ccgym.env).
# Every part runs even if an earlier one failed; the exit status says whether all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

what=${1:?usage: tools/check.sh lint|test|test-long}
[ -z "${JOBS:-}" ] && unset JOBS || export CARGO_BUILD_JOBS=$JOBS
failed=()
MAX_UNDECIDED=3

# Runs a check, shows its output only if it fails.
quietly() {
    local name=$1 start=$SECONDS output
    shift
    if output=$("$@" 2>&1); then
        printf 'lint  %-22s ok (%d s)\n' "$name" $((SECONDS - start))
    else
        printf 'lint  %-22s FAILED: %s\n%s\n' "$name" "$*" "$output"
        failed+=("$name")
    fi
}

# The formatter or linter of a compiler that came without it: an error where it counts, a loud line elsewhere.
cargo_tool() {
    local name=$1 program=$2
    shift 2
    if cargo "$program" --version >/dev/null 2>&1; then
        quietly "$name" cargo "$program" "$@"
    elif [ "${CI:-}" = true ]; then
        printf 'lint  %-22s FAILED: this Rust toolchain has no cargo-%s\n' "$name" "$program"
        failed+=("$name")
    else
        printf 'lint  %-22s NOT CHECKED: this Rust toolchain has no cargo-%s\n' "$name" "$program"
    fi
}

lint() {
    quietly "ruff check" ruff check .
    quietly "ruff format" ruff format --check .
    if python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        quietly "mypy" mypy
    else # the last numpy for Python 3.10 has other types
        printf 'lint  %-22s NOT CHECKED: needs Python 3.11 or newer\n' mypy
    fi
    quietly "import-linter" lint-imports
    cargo_tool "cargo fmt" fmt --all --check
    cargo_tool "clippy" clippy --workspace --all-targets --locked -- -D warnings
}

# All tests; what cannot be told on a disturbed machine is listed in a file and bounded (tests/real_time.py).
tests() {
    local also=$1 # further conditions on the tests, as pytest takes them after -m
    shift
    local workers=${JOBS:-$(nproc)}
    export CCGYM_UNDECIDED
    CCGYM_UNDECIDED=$(mktemp)
    echo "== cargo test"
    python tools/cargo_test.py || failed+=("cargo test")
    echo "== pytest, $workers at a time"
    python -m pytest -n "$workers" --dist worksteal -m "not real$also" "$@" || failed+=("pytest")
    echo "== pytest, real packets: one at a time"
    python -m pytest -m "real$also" "$@" || failed+=("pytest with real packets")
    local undecided
    undecided=$(wc -l <"$CCGYM_UNDECIDED")
    if [ "$undecided" -gt 0 ]; then
        printf 'UNDECIDED: %d tests, at most %d may be\n' "$undecided" "$MAX_UNDECIDED"
        [ "$undecided" -le "$MAX_UNDECIDED" ] || failed+=("$undecided undecided tests")
    fi
    rm -f "$CCGYM_UNDECIDED"
}

case $what in
lint) lint ;;
test) lint && tests " and not long" ;;
test-long) lint && tests "" --run-long ;;
*) echo "tools/check.sh: unknown check '$what' (lint, test, test-long)" >&2 && exit 2 ;;
esac

if [ ${#failed[@]} -gt 0 ]; then
    printf '%s: FAILED: %s\n' "$what" "$(IFS=,; echo "${failed[*]}" | sed 's/,/, /g')"
    exit 1
fi
