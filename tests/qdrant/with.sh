#!/usr/bin/env bash
# Runs a command with a server of its own that speaks as Qdrant does: tests/qdrant/with.sh COMMAND...
#
# TEST_COGNATE_QDRANT is its URL. Behind it is Qdrant Edge, the engine of Qdrant, from a wheel of PyPI
# (server.py); it keeps its data in a temporary folder, listens on 127.0.0.1 alone, and ends with the command.
# The command may end it and start it again: $TEST_COGNATE_QDRANT_SERVER stop | start | kill.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${COGNATE_QDRANT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cognate/qdrant}

if [ ! -x "$cache/venv/bin/python" ]; then
    python3 -m venv "$cache/venv.part"
    rm -rf "$cache/venv" && mv "$cache/venv.part" "$cache/venv"
fi
"$cache/venv/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"

work=$(mktemp -d)
port=$(python3 -c 'import socket
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])')

cat >"$work/server" <<END
#!/usr/bin/env bash
case \$1 in
start)
    : >"$work/out"
    "$cache/venv/bin/python" "$here/server.py" "$work/data" $port \${2:-} >"$work/out" 2>>"$work/log" </dev/null &
    echo \$! >"$work/pid"
    for _ in \$(seq 300); do
        grep -q listening "$work/out" && exit 0
        kill -0 "\$(cat "$work/pid")" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/log" >&2
    exit 1
    ;;
stop | kill)
    [ -e "$work/pid" ] || exit 0
    pid=\$(cat "$work/pid")
    if [ "\$1" = kill ]; then kill -KILL "\$pid" || true; else kill -TERM "\$pid" || true; fi
    while kill -0 "\$pid" 2>/dev/null; do sleep 0.05; done
    rm -f "$work/pid"
    ;;
esac
END
chmod 755 "$work/server"
trap '"$work/server" kill 2>/dev/null || true; rm -rf "$work"' EXIT
"$work/server" start
export TEST_COGNATE_QDRANT="http://127.0.0.1:$port"
export TEST_COGNATE_QDRANT_SERVER="$work/server"
"$@"
