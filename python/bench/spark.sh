#!/usr/bin/env bash
# Spark beside the program: `python/bench/spark.sh COGNATE [--pairs N] [--rounds N]`, or of events
# `python/bench/spark.sh COGNATE events [--texts N]`, in the environment that `python/test.sh` made, where the wheel
# and pyspark are. Needs Java and ../shared/data.
set -euo pipefail
program=$(realpath "${1:?usage: python/bench/spark.sh COGNATE [ARGUMENT...]}")
shift
script=spark.py
if [ "${1:-}" = events ]; then script=spark_events.py && shift; fi
cd "$(dirname "$0")"
python=${XDG_CACHE_HOME:-$HOME/.cache}/cognate/wheel/fresh/bin/python
[ -x "$python" ] || { echo "python/test.sh makes the environment" >&2; exit 1; }
COGNATE_MODEL=$(realpath ../../models/default.safetensors)
export COGNATE_MODEL PYSPARK_PYTHON=$python PYTHONDONTWRITEBYTECODE=1
exec "$python" "$script" --program "$program" "$@"
