#!/bin/bash
# Build in a workspace, from cron or by hand, with the command line.
# CLONEYARD_SERVER, CLONEYARD_TOKEN and BUILD_ID come from whoever starts this.
set -euo pipefail

scratch=$(mktemp --directory)
curl -fsSo "$scratch/cloneyard" "$CLONEYARD_SERVER/cli"
give_back() {
    cd /  # nobody may stand in a workspace that goes
    python3 "$scratch/cloneyard" retire "nightly-$BUILD_ID" --no-wait
    rm -r "$scratch"
}
trap give_back EXIT

python3 "$scratch/cloneyard" new main --purpose ci --quality built --lease 4h \
    --name "nightly-$BUILD_ID" --key "nightly $BUILD_ID" \
    --timeout 10min --export > "$scratch/workspace.sh"
# Not eval "$(...)": where there is no workspace, that would build right here.
. "$scratch/workspace.sh"
make
