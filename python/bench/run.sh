#!/usr/bin/env bash
# The wheel beside what one would otherwise pick, on columns of tweets:
# `python/bench/run.sh WHEEL [--pairs N] [--rounds N] [--only NAME,...]`.
# Needs cargo, Python 3.11 or newer with venv, the program `cognate` (built here) and ../shared/data.
# The peers come from PyPI into a folder of their own.
set -euo pipefail
wheel=$(realpath "${1:?usage: python/bench/run.sh WHEEL [ARGUMENT...]}")
shift
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/wheel
work=$CARGO_TARGET_DIR/bench/wheel
mkdir -p "$work"
if [ ! -x "$tools/uv/bin/uv" ]; then
    python3 -m venv "$tools/uv"
    "$tools/uv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
fi
[ -x "$tools/bench/bin/python" ] || "$tools/uv/bin/uv" venv --quiet "$tools/bench"
"$tools/uv/bin/uv" pip install --quiet --python "$tools/bench/bin/python" \
    --requirement bench/requirements.txt
"$tools/uv/bin/uv" pip install --quiet --python "$tools/bench/bin/python" --reinstall-package cognate-text "$wheel"
cargo build --locked --release --example library
cargo build --locked --release --manifest-path ../Cargo.toml --bin cognate
# The same word vectors for every library that takes any.
for format in model2vec sentence-transformers; do
    [ -d "$work/$format" ] || "$CARGO_TARGET_DIR/release/cognate" export \
        ../models/default.safetensors --to "$format" -o "$work/$format"
done
"$tools/bench/bin/python" bench/compare.py --work "$work" \
    --library "$CARGO_TARGET_DIR/release/examples/library" "$@"
