#!/usr/bin/env bash
# Generates Python clients from openapi/cognate.json with three generators, and asks every native route
# of a running service with what they made: `tests/generators/run.sh URL`. Installs the generators from
# PyPI into a folder of their own if they are not there; one of them brings its own Java.
set -euo pipefail
url=${1:?usage: tests/generators/run.sh URL}
here=$(cd "$(dirname "$0")" && pwd)
document=$here/../../openapi/cognate.json
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/generators
if [ ! -e "$tools/ready" ]; then
    python3 -m venv --clear "$tools"
    "$tools/bin/pip" install --quiet -r "$here/requirements.txt"
    touch "$tools/ready"
fi
export PATH=$tools/bin:$PATH
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cd "$made"

openapi-python-client generate --path "$document" --output-path attrs 2>&1 | tee attrs.log
# Whatever it leaves out it warns of; it does not know bodies of lines, for which there is curl.
if grep -A2 '^WARNING parsing' attrs.log | grep -v '^--$\|^WARNING parsing\|^$' |
    grep -v '^Unsupported content type application/x-ndjson$'; then
    echo "openapi-python-client left something out" >&2
    exit 1
fi
python "$here/check.py" attrs "$url" attrs

datamodel-codegen --input "$document" --input-file-type openapi --formatters builtin \
    --output-model-type pydantic_v2.BaseModel --target-python-version 3.11 --output models/models.py
python "$here/check.py" models "$url" models

openapi-generator-cli generate -i "$document" -g python -o pydantic --package-name cognate_pydantic \
    >pydantic.log 2>&1 || { cat pydantic.log; exit 1; }
python "$here/check.py" pydantic "$url" pydantic
