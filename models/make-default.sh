#!/usr/bin/env bash
# Makes models/default.safetensors from the distilled vectors: models/make-default.sh FOLDER
# FOLDER holds vectors.safetensors, vocab.txt and counts.tsv; see models/README.md.
set -euo pipefail
vectors=$(realpath "${1:?the folder with vectors.safetensors, vocab.txt and counts.tsv}")
cd "$(dirname "$0")/.."
cargo run --locked --release --quiet -- pack "$vectors/vectors.safetensors" \
    --vocabulary "$vectors/vocab.txt" --counts "$vectors/counts.tsv" \
    --words 44000 --dtype int8 --normalisation plain \
    --unknown fallback --hash-norm 0.9128 --frequency in-norm --auto-method blend \
    --licence "CC BY-SA 3.0 (Wikipedia text), Apache-2.0 (all-MiniLM-L6-v2), PDDL 1.0 (GloVe word list), MIT (Wikipedia counts); see models/README.md" \
    -o models/default.safetensors
