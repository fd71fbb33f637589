#!/usr/bin/env bash
# Runs a command in a clone of this checkout's HEAD on a bare Debian with only make and git: this shows missing set-up
# steps, and tests that need manual installation.
#
#   tools/bare-machine.sh [-s bookworm|trixie] [-u] COMMAND...      as in: tools/bare-machine.sh make test
#
# -s chooses the Debian (default bookworm, Debian 12). -u adds its security updates, with newer compilers (in Debian 12 Rust
# 1.96 instead of 1.85). Needs root; installs debootstrap. Exit status: the command's; 3 if no such Debian can be made.
# About 4 GB in $TMPDIR for `make test`, and PyTorch.
set -euo pipefail
suite=bookworm updates=
while getopts s:u option; do
    case $option in
    s) suite=$OPTARG ;;
    u) updates=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n '2,9p' "$0"; exit 2; }

. "$(dirname "$0")/bare.sh"
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)

root=$(mktemp -d "${TMPDIR:-/tmp}/bare-run-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
bare_root "$suite" make,git "$root"
if [ -n "$updates" ]; then
    echo "deb $(address debian-security) $suite-security main" >"$root/etc/apt/sources.list.d/security.list"
fi
git clone -q "$top" "$root/root/ccgym"

start=$SECONDS status=0
in_root "$root" /root/ccgym "$@" || status=$?
clone=$(du -sm "$root/root/ccgym" | cut -f1)
torch=$(du -smc "$root"/root/ccgym/.venv/lib/python*/site-packages/{torch,nvidia,triton} 2>/dev/null | tail -1 | cut -f1 || true)
echo "bare $suite${updates:+ with updates}: status $status after $((SECONDS - start)) s; the clone takes $clone MB, $torch of them PyTorch"
exit $status
