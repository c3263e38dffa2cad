"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.drift.sweeps import checks, known

__all__ = ["checks", "known"]
