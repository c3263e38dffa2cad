"""Files of the lab: volumes and snapshots as directory trees."""

from __future__ import annotations
