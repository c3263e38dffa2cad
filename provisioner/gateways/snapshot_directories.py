"""The snapshot directories that a file server shows in a volume.

Source: `.snapshot` in every directory of an NFS mount: NetApp, "Make snapshot copies
visible to clients".
"""

from __future__ import annotations

SNAPSHOTS = ".snapshot"
"""No part of any tree of ours, at whatever depth. Every walk skips the name."""
