#!/usr/bin/env bash
# The checks of `make lint`, `make test` and `make test-all`. Run inside the environment (.venv/ccgym.env).
# Every part runs even if an earlier part failed; the exit status is 0 if all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

what=${1:?usage: tools/check.sh lint|test|test-all}
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

# Finds the words of docs/words.txt in pages, code, configurations and templates.
words() {
    grep -v '^#' docs/words.txt | cut -f 1 |
        git grep -nwiF -f /dev/stdin -- '*.md' '*.py' '*.rs' '*.yaml' '*.j2' '*.proto' '*.toml' '*.yml' '*.sh' '*.ipynb' || return 0
    echo "docs/words.txt says what to write instead"
    return 1
}

# Python's tools have the versions of constraints.txt. Lints differ between Rust compilers: warnings are
# errors only in continuous integration, where the compiler is always the same.
lint() {
    quietly "ruff check" ruff check .
    quietly "ruff format" ruff format --check .
    quietly "mypy" mypy
    quietly "stub of the native module" stubtest --concise ccgym._core
    quietly "import-linter" lint-imports
    quietly "generated code" python tools/models.py --check
    quietly "site" sh -c 'd=$(mktemp -d) && mkdocs build --strict --site-dir "$d" && rm -r "$d"'
    quietly "spelling" sh -c 'git ls-files -z | xargs -0 codespell'
    quietly "words" words
    quietly "lines" python tools/size.py --check
    quietly "cargo fmt" cargo fmt --all --check
    if [ "${CI:-}" = true ]; then
        quietly "clippy" cargo clippy --release --workspace --all-targets --locked -- -D warnings
    else
        cargo clippy --release --workspace --all-targets --locked || failed+=("clippy")
    fi
}

# All tests; tests without a result on a busy machine are listed in a file, with a maximum (tests/real_time.py).
tests() {
    local workers=${JOBS:-$(nproc)}
    export CCGYM_UNDECIDED
    CCGYM_UNDECIDED=$(mktemp)
    if [ "$what" = test-all ]; then
        export CCGYM_TEST_ALL=1
        cargo run --release --locked -q -p ccgym-protocol -- --check || failed+=("messages")
    fi
    echo "== cargo test"
    python tools/cargo_test.py || failed+=("cargo test")
    echo "== pytest, $workers at a time"
    python -m pytest -n "$workers" --dist worksteal --ignore tests/real "$@" || failed+=("pytest")
    echo "== pytest, real packets: one at a time"
    python -m pytest tests/real "$@" || failed+=("pytest with real packets")
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
test) tests -m "not long" ;;
test-all) tests --run-long ;;
*) echo "tools/check.sh: unknown check '$what' (lint, test, test-all)" >&2 && exit 2 ;;
esac

if [ ${#failed[@]} -gt 0 ]; then
    printf '%s: FAILED: %s\n' "$what" "$(IFS=,; echo "${failed[*]}" | sed 's/,/, /g')"
    exit 1
fi
