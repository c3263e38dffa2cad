"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.engine.sweeps import jobs, watchdog

__all__ = ["jobs", "watchdog"]
