#!/bin/sh
# Prepare a Debian 12 machine for the recordings: real mahimahi 0.98, which Debian 12
# itself no longer has, and what its setuid shells need.  Run as root, once.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
user=${RECORD_USER:-ccrec}

# Bullseye's archive, from wherever this machine gets bookworm, at a priority so low
# that nothing but what only bullseye has is ever taken from it.
mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources | head -n 1)
key=$(sed -n 's/^Signed-By: *//p' /etc/apt/sources.list.d/debian.sources | head -n 1)
printf 'Types: deb\nURIs: %s\nSuites: bullseye\nComponents: main\nSigned-By: %s\n' "$mirror" "$key" \
    > /etc/apt/sources.list.d/bullseye-mahimahi.sources
printf 'Package: *\nPin: release n=bullseye\nPin-Priority: 50\n' > /etc/apt/preferences.d/bullseye-mahimahi
apt-get update
apt-get install -y --no-install-recommends \
    mahimahi mahimahi-traces iptables dnsmasq-base tcpdump ethtool iproute2 procps util-linux gcc make

make -C "$here" all
# iptables >= 1.8.8 refuses to run under a setuid program (exit status 111)
install -m 755 "$here/build/iptables_setuid_safe" /usr/local/sbin/iptables-setuid-safe
update-alternatives --install /usr/sbin/iptables iptables /usr/local/sbin/iptables-setuid-safe 100

id "$user" > /dev/null 2>&1 || useradd --create-home "$user"
sysctl -w net.ipv4.ip_forward=1
