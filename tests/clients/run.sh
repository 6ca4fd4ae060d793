#!/usr/bin/env bash
# Runs the clients of other servers against this service: `tests/clients/run.sh COGNATE`, the binary.
# Installs the clients from PyPI into two folders of their own, outside the checkout, if they are not
# there; that needs Python 3.11 or newer. Redis is Debian's server, installed where it is missing.
# TEST_COGNATE_BLESS=1 writes works.tsv anew.
set -euo pipefail
cognate=$(realpath "${1:?usage: tests/clients/run.sh COGNATE}")
here=$(cd "$(dirname "$0")" && pwd)
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/clients
export PYTHONDONTWRITEBYTECODE=1
if [ ! -x "$tools/uv/bin/uv" ]; then
    python3 -m venv "$tools/uv"
    "$tools/uv/bin/pip" install --quiet uv==0.13.9
fi
if ! command -v redis-server >/dev/null; then
    [ "$(id -u)" = 0 ] || { echo "redis-server is missing: apt-get install redis-server" >&2; exit 1; }
    apt-get update -qq
    # Installing it must start no server of the system.
    RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server >/dev/null
fi
for set in newest held-back; do
    # Every package is pinned, so nothing is left to resolve.
    [ -x "$tools/$set/bin/python" ] || "$tools/uv/bin/uv" venv --quiet "$tools/$set"
    "$tools/uv/bin/uv" pip sync --quiet --python "$tools/$set/bin/python" "$here/requirements/$set.txt"
done
"$tools/newest/bin/python" "$here/vector_store.py" "$cognate"
"$tools/newest/bin/python" "$here/redis_stream.py" "$cognate"
exec python3 "$here/run.py" "$cognate" "$tools"
