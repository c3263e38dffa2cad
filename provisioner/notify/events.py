"""What features above notifications are asked."""

from __future__ import annotations

from django.dispatch import Signal

asks_deadline = Signal()
"""A mail about a workspace is written (workspace, now): leases return its deadline."""
