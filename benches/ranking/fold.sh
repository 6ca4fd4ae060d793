#!/usr/bin/env bash
# Trains a ranker on some years of TREC Microblog and measures it on another, beside query
# likelihood's run and ours:
#   benches/ranking/fold.sh MODEL ENCODER TEST_YEAR TRAIN_YEAR... [-- FLAGS OF `train ranker`]
# DATA names the folder of microblog-YEAR.tsv.gz and microblog-YEAR.qrels.tsv, OUT where the trained
# model and the figures go, COGNATE a binary built with `--features train-ranker`.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${DATA:-../shared/data/ranking} out=${OUT:-target/bench/ranking}
cognate=${COGNATE:-${CARGO_TARGET_DIR:-target}/release/cognate}
model=$1 encoder=$2 test=$3
shift 3
train=() years=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    train+=("$data/microblog-$1.tsv.gz")
    years=${years:+$years+}$1
    shift
done
[ $# -eq 0 ] || shift
mkdir -p "$out"
name=$out/$encoder-$test-$years
started=$SECONDS
"$cognate" train ranker --data "${train[@]}" --model "$model" --encoder "$encoder" \
    -o "$name.safetensors" --json "$@" >"$name.training.json"
echo "$name: trained in $((SECONDS - started)) s"
# The weight of the run's own query likelihood is found on the queries that judged the training.
python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["judges"], sep="\n")' \
    "$name.training.json" >"$name.judges"
zcat "${train[@]}" | awk -F'\t' 'NR == FNR { judge[$1]; next } $1 in judge' "$name.judges" - \
    >"$name.valid.tsv"
"$cognate" eval ranking "$data/microblog-$test.tsv.gz" --qrels "$data/microblog-$test.qrels.tsv" \
    --model "$name.safetensors" --methods "$encoder,ranker-ql,ql" --column ql_score --at 30 \
    --combine "$encoder,ql_score" --combine-on "$name.valid.tsv" --baseline ql_score \
    --json "$name.json"
