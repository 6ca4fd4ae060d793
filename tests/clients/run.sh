#!/usr/bin/env bash
# Runs the clients of other servers against this service: `tests/clients/run.sh COGNATE`, the binary.
# Installs the clients from PyPI into two folders of their own, outside the checkout, if they are not
# there; that needs Python 3.11 or newer. TEST_COGNATE_BLESS=1 writes the table in
# docs/integrations/README.md anew.
set -euo pipefail
cognate=$(realpath "${1:?usage: tests/clients/run.sh COGNATE}")
here=$(cd "$(dirname "$0")" && pwd)
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/clients
export PYTHONDONTWRITEBYTECODE=1
if [ ! -x "$tools/uv/bin/uv" ]; then
    python3 -m venv "$tools/uv"
    "$tools/uv/bin/pip" install --quiet uv==0.13.9
fi
for set in newest held-back; do
    # Every package is pinned, so nothing is left to resolve.
    [ -x "$tools/$set/bin/python" ] || "$tools/uv/bin/uv" venv --quiet "$tools/$set"
    "$tools/uv/bin/uv" pip sync --quiet --python "$tools/$set/bin/python" "$here/requirements/$set.txt"
done
"$tools/newest/bin/python" "$here/vector_store.py" "$cognate"
exec python3 "$here/run.py" "$cognate" "$tools"
