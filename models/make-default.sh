#!/usr/bin/env bash
# Makes models/default.safetensors: models/make-default.sh FOLDER SENTENCES
# FOLDER holds the distilled vectors.safetensors, vocab.txt and counts.tsv; SENTENCES is running text,
# a sentence a line, that components are fitted on. See models/README.md.
set -euo pipefail
vectors=$(realpath "${1:?the folder with vectors.safetensors, vocab.txt and counts.tsv}")
sentences=$(realpath "${2:?a file of sentences, one a line}")
cd "$(dirname "$0")/.."
cargo run --locked --release --quiet -- pack "$vectors/vectors.safetensors" \
    --vocabulary "$vectors/vocab.txt" --counts "$vectors/counts.tsv" \
    --words 44000 --dtype int8 --normalisation plain \
    --unknown fallback --hash-norm 0.9128 --frequency in-norm --auto-method blend \
    --licence "CC BY-SA 3.0 (Wikipedia text), Apache-2.0 (all-MiniLM-L6-v2), PDDL 1.0 (GloVe word list), MIT (Wikipedia counts); see models/README.md" \
    -o models/default.safetensors
cargo run --locked --release --quiet -- pack models/default.safetensors \
    --components "$sentences" --universe axes:128 -o models/default.safetensors
