#!/usr/bin/env bash
# Builds stand-ins for the public base images, for a machine that has a Docker engine and Debian's
# packages but reaches no registry of images: `deploy/standins.sh`, as root.
#
# Each carries the very name that the Dockerfile and docker-compose.yml ask for, and does what those
# files rely on (paths, user, entry point, stop signal); nothing more is claimed for it. An image
# that is already there, pulled or built before, is left alone, and one that a registry gives within
# a minute is taken. Over a slow line, pull the images first. Removing the stand-ins again:
# `docker image rm $(docker image ls -q --filter label=cognate.standin)`.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the two files name; asking them keeps the names in one place.
rust_image=$(sed -n 's/^ARG RUST_IMAGE=//p' Dockerfile)
haproxy_image=$(sed -n 's/^ *image: \(haproxy:.*\)/\1/p' docker-compose.yml)
prometheus_image=$(sed -n 's/^ *image: \(prom\/prometheus:.*\)/\1/p' docker-compose.yml)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '== %s\n' "$*" >&2; }
present() { docker image inspect "$1" >/dev/null 2>&1; }

# debian SUITE FOLDER PACKAGES: a root file system of that suite with these packages.
debian() {
    say "debootstrap $1 with $3"
    debootstrap --variant=minbase --include="$3" "$1" "$2" >"$work/debootstrap.log" 2>&1 ||
        { tail -20 "$work/debootstrap.log" >&2; exit 1; }
    rm -rf "$2"/var/cache/apt/archives/*.deb "$2"/var/lib/apt/lists/* "$2"/usr/share/{doc,man,locale}
}

# image NAME FOLDER LINES...: the folder becomes an image, with these lines of a Dockerfile.
image() {
    local name=$1 folder=$2 base
    shift 2
    base=$(tar -C "$folder" --numeric-owner -c . | docker import -)
    printf '%s\n' "FROM $base" 'LABEL cognate.standin=1' "$@" | docker build -q -t "$name" - >/dev/null
    say "built $name"
}

# The official image is Debian with gcc and the toolchain under /usr/local; here the toolchain that
# is installed on this machine is copied in, and with it the certificates this machine trusts.
rust() {
    local root=$work/rust toolchain
    toolchain=$(realpath "$(rustc --print sysroot)")
    debian bookworm "$root" gcc,libc6-dev,ca-certificates
    local place=$root/usr/local/rustup/toolchains/installed
    mkdir -p "$place" "$root/usr/local/cargo/bin"
    cp -a "$toolchain"/{bin,lib} "$place/"
    rm -f "$place"/bin/{rust-analyzer,rust-gdb,rust-lldb}
    ln -s ../../rustup/toolchains/installed/bin/{cargo,rustc} "$root/usr/local/cargo/bin/"
    install -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    image "$rust_image" "$root" \
        'ENV PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        'ENV CARGO_HOME=/usr/local/cargo' 'ENV RUSTUP_HOME=/usr/local/rustup' 'CMD ["bash"]'
    rm -rf "$root"
}

# One root file system serves both: Debian's testing suite carries the same long-term lines as the
# named images. Should it have moved on, the versions printed here differ from the names.
haproxy_and_prometheus() {
    local root=$work/testing
    debian testing "$root" haproxy,prometheus
    mkdir -p "$root/usr/local/etc/haproxy" "$root/prometheus"
    chown 65534:65534 "$root/prometheus"
    chroot "$root" sh -c 'haproxy -v | head -1; prometheus --version 2>&1 | head -1' >&2
    present "$haproxy_image" || image "$haproxy_image" "$root" 'USER haproxy' \
        'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        'WORKDIR /var/lib/haproxy' 'STOPSIGNAL SIGUSR1' \
        'CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'
    present "$prometheus_image" || image "$prometheus_image" "$root" 'USER nobody' \
        'WORKDIR /prometheus' 'VOLUME /prometheus' 'ENTRYPOINT ["/bin/prometheus"]' \
        'CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]'
    rm -rf "$root"
}

for name in "$rust_image" "$haproxy_image" "$prometheus_image"; do
    [ -n "$name" ] || { echo "an image name was not found in Dockerfile or docker-compose.yml" >&2; exit 1; }
    # Without a network the registry may never answer.
    present "$name" || timeout 60 docker pull -q "$name" >&2 || say "$name was not pulled; a stand-in takes its place"
done
present "$rust_image" || rust
if ! present "$haproxy_image" || ! present "$prometheus_image"; then haproxy_and_prometheus; fi
for name in "$rust_image" "$haproxy_image" "$prometheus_image"; do
    docker image inspect --format '{{index .RepoTags 0}} {{.Size}} bytes' "$name"
done
