#!/usr/bin/env bash
# Puts another image into service without losing a request: `docker-compose build cognate` (or a pull), then
# `deploy/roll.sh`. Replicas of the profile `scale` are replaced by as many new ones, which serve before the old
# ones stop; then the one with the collections, whose own address answers nothing for some seconds.
# COMPOSE_FILE=docker-compose.yml:deploy/compose.keys.yml where keys are asked for.
set -euo pipefail
cd "$(dirname "$0")/.."
if docker compose version >/dev/null 2>&1; then composer=(docker compose); else composer=(docker-compose); fi
compose() { "${composer[@]}" --profile scale "$@"; }
state() { docker inspect --format '{{.State.Health.Status}}' "$1"; }
# HAProxy asks once a second, so what is healthy to Docker for 3 s has its share of requests.
serving() {
    for one in $(compose ps -q "$1"); do
        for _ in {1..90}; do if [ "$(state "$one")" = healthy ]; then continue 2; fi; sleep 1; done
        echo "$one does not become healthy; see docker logs $one" >&2
        exit 1
    done
    sleep 3
}

mapfile -t old < <(compose ps -q replica)
compose up -d --no-build --no-deps --no-recreate --scale "replica=$((2 * ${#old[@]}))" replica
serving replica
for one in "${old[@]}"; do docker stop -t 30 "$one" && docker rm "$one"; done >/dev/null
compose up -d --no-build --no-deps cognate
serving cognate
