"""Where the lab keeps files: volumes and snapshots as directory trees."""

from __future__ import annotations
