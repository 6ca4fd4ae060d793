#!/usr/bin/env bash
# Proves the image and the compose file by running them: `deploy/prove.sh`.
#
# Builds the unchanged Dockerfile, brings the unchanged compose file up with the profile `scale`, and
# shows that answers are right, that a replica may die, stop or reload under load without one failed
# request, and that a container has no rights it does not need. Where no registry is reached,
# deploy/standins.sh builds the base images first (as root, from Debian's packages).
#
# Uses ports of its own, a project name of its own, and takes down what it brought up. Needs Docker
# on this machine (containers are looked at from outside: the image holds no shell), python3, and
# root for looking into /proc. Answers are compared with those of the binary REFERENCE, by default
# target/release/cognate; where there is none, with the image's own binary run outside.
# The table at the end says what was seen; the exit status is 1 when something did not hold.
set -euo pipefail
cd "$(dirname "$0")/.."

project=cognate-proof
if docker compose version >/dev/null 2>&1; then composer=(docker compose); else composer=(docker-compose); fi
work=$(mktemp -d)
compose() { "${composer[@]}" -p "$project" --profile scale --profile monitoring "$@"; }
keyed() { "${composer[@]}" -p "$project-keys" -f docker-compose.yml -f deploy/compose.keys.yml "$@"; }
reference_pid="" broken=0
rows=()

