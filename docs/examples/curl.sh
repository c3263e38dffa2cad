#!/bin/bash
# Build in a workspace with nothing but curl, and python3 to read answers.
# CLONEYARD_SERVER, CLONEYARD_TOKEN and BUILD_ID come from the CI system.
set -euo pipefail

workspaces=$CLONEYARD_SERVER/api/v1/workspaces

# The token is handed over on standard input: arguments are for all to see.
api() {
    curl --fail-with-body --silent --show-error --header @- "$@" \
        <<< "Authorization: Bearer $CLONEYARD_TOKEN"
}

field() {
    python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# With its key this is one workspace, however often it is sent.
workspace=$(
    api --retry 5 --retry-connrefused "$workspaces?wait=60" \
        --header "Idempotency-Key: $BUILD_ID" --header "Content-Type: application/json" \
        --data '{"template": "main", "purpose": "ci", "lease": 14400, "heartbeat_seconds": 3600}'
) || { echo "$workspace" >&2; exit 1; }
id=$(field id <<< "$workspace")
trap 'api --request DELETE "$workspaces/$id" > answer.json || cat answer.json >&2' EXIT

while [ "$(field state <<< "$workspace")" = provisioning ]; do
    sleep 5  # Retry-After, where too many wait already for this to be held
    workspace=$(api "$workspaces/$id?wait=60")
done
[ "$(field state <<< "$workspace")" = ready ] || { echo "$workspace" >&2; exit 1; }
P4CLIENT=$(field client <<< "$workspace")
export P4CLIENT
there=$(field path <<< "$workspace")

make --directory "$there"
# Whoever works for longer than heartbeat_seconds says that the job lives.
api --request POST "$workspaces/$id/heartbeat" > answer.json
make --directory "$there" test
