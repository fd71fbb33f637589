#!/usr/bin/env bash
# Builds the programs that Pantheon runs, at its pinned commits, outside of the tree, and copies their declarations there.
#
#   build.sh DIRECTORY [SOURCES [NAMES]]      then: evaluate.py --backend emulated --schemes program:DIRECTORY/fillp.yaml
#
# SOURCES/OWNER/NAME are clones from GitHub; what is not there is cloned. Needs Debian 12's g++ make autoconf automake patch
# protobuf-compiler libprotobuf-dev libboost-system-dev libboost-math-dev libalglib-dev libasio-dev libtbb-dev libssl-dev
# libncurses-dev libjemalloc-dev pkg-config; Indigo also $PYTHON27, a Python 2.7 that imports tensorflow 1.14. Programs are
# changed where today's compiler refuses them, and in nothing else; Pantheon's own patches, which leave room for its tunnel's
# headers, are applied as Pantheon does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,11p' "$0"; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd) sources=${2:-$1/sources}
failed=()

# The sources of OWNER/NAME at a commit, in $out/PLACE.
sources_of() {
    local place=$1 repository=$2 commit=$3
    [ -d "$sources/$repository" ] || git clone -q "https://github.com/$repository" "$sources/$repository"
    rm -rf "${out:?}/$place"
    mkdir -p "$out/$place"
    git -C "$sources/$repository" archive "$commit" | tar -x -C "$out/$place"
    echo "$repository @$commit" >"$out/$place.version"
    cd "$out/$place"
}

pantheons_patch() {
    local pantheon=$sources/StanfordSNR/pantheon
    [ -d "$pantheon" ] || git clone -q https://github.com/StanfordSNR/pantheon "$pantheon"
    git -C "$pantheon" show "23e738c:src/wrappers/patches/$1.patch" | patch -p1 -s
}

fillp() { sources_of fillp fillthepipe/fill-the-pipe d6da145 && chmod +x client/client server/server; }
fillp_sheep() { sources_of fillp_sheep fillthepipe/fillp-sheep 0e5bb72 && chmod +x client/client server/server; }
vivace() { sources_of vivace StanfordSNR/vivace 2baf862 && chmod +x sender/vivace_sender receiver/vivace_receiver; }

pcc() {
    sources_of pcc modong/pcc 1afc958
    pantheons_patch pcc
    make -s -C receiver && make -s -C sender
}

pcc_experimental() {
    sources_of pcc_experimental PCCproject/PCC-Uspace cd43e34
    # std::unordered_map looks for the comparison of its keys before the program declares it.
    printf '#include <ctime>\nnamespace std { int operator==(const struct timespec&, const struct timespec&); }\n' >src/compare.h
    sed -i "s|^C++ = g++.*|C++ = g++ -std=gnu++14 -w -include $PWD/src/compare.h|" src/*/Makefile
    make -s -C src
}

generic_cc() {
    sources_of genericcc venkatarun95/genericCC d0153f8
    local objects="random memory memoryrange rat whisker whiskertree udp-socket traffic-generator remycc markoviancc estimators rtt-window"
    (cd protobufs-default && protoc --cpp_out=. dna.proto)
    local options="-DHAVE_CONFIG_H -std=c++17 -O2 -w -fpermissive -I. -Iprotobufs-default -Iudt -include cstdint -include limits"
    for object in $objects sender receiver protobufs-default/dna.pb; do
        g++ $options -c $object.c[c]* -o $(basename $object).o
    done
    g++ $(printf '%s.o ' $objects) sender.o dna.pb.o -o sender -ljemalloc -lprotobuf -lpthread
    g++ receiver.o udp-socket.o -o receiver -lpthread
}

verus() {
    sources_of verus yzaki/verus d4b447e
    pantheons_patch verus
    sed -i -E 's/milliseconds\((timeouttimer|SS_INIT_TIMEOUT)\)/milliseconds(long(\1))/' src/*.cpp
    (cd lib/alglib/src && g++ -O2 -w -fpermissive -c ./*.cpp && ar rcs libalglib.a ./*.o)
    ./bootstrap.sh && ./configure -q CXXFLAGS="-O2 -w -fpermissive" LDFLAGS="-L$PWD/lib/alglib/src" && make -s
}

sprout() {
    sources_of sprout keithw/sprout 366e35c
    pantheons_patch sprout
    ./autogen.sh && ./configure -q --enable-examples CXXFLAGS="-O2 -w -fpermissive -std=gnu++14" && make -s
}

ledbat() { sources_of libutp bittorrent/libutp b3465b9 && make -s ucat-static; }

scream() {
    sources_of scream/scream_upstream EricssonResearch/scream c3370fd
    mv "$out/scream/scream_upstream" "$out/scream.upstream"
    sources_of scream StanfordSNR/scream f099118
    rm -rf scream_upstream && mv "$out/scream.upstream" scream_upstream
    ./autogen.sh && ./configure -q CXXFLAGS="-O2 -w -fpermissive" && make -s
}

indigo() {
    sources_of indigo StanfordSNR/indigo 463d89b
    ln -s "$(command -v "${PYTHON27:-python2.7}")" python
    ./python -c "import tensorflow"
}

for name in ${3:-fillp fillp_sheep vivace pcc pcc_experimental generic_cc verus sprout ledbat scream indigo}; do
    echo "== $name"
    set +e # in a condition, bash would not stop at the first failure
    (set -e; $name) >"$out/$name.log" 2>&1
    [ $? = 0 ] || { failed+=("$name"); tail -3 "$out/$name.log"; }
    set -e
done
cp "$here"/*.yaml "$out"
[ ${#failed[@]} = 0 ] || { echo "not built: ${failed[*]} (see $out/NAME.log)" >&2; exit 1; }
