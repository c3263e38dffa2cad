#!/bin/bash
# Game/Build/workspace.sh: a workspace for the nodes that Horde runs in one batch.
# “workspace.sh get TEMPLATE LEASE” gets it, “workspace.sh run COMMAND …” works there.
# `cloneyard` is installed on the agent, whose account keeps a token: `cloneyard login
# --token` once. So no token is in Horde's configuration, which its users read.
set -euo pipefail

batch="$UE_HORDE_JOBID-$UE_HORDE_BATCHID"
# Both may be longer than a name.
name=horde-$(printf %s "$batch" | cksum | cut -d ' ' -f 1)
kept=$UE_HORDE_SHARED_DIR/cloneyard-$name

case $1 in
    get)
        # First, so that it is retired even if this step is canceled: the agent runs this
        # script at the end of the batch, with 30 seconds for it and without our variables.
        printf '%q retire %q --server %q --no-wait\nrm -f %q\n' "$(command -v cloneyard)" \
            "$name" "$CLONEYARD_SERVER" "$kept" >> "$UE_HORDE_LEASE_CLEANUP"
        mkdir -p "$UE_HORDE_SHARED_DIR"
        cloneyard new "$2" --purpose build --lease "$3" --name "$name" --key "horde $batch" \
            --timeout 10min --export > "$kept"
        ;;
    run)
        . "$kept"
        exec "${@:2}"
        ;;
    *)
        echo "Call workspace.sh get TEMPLATE LEASE, or workspace.sh run COMMAND …" >&2
        exit 2
        ;;
esac
