"""Signals for features above sites."""

from __future__ import annotations

from django.dispatch import Signal

asks_where_to_go_on = Signal()
"""Somebody connected a site or a server (user): receivers return the next page."""

asks_clients = Signal()
"""Which clients workspaces have at any of some Perforce servers (servers), of one site
or of all (site, None): receivers return their names."""
