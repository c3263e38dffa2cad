"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.catalog.sweeps import checks, refresh, retention, watch

__all__ = ["checks", "refresh", "retention", "watch"]
