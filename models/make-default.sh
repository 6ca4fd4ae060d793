#!/usr/bin/env bash
# Makes models/default.safetensors: models/make-default.sh FOLDER SENTENCES
# FOLDER holds the distilled vectors.safetensors, vocab.txt and counts.tsv; SENTENCES is running text,
# a sentence a line with empty lines after paragraphs and documents, that components are fitted and
# weights are learned on. See models/README.md.
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
cargo run --locked --release --quiet -- fit models/default.safetensors \
    --components "$sentences" --universe axes:128
couples=$(mktemp -d)
trap 'rm -r "$couples"' EXIT
cargo run --locked --release --quiet -- pairs text "$sentences" \
    --length 10-30 --normalisation plain -o "$couples/wikipedia-10-30.tsv"
cargo run --locked --release --quiet -- train weights "$couples/wikipedia-10-30.tsv" \
    --measure cosine --model models/default.safetensors -o models/default.safetensors
