# The service as one static binary on an empty image, with its model inside.
#
# `docker build -t cognate .` needs of the network the Rust image and the crates of Cargo.lock, no
# more. It builds for the architecture it runs on (amd64 or arm64), with the classic builder and with
# BuildKit alike, and so uses no mounts and no syntax line. To pin the toolchain to a digest:
# --build-arg RUST_IMAGE=rust@sha256:... It can share collections in PostgreSQL; an image that need not:
# --build-arg FEATURES=columns,swagger. It sends spans where `otlp_endpoint` says so.
ARG RUST_IMAGE=rust:1.95-bookworm
ARG FEATURES=columns,otlp,postgres,swagger

# The manifests with empty sources, so that the layer of dependencies stands until one of them changes.
FROM ${RUST_IMAGE} AS manifests
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY tests/support tests/support
# Cargo insists that the files of its benches and tests exist.
RUN find crates tests -name '*.rs' -delete \
    && for folder in . crates/* tests/support; do mkdir -p "$folder/src" && echo '//! Empty.' > "$folder/src/lib.rs"; done \
    && echo 'fn main() {}' > src/main.rs \
    && mkdir -p benches tests/it && touch tests/it/main.rs \
    && awk '/^\[/ { bench = /^\[\[bench\]\]/ } bench && $1 == "name" { gsub(/"/, "", $3); print "benches/" $3 ".rs" }' Cargo.toml \
        | xargs -r touch \
    && awk '/^path = "benches/ { gsub(/"/, "", $3); print $3 }' Cargo.toml \
        | while read -r path; do mkdir -p "${path%/*}" && touch "$path"; done

FROM ${RUST_IMAGE} AS build
ARG FEATURES
WORKDIR /src
# The C library goes into the binary too; nothing is left to load, and no base image to keep patched.
ENV RUSTFLAGS="-C target-feature=+crt-static" \
    CARGO_TERM_COLOR=never
# Naming the target keeps those flags away from build scripts and procedural macros.
RUN rustc -vV | sed -n 's/^host: //p' > /target

# The service without what trains and evaluates (the default features `train` and `eval`), dependencies first.
COPY --from=manifests /src ./
RUN cargo build --locked --release --no-default-features --features "${FEATURES}" --bin cognate --target "$(cat /target)" \
    && cargo clean --locked --release --target "$(cat /target)" \
        $(for manifest in Cargo.toml crates/*/Cargo.toml; do sed -n 's/^name = "\(.*\)"/-p \1/p' "$manifest" | head -1; done)

COPY crates crates
COPY src src
COPY docs docs
# The commit, for the log, the metrics and --version.
ARG REVISION=unknown
RUN COGNATE_REVISION="${REVISION}" cargo build --locked --release --no-default-features --features "${FEATURES}" --bin cognate --target "$(cat /target)" \
    && install -D -m 0555 "target/$(cat /target)/release/cognate" /built/cognate \
    && ldd /built/cognate 2>&1 | grep -E 'statically linked|not a dynamic executable' \
    && /built/cognate --version

# Whatever the checkout's file modes are, the service's user can read these and write none.
FROM ${RUST_IMAGE} AS files
COPY LICENSE-MIT LICENSE-APACHE NOTICE /given/
COPY models/default.safetensors models/default.md models/README.md /given/
RUN install -D -m 0444 -t /image/licences /given/LICENSE-MIT /given/LICENSE-APACHE /given/NOTICE \
    && install -D -m 0444 -t /image/models /given/default.safetensors /given/default.md /given/README.md \
    && mkdir -p /given/own/data

FROM scratch
# The licence of the program, then what the model inside is made of: NOTICE.
LABEL org.opencontainers.image.title="cognate" \
      org.opencontainers.image.source="https://github.com/OWNER/cognate" \
      org.opencontainers.image.description="Similarity scores for short texts, in microseconds on a CPU" \
      org.opencontainers.image.licenses="(MIT OR Apache-2.0) AND Apache-2.0 AND CC-BY-SA-3.0 AND PDDL-1.0 AND LicenseRef-WordNet-3.0"
COPY --from=files /image/ /
COPY --from=build /built/cognate /cognate
# An empty folder for collections (COGNATE_DATA=/data): a volume that is mounted there becomes the user's.
COPY --from=files --chown=65532:65532 /given/own/ /
# The settings that differ in a container. Without keys the service refuses an address that others
# can reach; whoever runs the image gives COGNATE_KEYS_FILE, or says COGNATE_ALLOW_NO_AUTH=true.
ENV COGNATE_LISTEN=0.0.0.0:8080 \
    COGNATE_MODEL=default=/models/default.safetensors
EXPOSE 8080
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 CMD ["/cognate", "healthcheck"]
ENTRYPOINT ["/cognate"]
CMD ["serve"]
