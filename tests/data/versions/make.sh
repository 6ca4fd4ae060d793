#!/usr/bin/env bash
# Makes the files of a release that later ones must open: `tests/data/versions/make.sh PROGRAM`, into a folder named
# by the program's version. They are made once, by the release that they are named by, and never again. The program is
# built with the feature `postgres`.
#
#   model.safetensors   the words of tests/data/requests.tsv out of the default model, with all that a file can hold
#   scores.tsv          what each method scored and found by it
#   collections/        a collection that was loaded, matched, patched by a second load, and closed
#   items.ndjson        its export
#   database.sql        a smaller one in PostgreSQL, with vectors by the model and an index of them, as pg_dump writes it
#   database.ndjson     its export, and below it a ranking of the nearest
set -euo pipefail
cd "$(dirname "$0")/../../.."
[ -n "${TEST_COGNATE_POSTGRES:-}" ] || exec tests/postgres/with.sh "$(realpath "$0")" "$(realpath "$1")"
program=$(realpath "$1")
folder=tests/data/versions/$("$program" -V | cut -d ' ' -f 2)
mkdir "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TZ=UTC

tail -n +2 tests/data/requests.tsv | cut -f 4,5 | tr '\t' '\n' >"$work/texts"
{ echo text; tr 'A-Z' 'a-z' <"$work/texts" | grep -oE '[a-z]{2,}' | sort | uniq -c | sort -k1,1nr -k2 |
    awk '{ print $2 }' | head -400; } >"$work/words"
{ tail -n +2 "$work/words" | awk '{ print $1 "\t" int(1000000 / NR) }'; } >"$work/counts.tsv"
"$program" embed --input "$work/words" --format tsv --method avg-cos --model models/default.safetensors \
    2>/dev/null | tail -n +2 | tr -d '[]' | tr '\t,' '  ' >"$work/vectors.txt"
"$program" pack "$work/vectors.txt" --format glove --counts "$work/counts.tsv" \
    --dtype int8 --unknown fallback --normalisation plain --auto-method coverage-blend -o "$folder/model.safetensors"
"$program" fit "$folder/model.safetensors" --components "$work/texts" --universe axes:16 --polarity models/polarity-en.tsv

model=(--model "$folder/model.safetensors")
{ printf 'a\tb\n'; tail -n +2 tests/data/requests.tsv | head -20 | cut -f 4,5; } >"$work/pairs"
printf 'method\ta\tb\tscore\n' >"$folder/scores.tsv"
python3 -c 'import json
print(*json.load(open("openapi/cognate.json"))["components"]["schemas"]["PairMethod"]["enum"], sep="\n")' |
    while read -r method; do
        "$program" similarity --input "$work/pairs" --format tsv --method "$method" "${model[@]}" >"$work/scores" \
            2>/dev/null </dev/null || continue
        tail -n +2 "$work/scores" | awk -v method="$method" '{ print method "\t" $0 }' >>"$folder/scores.tsv"
    done

head -60 "$work/texts" | python3 -c 'import json, sys
for at, text in enumerate(sys.stdin):
    item = {"id": f"t{at}", "text": text.strip(), "time": 1764147600000 + 60000 * at}
    if at % 3 == 0: item["attributes"] = {"lang": "en", "n": at / 2, "open": at % 2 == 0}
    if at % 5 == 0: item["data"] = {"link": f"https://example.com/{at}", "of": [at, None]}
    print(json.dumps(item))' >"$work/items"
"$program" collection create --data "$folder/collections" news --max-items 50
sed -n 1,20p "$work/items" | "$program" collection load --data "$folder/collections" news -
sed -n 21,60p "$work/items" | "$program" collection match --data "$folder/collections" news - "${model[@]}" >/dev/null
sed -n 16,18p "$work/items" | sed 's/"text": "/"text": "again /' | "$program" collection load --data "$folder/collections" news -
"$program" collection export --data "$folder/collections" news >"$folder/items.ndjson"
rm "$folder/collections/.lock"

database=(--postgres "$TEST_COGNATE_POSTGRES")
"$program" collection init "${database[@]}"
"$program" collection create "${database[@]}" news --max-items 16
sed -n 1,10p "$work/items" | "$program" collection load "${database[@]}" news -
sed -n 11,20p "$work/items" | "$program" collection match "${database[@]}" news - "${model[@]}" >/dev/null
sed -n 6,7p "$work/items" | sed 's/"text": "/"text": "again /' | "$program" collection load "${database[@]}" news -
"$program" collection index "${database[@]}" news "${model[@]}"
"$TEST_COGNATE_POSTGRES_BIN/pg_dump" --no-owner --no-acl "$TEST_COGNATE_POSTGRES" >"$folder/database.sql"
{ "$program" collection export "${database[@]}" news
    "$program" collection rank "${database[@]}" news --like t12 --shortlist 5 "${model[@]}" --json
} >"$folder/database.ndjson"
