"""What is done again and again without being asked; importing it registers all."""

from __future__ import annotations

from provisioner.sites.sweeps import abilities, connections

__all__ = ["abilities", "connections"]
