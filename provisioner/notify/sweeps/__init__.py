"""What is done again and again without being asked; importing it registers all."""

from __future__ import annotations

from provisioner.notify.sweeps import mails, webhooks

__all__ = ["mails", "webhooks"]
