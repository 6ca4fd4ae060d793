#!/usr/bin/env bash
# Training beside gensim: `benches/peers/training.sh [--rounds N] [--dims N ...]`. Needs what run.sh
# needs, and the shared text beside the checkout.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=target/bench/peers
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export PYTHONDONTWRITEBYTECODE=1
mkdir -p $work
[ -x $work/venv/bin/python ] || python3 -m venv $work/venv
$work/venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --requirement benches/peers/requirements.txt
cargo build --locked --release --bin cognate
$work/venv/bin/python benches/peers/training.py --binary "$CARGO_TARGET_DIR/release/cognate" \
    --data ../shared/data --record target/bench/peers-training.json "$@"
