#!/usr/bin/env bash
# Checks everything under deploy/ that can be checked without an engine or a cluster:
# `deploy/check.sh [METRICS]`, METRICS being a file of metrics text or the URL of a running /metrics.
# A tool that is missing is named and its check left out; STRICT=1 makes that a failure.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

failed=0 missing=0

# check NAME TOOL COMMAND...: runs the command where the tool is there.
check() {
    local name=$1 tool=$2 log
    shift 2
    if ! command -v "$tool" >/dev/null; then
        printf 'left out  %-34s %s is not installed\n' "$name" "$tool"
        missing=$((missing + 1))
    elif log=$("$@" 2>&1); then
        printf 'ok        %-34s %s\n' "$name" "$(printf '%s' "$log" | tail -1 | cut -c1-90)"
    else
        printf 'FAILED    %s\n%s\n' "$name" "$log"
        failed=$((failed + 1))
    fi
}

compose_with() { "$@" --profile scale --profile monitoring config -q && echo "both profiles"; }
# The dashboard's queries as recording rules: then promtool reads them as Prometheus would.
dashboard_syntax() {
    local rules
    rules=$(mktemp --suffix=.yml)
    { echo 'groups: [{name: queries, rules: ['
      deploy/tests/queries.py --expressions | awk '{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "{record: q:%d, expr: \"%s\"},\n", NR, $0 }'
      echo ']}]'; } >"$rules"
    promtool check rules --lint=none "$rules"
    local answer=$?
    rm -f "$rules"
    return $answer
}
# HAProxy before 3.1 does not know `init-state`; everything else is read all the same.
haproxy_syntax() {
    local known=cat
    case $(haproxy -v | head -1) in *" 2."* | *" 3.0"*) known='sed s/init-state.down//' ;; esac
    $known deploy/haproxy/haproxy.cfg | haproxy -c -f /dev/stdin && haproxy -v | head -1
}
manifests() { kubectl kustomize deploy/kubernetes | python3 deploy/tests/manifests.py; }
schemas() {
    local rendered
    rendered=$(mktemp --suffix=.yaml)
    kubectl kustomize deploy/kubernetes >"$rendered" && kubernetes-validate --strict "$rendered"
    local answer=$?
    rm -f "$rendered"
    return $answer
}

check "compose file, docker-compose" docker-compose compose_with docker-compose
docker compose version >/dev/null 2>&1 && check "compose file, Compose v2" docker compose_with docker compose
check "prometheus.yml and alerts.yml" promtool promtool check config deploy/prometheus/prometheus.yml
check "each alert speaks and is silent" promtool promtool test rules deploy/tests/alerts_test.yml
check "syntax of every query" promtool dashboard_syntax
check "haproxy.cfg" haproxy haproxy_syntax
check "manifests render and hold" kubectl manifests
check "manifests against the schemas" kubernetes-validate schemas
check "scripts" shellcheck shellcheck deploy/check.sh deploy/prove.sh deploy/standins.sh
check "provisioning is YAML" yamllint yamllint -d '{extends: relaxed, rules: {line-length: disable}}' \
    docker-compose.yml deploy/grafana deploy/prometheus deploy/kubernetes deploy/tests
if [ $# -gt 0 ]; then check "every query against /metrics" python3 deploy/tests/queries.py "$1"; fi

if [ "$failed" -gt 0 ]; then exit 1; fi
if [ "$missing" -gt 0 ] && [ -n "${STRICT:-}" ]; then exit 1; fi
