#!/usr/bin/env bash
# Builds the JavaScript package and the playground that needs no server: `wasm/build.sh [FOLDER]`, by default
# into wasm/dist. FOLDER/package is for npm, FOLDER/playground for any server of files.
#
# The target wasm32-unknown-unknown comes from rustup (`rustup target add wasm32-unknown-unknown`). Where
# there is none, as with Debian's compiler, the standard library is built too, from its source
# (Debian: `apt-get install rustc-web cargo-web rust-web-src lld-19`).
set -euo pipefail
cd "$(dirname "$0")"
out=$(realpath -m "${1:-dist}")
root=$(realpath ..)
export CARGO_TERM_COLOR=never CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
target=wasm32-unknown-unknown
standard=()

# A compiler with the target, else one with the source of its standard library and a linker.
choose_compiler() {
    local compiler linker
    for compiler in "${RUSTC:-rustc}" /usr/bin/rustc; do
        if [ -d "$("$compiler" --print target-libdir --target $target 2>/dev/null)" ]; then
            export RUSTC=$compiler
            return
        fi
    done
    for compiler in "${RUSTC:-rustc}" /usr/bin/rustc; do
        [ -d "$("$compiler" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ] || continue
        for linker in rust-lld wasm-ld wasm-ld-19 wasm-ld-18 wasm-ld-16; do
            command -v $linker >/dev/null || continue
            export RUSTC=$compiler RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
            standard=(-Z build-std=std,panic_abort)
            # Folders of their own: another compiler's libraries do not fit.
            CARGO_TARGET_DIR=$CARGO_TARGET_DIR/own-std
            return
        done
    done
    echo "no compiler for $target: run \`rustup target add $target\`, or on Debian" >&2
    echo "\`apt-get install rustc-web cargo-web rust-web-src lld-19\`" >&2
    exit 1
}

# cargo of the same version as the compiler, which `-Z build-std` needs.
cargo_beside() {
    local beside
    beside=$(dirname "$(command -v "$RUSTC")")/cargo
    if [ -x "$beside" ]; then echo "$beside"; else echo cargo; fi
}

choose_compiler
# Folders of this machine stay out of the module.
sysroot=$("$RUSTC" --print sysroot)
remapped=("$root=/src" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$(realpath "$sysroot")=/rust" "$sysroot=/rust")
flags=
for pair in "${remapped[@]}"; do flags+=" --remap-path-prefix=$pair"; done

# build FEATURES FOLDER: modules with other features need other libraries, so each has a folder.
build() {
    RUSTFLAGS="-C target-feature=$1$flags" CARGO_TARGET_DIR=$2 \
        "$(cargo_beside)" "${standard[@]}" build --locked --release --target $target
}
build +simd128 "$CARGO_TARGET_DIR"
# For engines whose relaxed multiply-add is fused (lib/fused.js).
build +simd128,+relaxed-simd "$CARGO_TARGET_DIR/fused"

rm -rf "$out/package" "$out/playground"
mkdir -p "$out/package" "$out/playground/assets"
cp lib/* README.md "$root"/LICENSE-* "$root/NOTICE" "$out/package/"
cp "$root/models/default.safetensors" "$out/package/"
built=$target/release/cognate_wasm.wasm
cp "$CARGO_TARGET_DIR/$built" "$out/package/cognate.wasm"
cp "$CARGO_TARGET_DIR/fused/$built" "$out/package/cognate-fused.wasm"

# The service's own pages, with the package beside them and without what only the service has.
pages=$root/src/http/api/pages
sed -e 's|<html lang="en">|<html lang="en" data-offline="cognate/">|' -e 's|"/assets/|"assets/|' \
    -e 's|class="name" href="/"|class="name" href="./"|' -e '/<nav /,/<\/nav>/d' \
    "$pages/playground.html" >"$out/playground/index.html"
cp "$pages"/*.js "$pages"/*.css "$pages/icon.svg" "$out/playground/assets/"
rm "$out/playground/assets/"{docs,guide}.*
mkdir "$out/playground/cognate"
cp "$out/package/"* "$out/playground/cognate/"
ls -l "$out/package"
