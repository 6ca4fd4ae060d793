#!/usr/bin/env bash
# Holds a running service to its own document with schemathesis: `tests/contract/run.sh URL`.
# Installs schemathesis from PyPI into a folder of its own if it is not there. EXAMPLES says how many
# bodies are made for each route.
set -euo pipefail
url=${1:?usage: tests/contract/run.sh URL}
here=$(cd "$(dirname "$0")" && pwd)
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/schemathesis
if [ ! -x "$tools/bin/st" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet schemathesis==4.32.5
fi
cd "$(mktemp -d)"
# The collection that the document's examples ask.
json='content-type: application/json'
curl -fsS -X PUT "$url/collections/news" -H "$json" -d '{}' >/dev/null
curl -fsS -X PUT "$url/collections/news/items/a" -H "$json" -d '{"text": "Quake hits L.A.!!"}' >/dev/null
PYTHONPATH=$here SCHEMATHESIS_HOOKS=hooks "$tools/bin/st" --config-file "$here/schemathesis.toml" run "$url/openapi.json" \
    --url "$url" --phases examples,coverage,fuzzing,stateful --mode all --checks all \
    --max-examples "${EXAMPLES:-500}" --max-response-time 1 --seed 1 --suppress-health-check filter_too_much
