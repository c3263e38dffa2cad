"""The lab's ONTAP: an HTTPS server for a subset of the ONTAP REST API.

Volumes are real directories (btrfs subvolumes if there is btrfs), a junction is a bind
mount or a symlink, and the state is in SQLite.
"""

from __future__ import annotations
