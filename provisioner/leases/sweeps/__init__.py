"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.leases.sweeps import activity, leases

__all__ = ["activity", "leases"]
