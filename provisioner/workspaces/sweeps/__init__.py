"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.workspaces.sweeps import exports

__all__ = ["exports"]
