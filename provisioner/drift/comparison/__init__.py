"""Compare a remote system with our rows, both ways. Pure: no I/O.

Only marks decide what is ours: a volume by the tag in its comment, a client by its name
and description together, a snapshot by its name and comment on a volume of ours.
Everything else is somebody else's: never listed, never touched. Objects with a running
or just ended operation are skipped.
"""

from __future__ import annotations

from provisioner.drift.comparison.facts import (
    CLIENT_FILTER,
    ClientWork,
    Known,
    KnownJob,
    KnownSnapshot,
    KnownTree,
    SeenPerforce,
    SeenStorage,
    Wanted,
    purpose_of_volume,
    tag_of_client,
    tag_of_volume,
    without_tag,
)
from provisioner.drift.comparison.perforce import compare_perforce
from provisioner.drift.comparison.previews import preview
from provisioner.drift.comparison.storage import compare_storage
from provisioner.lib.names import TAG_PREFIX

__all__ = [
    "CLIENT_FILTER",
    "TAG_PREFIX",
    "ClientWork",
    "Known",
    "KnownJob",
    "KnownSnapshot",
    "KnownTree",
    "SeenPerforce",
    "SeenStorage",
    "Wanted",
    "compare_perforce",
    "compare_storage",
    "preview",
    "purpose_of_volume",
    "tag_of_client",
    "tag_of_volume",
    "without_tag",
]
