#!/usr/bin/env bash
# The checks behind `make lint`, `make test` and `make test-long`. Run inside the environment (.venv/ccgym.env).
# Every part runs even if an earlier one failed; the exit status says whether all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

what=${1:?usage: tools/check.sh lint|test|test-long}
[ -z "${JOBS:-}" ] && unset JOBS || export CARGO_BUILD_JOBS=$JOBS
failed=()

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

tests() {
    echo "== cargo test"
    python tools/cargo_test.py || failed+=("cargo test")
    echo "== pytest"
    python -m pytest "$@" || failed+=("pytest")
}

case $what in
lint) lint ;;
test) lint && tests -m "not long" ;;
test-long) lint && tests --run-long ;;
*) echo "tools/check.sh: unknown check '$what' (lint, test, test-long)" >&2 && exit 2 ;;
esac

if [ ${#failed[@]} -gt 0 ]; then
    printf '%s: FAILED: %s\n' "$what" "$(IFS=,; echo "${failed[*]}" | sed 's/,/, /g')"
    exit 1
fi
