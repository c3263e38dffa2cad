"""Periodic tasks. Importing this package registers them all."""

from __future__ import annotations

from provisioner.notify.sweeps import mails, webhooks

__all__ = ["mails", "webhooks"]
