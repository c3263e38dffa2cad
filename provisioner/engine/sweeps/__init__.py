"""What is done again and again without being asked; importing it registers all."""

from __future__ import annotations

from provisioner.engine.sweeps import jobs, watchdog

__all__ = ["jobs", "watchdog"]
