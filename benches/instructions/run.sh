#!/usr/bin/env bash
# Instructions that a pair takes on x86-64 with AVX2 and on 64-bit ARM with and without products of bytes:
# `benches/instructions/run.sh X86_64 AARCH64`, two release builds of the program, as `.ci/release` makes them.
#
# The program answers files of 1,200 and of 2,400 rows on one thread; a pair is the difference by 1,200, reading and
# writing of its row included. Needs valgrind, qemu-user 7 or 8 with plugins, and a C compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."
x86=$1 arm=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -shared -fPIC -o "$work/count.so" benches/instructions/count.c
for times in 2 4; do
    { printf 'a\tb\n'; for _ in $(seq $times); do cut -f 2,3 benches/data/pairs.tsv; done; } >"$work/$times.tsv"
done

# Instructions of a run, as valgrind or the plugin tells them.
counted() {
    local times=$1 method=$2
    shift 2
    "$@" similarity --input "$work/$times.tsv" --threads 1 --method "$method" --model models/default.safetensors \
        2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

printf '| method | AVX2 | NEON with products of bytes | NEON |\n|---|---|---|---|\n'
for method in avg-cos dynamax-jaccard auto; do
    printf '| %s |' "\`$method\`"
    for machine in \
        "valgrind --tool=callgrind --callgrind-out-file=/dev/null $x86" \
        "qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu max -plugin $work/count.so $arm" \
        "qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu cortex-a53 -plugin $work/count.so $arm"; do
        # shellcheck disable=SC2086
        printf " %'d |" $((($(counted 4 $method $machine) - $(counted 2 $method $machine)) / 1200))
    done
    echo
done
