"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.sites.sweeps import abilities, connections

__all__ = ["abilities", "connections"]
