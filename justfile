# Short names for common commands: `just --list`.

# Everything that a change must pass
check:
    .ci/run

# The long lane: every feature, fuzzing, benches, load, containers
long:
    .ci/run long

# Write generated files anew; read the difference before you commit it
bless:
    TEST_COGNATE_BLESS=1 cargo test --locked --test it -- openapi settings_example fuzz_seeds

# The lock files of all workspaces, after a change of manifests
locks:
    .ci/locks

# The files of a release, in dist/: archives, wheels, images, package for npm, extension of DuckDB, SBOMs, chart, checksums
release *FOLDER:
    .ci/release {{FOLDER}}

# The service on 127.0.0.1:8080, with the model in this repository
serve *FLAGS:
    cargo run --locked --release -- serve {{FLAGS}}

# Fuzz one target for a while: just fuzz import_glove 60
fuzz TARGET SECONDS="60":
    mkdir -p fuzz/target/found/{{TARGET}}
    RUSTC_BOOTSTRAP=1 cargo fuzz run {{TARGET}} --sanitizer none fuzz/target/found/{{TARGET}} fuzz/corpus/{{TARGET}} -- \
        -max_total_time={{SECONDS}} -rss_limit_mb=512 -timeout=2
