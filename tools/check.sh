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

# Time of all processors so far and how much of it others took away, in ticks; zeros where that is not known.
processor_times() {
    awk '/^cpu /{for (i = 2; i <= 9; i++) all += $i; print all, $9; known = 1; exit} END{if (!known) print 0, 0}' \
        /proc/stat 2>/dev/null || echo 0 0
}

# All Rust tests in one command: with a selection of packages cargo builds every dependency anew. Those of ccgym-net send
# real packets in real time. Where nothing else fails, and a hundredth of the processors' time was taken away meanwhile,
# that may be the reason, and all is run again; pytest does the same (tests/busy_machine.py).
rust_tests() {
    local try before after stolen packages log
    log=$(mktemp) || return
    for try in 1 2 3; do
        before=$(processor_times)
        cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" && rm "$log" && return
        after=$(processor_times)
        packages=$(sed -n 's/^    `-p \([^ ]*\) .*/\1/p' "$log" | sort -u)
        stolen=$(echo "$before $after" | awk '{print ($3 > $1) ? int(100 * ($4 - $2) / ($3 - $1)) : 0}')
        [ "$packages" = ccgym-net ] && [ "$stolen" -ge 1 ] && [ "$try" -lt 3 ] || break
        echo "== THIS MACHINE IS BUSY: $stolen % of its processors' time was taken away; trying again: cargo test"
    done
    rm "$log"
    return 1
}

tests() {
    echo "== cargo test"
    rust_tests || failed+=("cargo test")
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
