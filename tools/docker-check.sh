#!/usr/bin/env bash
# Runs the steps of the Dockerfile without Docker: every stage in a separate bare Debian 13, with HEAD as the context. Then
# runs the image's command there. Debian's Python 3.13 with pip replaces the image python:3.13-slim-trixie.
#
#   tools/docker-check.sh       Needs root. Exit status 3 if no bare Debian can be made. About 3 GB in $TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bare.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/docker-check-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/context"
# The context: HEAD, without the files in .dockerignore. Here and below, variables contain several words.
kept=$(sed -n 's/^!//p' .dockerignore)
git archive HEAD $kept | tar -x -C "$work/context"

stage='' variables='' folder=/ entry='' started=$SECONDS
while IFS= read -r line; do
    read -r word rest <<<"$line"
    case $word in
    '' | '#'*) continue ;;
    FROM)
        [ "${rest%% *}" = python:3.13-slim-trixie ] || cannot "nothing stands for the image ${rest%% *}"
        stage=${rest##* } folder=/ entry=''
        mkdir "$work/$stage"
        bare_root trixie python3,python3-pip "$work/$stage"
        ln -s python3 "$work/$stage/usr/bin/python"
        rm "$work/$stage"/usr/lib/python3*/EXTERNALLY-MANAGED # the image has none
        ;;
    ARG) variables+="$rest; " ;;
    WORKDIR) folder=$rest && mkdir -p "$work/$stage$rest" ;;
    COPY)
        read -r -a words <<<"$rest"
        source=$work/context
        [[ ${words[0]} == --from=* ]] && source=$work/${words[0]#--from=} && words=("${words[@]:1}")
        mkdir -p "$work/$stage${words[1]}"
        cp -a "$source/${words[0]}/." "$work/$stage${words[1]}"
        ;;
    RUN)
        in_root "$work/$stage" "$folder" sh -c "$variables$rest" >"$work/log" 2>&1 </dev/null ||
            { tail -20 "$work/log" && exit 1; }
        ;;
    ENTRYPOINT) entry=$(tr -d '[]",' <<<"$rest") ;;
    CMD) ;;
    *) cannot "no such step here: $line" ;;
    esac
    printf 'docker-check %4d s  %s\n' $((SECONDS - started)) "$line"
done <Dockerfile

in_root "$work/$stage" "$folder" $entry evaluate --trace 77.72mbps --schemes cubic,eagle --runs 1 --out out
added=$(($(du -sm "$work/$stage" | cut -f1) - $(du -sm "${TMPDIR:-/tmp}/bare-trixie-python3-python3-pip" | cut -f1)))
echo "docker-check: the steps add $added MB to the image of Python; $((SECONDS - started)) s"
