#!/bin/bash
# Runs every test of the workspace once. The test of clusters takes longest and mostly waits: what needs no bed runs beside it, and the other
# beds after it, one by one, since some of them bound how long something takes. Tests that need a bed say so in their names.
set -euo pipefail

log=$(mktemp)
set -m # a process group of its own, which ends as a whole
cargo test --locked --workspace --test clusters >"$log" 2>&1 &
clusters=$!
set +m
trap 'kill -- "-$clusters" 2>/dev/null || true; rm -f "$log"' EXIT

failed=0
nice cargo test --locked --workspace --no-fail-fast -- --skip on_a_bed || failed=1
echo "waiting for the test of clusters, which writes to $log"
wait "$clusters" || failed=1
cat "$log"
cargo test --locked --workspace --no-fail-fast --tests -- on_a_bed --skip on_a_bed_clusters || failed=1
exit "$failed"
