#!/usr/bin/env bash
# Builds the extension for this machine: `duckdb/build.sh [FOLDER]`, by default into duckdb/dist.
# Needs cargo and Python 3; of DuckDB nothing is built.
set -euo pipefail
cd "$(dirname "$0")"
out=$(realpath -m "${1:-dist}")
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" CARGO_TERM_COLOR=never
case $(uname -sm) in
"Linux x86_64") platform=linux_amd64 ;;
"Linux aarch64") platform=linux_arm64 ;;
*) echo "cognate runs on Linux: its model files are mapped and sealed by calls of Linux" >&2; exit 1 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/v\1/p' Cargo.toml | head -n 1)
# Folders of this machine stay out of the library.
remapped="--remap-path-prefix=$(cd .. && pwd)=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
RUSTFLAGS="${RUSTFLAGS:-} $remapped" cargo build --locked --release
mkdir -p "$out"
python3 footer.py "$CARGO_TARGET_DIR/release/libcognate_duckdb.so" "$out/cognate.duckdb_extension" \
    "$platform" "$version"
ls -l "$out"
