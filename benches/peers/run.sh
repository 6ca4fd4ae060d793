#!/usr/bin/env bash
# cognate beside what one would otherwise pick: `benches/peers/run.sh [--rounds N]`.
# Needs cargo, a C compiler, and Python 3.11 or newer with venv; libraries come from the ordinary
# package indexes. Everything it makes is below target/bench; --rounds is how often each contestant
# makes its pass (7 unless given).
set -euo pipefail
cd "$(dirname "$0")/../.."
here=benches/peers
work=target/bench/peers
inputs=$work/inputs
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
# No caches of bytecode beside the sources.
export PYTHONDONTWRITEBYTECODE=1

command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.90 or newer" >&2; exit 1; }
python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
    || { echo "Python 3.11 or newer with venv is missing: apt-get install python3-venv" >&2; exit 1; }

echo "== Python libraries"
mkdir -p $work
[ -x $work/venv/bin/python ] || python3 -m venv $work/venv
pip() { $work/venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }
pip --requirement $here/requirements.txt
# gensim's Word Mover's Distance needs it; the rest of the comparison does not.
pip 'POT==0.9.7.post1' || echo "POT cannot be installed here: without gensim's wmd" >&2

echo "== builds"
cargo build --locked --release --bin cognate
cargo build --locked --release --manifest-path $here/Cargo.toml

echo "== inputs"
$work/venv/bin/python $here/prepare.py ../shared/data models/default.safetensors $inputs
pack() {
    "$CARGO_TARGET_DIR/release/cognate" pack "$inputs/$1/vectors.npy" --vocabulary "$inputs/$1/vocabulary.txt" \
        --normalisation plain --dtype "$2" --output "$inputs/$1/cognate.safetensors" --json >"$inputs/$1/packed.json"
}
pack glove f32
pack default int8

echo "== turns"
$work/venv/bin/python $here/compare.py --binaries "$CARGO_TARGET_DIR/release" \
    --inputs $inputs --record target/bench/peers.json "$@"
