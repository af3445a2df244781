#!/bin/sh
# soak.sh SECONDS: the workspace's random tests, the walk over media logs and the figures of random runs over and over, each time with
# another seed, until one fails or the time is up. A failure prints its seed, and of a random test its smallest case: commit the case as
# a test of its own.
set -eu
end=$(($(date +%s) + $1))
round=0
while [ "$(date +%s)" -lt "$end" ]; do
    round=$((round + 1))
    seed=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
    echo "round $round, seed $seed"
    SMRLAB_ALL_CASES=1 SMRLAB_SEED=$seed PROPTEST_RNG_SEED=$seed PROPTEST_CASES=${SOAK_CASES:-2048} cargo test --workspace --quiet ||
        { echo "failed: repeat it with SMRLAB_ALL_CASES=1 SMRLAB_SEED=$seed PROPTEST_RNG_SEED=$seed PROPTEST_CASES=${SOAK_CASES:-2048}" >&2; exit 1; }
    WALK_SEED=$seed WALK_DRIVES=${WALK_DRIVES:-400} .venv/bin/pytest -q -x python/tests/test_walk.py ||
        { echo "failed: repeat it with WALK_SEED= and the seed in brackets" >&2; exit 1; }
    IDENTITIES_SEED=$seed IDENTITIES_RUNS=${IDENTITIES_RUNS:-1000} .venv/bin/pytest -q -x python/tests/test_identities.py tests/device/test_drawn_runs.py ||
        { echo "failed: repeat it with IDENTITIES_SEED= and the seed that the message says" >&2; exit 1; }
done
echo "$round rounds passed"
