"""Signals for features above sites."""

from __future__ import annotations

from django.dispatch import Signal

asks_where_to_go_on = Signal()
"""Somebody connected a site or a server (user): receivers return the next page."""

asks_clients = Signal()
"""Which clients the workspaces of a site have (site): receivers return their names."""
