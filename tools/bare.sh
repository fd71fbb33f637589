# Bare Debian systems in folders, for scripts to source. Needs root; installs debootstrap. About 0.3 GB each in $TMPDIR.

cannot() {
    echo "$(basename "$0"): $*" >&2
    exit 3
}

# The address of a package repository on this machine: "debian" or "debian-security".
address() {
    grep -rhoE "https?://[^ ]+/$1/?( |\$)" /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1 | tr -d ' ' || true
}

# bare_root SUITE PACKAGES FOLDER: a new system in a new folder. Several runs use copies of the same system.
bare_root() {
    local suite=$1 packages=$2 root=$3 base mirror file to
    [ "$(id -u)" = 0 ] || cannot "needs root, for debootstrap and chroot"
    command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq debootstrap; } >/dev/null ||
        cannot "debootstrap is not here and cannot be installed"
    base=${TMPDIR:-/tmp}/bare-$suite-${packages//,/-}
    if [ ! -e "$base.ready" ]; then
        rm -rf --one-file-system "$base"
        mirror=$(address debian)
        debootstrap --variant=minbase --include="ca-certificates,$packages" "$suite" "$base" ${mirror:+"$mirror"} \
            >"$base.log" 2>&1 || { tail -5 "$base.log" >&2; cannot "debootstrap $suite failed, see $base.log"; }
        touch "$base.ready"
    fi
    cp -a --reflink=auto "$base/." "$root"
    # This machine's settings to reach package sources, which a usual machine does not need.
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
        "$HOME/.config/pip/pip.conf" "$HOME/.cargo/config.toml"; do
        [ -f "$file" ] || continue
        to=$root${file/#$HOME//root}
        mkdir -p "$(dirname "$to")"
        cp -L "$file" "$to"
    done
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
}

# in_root ROOT FOLDER COMMAND...: runs a command in a folder of such a system, without this environment's variables.
in_root() {
    unshare --mount --pid --fork bash -c '
        root=$1 folder=$2
        shift 2
        mount --make-rprivate /
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 CI="${CI:-}" PIP_DEFAULT_TIMEOUT=180 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
            bash -c "cd \"\$0\" && exec \"\$@\"" "$folder" "$@"
    ' bash "$@"
}
