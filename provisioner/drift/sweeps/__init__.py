"""What is done again and again without being asked; importing it registers all."""

from __future__ import annotations

from provisioner.drift.sweeps import checks, known

__all__ = ["checks", "known"]
