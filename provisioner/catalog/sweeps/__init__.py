"""What is done again and again without being asked; importing it registers all."""

from __future__ import annotations

from provisioner.catalog.sweeps import checks, refresh, retention, watch

__all__ = ["checks", "refresh", "retention", "watch"]
