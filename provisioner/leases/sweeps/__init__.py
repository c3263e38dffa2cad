"""What is done again and again without being asked; importing it registers all."""

from __future__ import annotations

from provisioner.leases.sweeps import activity, leases

__all__ = ["activity", "leases"]