say() { printf '\n== %s\n' "$*"; }
# row WHAT FIGURE STATUS: a line of the table; a status other than 0 counts against us.
row() {
    local verdict=yes
    if [ "$3" -ne 0 ]; then verdict=NO broken=$((broken + 1)); fi
    rows+=("$(printf '%-3s | %-54s | %s' "$verdict" "$1" "${2//$'\n'/; }")")
    printf '   %-3s %s: %s\n' "$verdict" "$1" "$2"
}
# holds WHAT FIGURE COMMAND...: the command's success is what is shown.
holds() {
    local what=$1 figure=$2 status=0
    shift 2
    "$@" >/dev/null 2>&1 || status=$?
    row "$what" "$figure" "$status"
}

table() {
    say "what was shown"
    printf '%s\n' "${rows[@]}"
    rows=()
}
finish() {
    local status=$?
    set +e
    [ -n "$reference_pid" ] && kill "$reference_pid" 2>/dev/null
    if [ "$status" -ne 0 ]; then
        [ "${#rows[@]}" -gt 0 ] && table
        compose ps -q 2>/dev/null | xargs -r -n 1 docker logs --tail 20
    fi
    compose down --volumes --remove-orphans --timeout 5 >"$work/down" 2>&1 || cat "$work/down"
    if [ -n "${KEYS:-}" ]; then keyed down --volumes --timeout 5 >"$work/down" 2>&1 || cat "$work/down"; fi
    rm -rf "$work"
}
trap finish EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# within SECONDS COMMAND...: waits until the command succeeds.
within() {
    local ends=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$ends" ] || return 1
        sleep 0.3
    done
}
replicas() { compose ps -q cognate replica; }
inspect() { docker inspect --format "$2" "$1"; }
address() { inspect "$1" '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'; }
# The service itself; the container's first process is the small init.
service_pid() {
    pgrep -P "$(inspect "$1" '{{.State.Pid}}')" -x cognate
}
healthy() {
    local container states=
    for container in $(replicas); do states+=$(inspect "$container" '{{.State.Health.Status}} '); done
    [ "$states" = "healthy healthy healthy " ]
}
balancer() { curl -fsS "http://$(address "$(compose ps -q haproxy)"):8404/;csv"; }
# in_rotation N: HAProxy sends requests to that many.
in_rotation() {
    balancer | awk -F, -v wanted="$1" '$1 == "pool" && $2 ~ /^replica/ && $18 ~ /^UP/ { up++ } END { exit up != wanted }'
}
# How often it sent a request or a connection again.
sent_again() { balancer | awk -F, '$1 == "pool" && $2 == "BACKEND" { print $16 + $17 }'; }
ready_again() { within 40 healthy && within 15 in_rotation 3; }

# under_load NAME SECONDS COMMAND...: runs the command 4 s into a load on the balancer.
under_load() {
    local name=$1 seconds=$2 load before status=0
    shift 2
    before=$(sent_again)
    deploy/tests/load.py "http://$PUBLISH_POOL" "$reference" --seconds "$seconds" >"$work/load" &
    load=$!
    sleep 4
    "$@"
    wait "$load" || status=$?
    row "$name" "$(python3 -c '
import json, sys
seen = json.load(sys.stdin)
failed = seen["failed"] or "0 failed"
print("%d requests, %s, %s sent again; p99 %s ms, longest %s ms"
      % (seen["requests"], failed, sys.argv[1], seen["p99_ms"], seen["longest_ms"]))
' $(($(sent_again) - before)) <"$work/load")" "$status"
}

say "images"
holds "Dockerfile, compose and HAProxy files as committed" "$(git rev-parse --short HEAD)" \
    git diff --quiet HEAD -- Dockerfile .dockerignore docker-compose.yml deploy/compose.keys.yml deploy/haproxy deploy/prometheus deploy/roll.sh
deploy/standins.sh
began=$SECONDS
compose build cognate >"$work/build" 2>&1 || { tail -40 "$work/build"; exit 1; }
row "the image builds" "$((SECONDS - began)) s, layers reused: $(grep -ciE 'using cache|CACHED' "$work/build" || true)" 0
compose build replica >"$work/build" 2>&1
size=$(docker image inspect --format '{{.Size}}' cognate)
model=$(stat -c %s models/default.safetensors)
megabytes() { printf '%d.%d MB' $(($1 / 1000000)) $(($1 / 100000 % 10)); }
# With Parquet and PostgreSQL in it the program takes 42 MB.
holds "the image is small" "$(megabytes "$size"), of them $(megabytes "$model") model" test "$size" -lt $((model + 45000000))
container=$(docker create cognate)
docker cp "$container:/cognate" "$work/cognate"
docker rm "$container" >/dev/null
holds "the binary is static" "$(megabytes "$(stat -c %s "$work/cognate")")" grep -q 'statically linked\|not a dynamic' <(ldd "$work/cognate" 2>&1)

say "up"
PUBLISH=127.0.0.1:$(free_port) PUBLISH_POOL=127.0.0.1:$(free_port) PUBLISH_PROMETHEUS=127.0.0.1:$(free_port)
export PUBLISH PUBLISH_POOL PUBLISH_PROMETHEUS
began=$SECONDS
compose up -d --no-build cognate replica haproxy
status=0
within 60 healthy || status=$?
row "health turns green" "3 replicas, $((SECONDS - began)) s after 'up'" "$status"
holds "the balancer has all three" "/ready, by HAProxy's own statistics" within 15 in_rotation 3

say "answers"
binary=${REFERENCE:-target/release/cognate} whose="a binary built on the host"
if [ ! -x "$binary" ]; then binary=$work/cognate whose="the image's binary, run outside"; fi
reference=http://127.0.0.1:$(free_port)
"$binary" serve --listen "${reference#http://}" --model default=models/default.safetensors >"$work/reference" 2>&1 &
reference_pid=$!
within 20 curl -fsS "$reference/ready" || { echo "$binary does not serve:"; cat "$work/reference"; exit 1; }
body='{"pairs":[["Quake hits L.A.!!","Earthquake shakes Los Angeles"]]}'
answer=$(curl -fsS -H 'Content-Type: application/json' -d "$body" "http://$PUBLISH/similarity")
echo "   $answer"
under_load "answers equal those of $whose" 5 true
holds "one replica's matters are not balanced" "/metrics and /-/reload give 404" \
    sh -c "curl -s -o /dev/null -w '%{http_code}' http://$PUBLISH_POOL/metrics | grep -q 404 &&
           curl -s -o /dev/null -w '%{http_code}' -X POST http://$PUBLISH_POOL/-/reload | grep -q 404"

say "rights"
container=$(compose ps -q cognate)
pid=$(service_pid "$container")
status_of() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$pid/status"; }
refused() { ! touch "/proc/$pid/root$1/written" 2>/dev/null; }
holds "the user is not root" "uid $(status_of Uid)" test "$(status_of Uid)" = 65532
holds "no capabilities, and none to be had" "CapEff $(status_of CapEff), NoNewPrivs $(status_of NoNewPrivs)" \
    test "$(status_of CapEff)$(status_of CapBnd)$(status_of NoNewPrivs)" = 000000000000000000000000000000001
holds "system calls are filtered" "seccomp mode $(status_of Seccomp)" test "$(status_of Seccomp)" = 2
holds "the file system is read-only" "also to root, writing to it from outside" refused ""
holds "so are the models" "/own" refused /own
holds "/tmp takes files and runs none" "$(awk '$5 == "/tmp" { print $6 }' "/proc/$pid/mountinfo")" \
    grep -q ' /tmp .*noexec' "/proc/$pid/mountinfo"
holds "memory, without swap; threads; files" \
    "$(inspect "$container" '{{.HostConfig.Memory}} bytes, {{.HostConfig.PidsLimit}} threads'), $(awk '/open files/ { print $4 }' "/proc/$pid/limits") files" \
    test "$(inspect "$container" '{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.PidsLimit}}')" = "536870912 536870912 64"
holds "threads fit the limit" "$(status_of Threads) of 64" test "$(status_of Threads)" -lt 60
holds "published on loopback only" "$(docker port "$container" 8080/tcp)" \
    test "$(docker port "$container" 8080/tcp)" = "$PUBLISH"

say "under load"
# Held still first, so that it dies with requests in its hands; it is too fast to be caught otherwise.
crash() {
    local pid
    pid=$(service_pid "$crashed")
    kill -STOP "$pid"
    sleep 0.5
    kill -KILL "$pid"
}
restarted() { [ "$(inspect "$crashed" '{{.RestartCount}} {{.State.Health.Status}}')" = "1 healthy" ]; }
mapfile -t others < <(compose ps -q replica)
crashed=${others[0]}
under_load "a replica hangs 0.5 s and crashes (SIGKILL)" 12 crash
holds "Docker starts it again, and it turns green" "restart: unless-stopped" within 40 restarted
holds "and the balancer uses it again" "3 in rotation" ready_again

kill_container() { docker kill "${others[1]}" >/dev/null; }
under_load "a replica's container is killed (docker kill)" 12 kill_container
compose up -d --no-build cognate replica haproxy >"$work/up" 2>&1
holds "a new one takes its place" "3 in rotation" ready_again

stop_one() {
    local began=$SECONDS
    compose stop cognate >"$work/stop" 2>&1
    stopped=$((SECONDS - began))
}
container=$(compose ps -q cognate)
under_load "a replica is stopped (compose stop)" 16 stop_one
holds "it ends by itself, and well" "exit code $(inspect "$container" '{{.State.ExitCode}}') after $stopped s" \
    test "$(inspect "$container" '{{.State.ExitCode}} {{.State.OOMKilled}}')" = "0 false"
compose up -d --no-build cognate replica haproxy >"$work/up" 2>&1
holds "started again it is back" "3 in rotation" ready_again

reload() { compose kill -s HUP cognate replica >"$work/reload" 2>&1; }
reloads() {
    local container total=0
    for container in $(replicas); do
        total=$((total + $(curl -fsS "http://$(address "$container"):8080/metrics" | awk '$1 == "cognate_reloads_total" { print $2 }')))
    done
    echo "$total"
}
upgrade() { docker build -q -t cognate - <<<'FROM cognate
LABEL cognate.proof=1' >"$work/roll" 2>&1 && COMPOSE_PROJECT_NAME=$project deploy/roll.sh >>"$work/roll" 2>&1; }
under_load "all replicas get another image (deploy/roll.sh)" 60 upgrade
holds "and run it" "3 in rotation" ready_again

before=$(reloads)
under_load "all replicas read their models again (SIGHUP)" 8 reload
holds "and did" "$(($(reloads) - before)) reloads" test "$(($(reloads) - before))" -eq 3

say "monitoring"
compose up -d --no-build prometheus >"$work/up" 2>&1
scraped() {
    curl -fsS "http://$PUBLISH_PROMETHEUS/api/v1/query?query=count(cognate_ready==1)" | grep -q '"3"\]'
}
kind() { curl -fsS -o /dev/null -w '%{content_type}' "http://$PUBLISH/metrics"; }
holds "Prometheus 3 knows what it is given" "$(kind)" grep -q '^text/plain; version=0.0.4' <(kind)
holds "Prometheus finds and scrapes every replica" "3 ready" within 30 scraped
# Rates need two scrapes with requests between them.
deploy/tests/load.py "http://$PUBLISH_POOL" "$reference" --seconds 15 >/dev/null || true
status=0
asked=$(deploy/tests/queries.py --prometheus "http://$PUBLISH_PROMETHEUS" 2>&1) || status=$?
row "it answers every query of rules and dashboard" "$asked" "$status"
status=0
asked=$(deploy/tests/queries.py "http://$(address "$(compose ps -q cognate)"):8080/metrics" 2>&1) || status=$?
row "every metric they name is served" "$asked" "$status"
alerts=$(curl -fsS "http://$PUBLISH_PROMETHEUS/api/v1/rules" | python3 -c '
import json, sys
rules = [rule for group in json.load(sys.stdin)["data"]["groups"] for rule in group["rules"]]
firing = [rule["name"] for rule in rules if rule["state"] == "firing"]
print(len(rules), "loaded,", len(firing), "firing", *firing)')
holds "alert rules are loaded and silent" "$alerts" grep -q ' 0 firing' <<<"$alerts"

say "alerts by real faults (eleven minutes)"
# Found by the name server of Docker, which forgets a dead container's name.
gone=$(compose ps -q replica | head -1)
deploy/tests/faults.py --deployment "http://$PUBLISH_PROMETHEUS" --cause "docker kill $gone" \
    --mend "docker start $gone" >"$work/alerts" || true
image=$(inspect "$(compose ps -q prometheus)" '{{.Config.Image}}')
mkdir "$work/faults"
chmod 0755 "$work"
deploy/tests/faults.py "$work/cognate" --folder "$work/faults" \
    --prometheus "docker run --rm --network host --user 0 -v $work/faults:$work/faults $image" >>"$work/alerts" || true
while IFS='|' read -r fault figure; do
    holds "${fault% }" "${figure# }" grep -q 'fires after .* silent' <<<"$figure"
done <"$work/alerts"
holds "and none was left out" "$(wc -l <"$work/alerts") alerts" test "$(wc -l <"$work/alerts")" -eq 8

say "keys, by the second compose file"
"$work/cognate" keygen proof >"$work/key" 2>/dev/null
mkdir -m 0755 "$work/secrets"
# rekey LINE: the file is another afterwards, as with sed -i.
rekey() {
    sed -n 2p "$1" >"$work/secrets/new"
    chown 65532 "$work/secrets/new" && chmod 0400 "$work/secrets/new"
    mv "$work/secrets/new" "$work/secrets/keys"
}
rekey "$work/key"
export KEYS=$work/secrets
at=127.0.0.1:$(free_port)
PUBLISH=$at keyed up -d --no-build cognate >"$work/up" 2>&1
ask() { curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d "$body" "$@" "http://$at/similarity"; }
within 20 curl -fsS "http://$at/ready" || true
codes="$(ask) $(ask -H "Authorization: Bearer $(sed -n 1p "$work/key")")"
holds "a key opens, none does not" "$codes" test "$codes" = "401 200"
"$work/cognate" keygen proof-2 >"$work/key-2" 2>/dev/null
# Old and new key, without a signal after one of the files was put in the place of the other.
rotated() { [ "$(ask -H "Authorization: Bearer $(sed -n 1p "$1")") $(ask -H "Authorization: Bearer $(sed -n 1p "$2")")" = "401 200" ]; }
rekey "$work/key-2"
began=$SECONDS
seen=0
within 40 rotated "$work/key" "$work/key-2" || seen=$?
row "another file of keys is taken over by itself" "401 200 after $((SECONDS - began)) s" "$seen"
rekey "$work/key"
keyed kill -s HUP cognate >"$work/up" 2>&1
seen=0
within 5 rotated "$work/key-2" "$work/key" || seen=$?
row "and at once by a signal" "$(docker logs "$(keyed ps -q cognate)" 2>&1 | grep -o '"keys loaded".*"removed":"[^"]*"' | tail -1)" "$seen"

say "down"
mapfile -t all < <(replicas)
began=$SECONDS
compose stop >"$work/stop" 2>&1
codes=$(for container in "${all[@]}"; do inspect "$container" '{{.State.ExitCode}}'; done | tr '\n' ' ')
holds "everything stops by itself" "exit codes $codes after $((SECONDS - began)) s" test "$codes" = "0 0 0 "

table
[ "$broken" -eq 0 ]
