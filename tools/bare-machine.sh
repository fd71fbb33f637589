#!/usr/bin/env bash
# Runs a command in a clone of this checkout's HEAD on a bare Debian, in which only make and git are installed: a set-up step
# that is missing, or a test that needs something installed by hand, shows there.
#
#   tools/bare-machine.sh [-s bookworm|trixie] [-u] COMMAND...      as in: tools/bare-machine.sh make test
#
# -s chooses the Debian (default bookworm, Debian 12). -u adds its security updates, with newer compilers (in Debian 12 Rust
# 1.96 instead of 1.85). Needs root; installs debootstrap. Exit status: the command's; 3 where no such Debian can be made.
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

cannot() {
    echo "bare-machine.sh: $*" >&2
    exit 3
}
[ "$(id -u)" = 0 ] || cannot "needs root, for debootstrap and chroot"
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq debootstrap; } >/dev/null ||
    cannot "debootstrap is not here and cannot be installed"

# The address of a repository of packages, as this machine has it: "debian" or "debian-security".
address() {
    grep -rhoE "https?://[^ ]+/$1/?( |\$)" /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1 | tr -d ' ' || true
}

# The same bare system serves several runs.
base=${TMPDIR:-/tmp}/bare-$suite
if [ ! -e "$base.ready" ]; then
    rm -rf --one-file-system "$base"
    mirror=$(address debian)
    debootstrap --variant=minbase --include=ca-certificates,make,git "$suite" "$base" ${mirror:+"$mirror"} >"$base.log" 2>&1 ||
        { tail -5 "$base.log" >&2; cannot "debootstrap $suite failed, see $base.log"; }
    touch "$base.ready"
fi
root=$(mktemp -d "${TMPDIR:-/tmp}/bare-run-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
cp -a --reflink=auto "$base/." "$root"

# How this machine reaches sources of packages, which a person's machine has of itself.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
    "$HOME/.config/pip/pip.conf" "$HOME/.cargo/config.toml"; do
    [ -f "$file" ] || continue
    to=$root${file/#$HOME//root}
    mkdir -p "$(dirname "$to")"
    cp -L "$file" "$to"
done
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
if [ -n "$updates" ]; then
    echo "deb $(address debian-security) $suite-security main" >"$root/etc/apt/sources.list.d/security.list"
fi
git clone -q "$top" "$root/root/ccgym"

start=$SECONDS status=0
unshare --mount --pid --fork bash -c '
    root=$1
    shift
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 CI="${CI:-}" PIP_DEFAULT_TIMEOUT=180 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
        bash -c "cd /root/ccgym && exec \"\$@\"" bash "$@"
' bash "$root" "$@" || status=$?
clone=$(du -sm "$root/root/ccgym" | cut -f1)
torch=$(du -smc "$root"/root/ccgym/.venv/lib/python*/site-packages/{torch,nvidia,triton} 2>/dev/null | tail -1 | cut -f1 || true)
echo "bare $suite${updates:+ with updates}: status $status after $((SECONDS - start)) s; the clone takes $clone MB, $torch of them PyTorch"
exit $status
