"""Signals from the catalog to the features above it."""

from __future__ import annotations

from django.dispatch import Signal

before_building = Signal()
"""A build of a template is about to begin (template): receivers may raise a refusal."""

template_built = Signal()
"""A build published its snapshot and succeeded (template), in the transaction."""

snapshot_withdrawn = Signal()
"""A snapshot was withdrawn (snapshot, event: the audit event), in the transaction."""

asks_usual_seconds = Signal()
"""How long workspaces take to be ready (templates): receivers return seconds by id."""

asks_places = Signal()
"""Of which templates a person gets workspaces elsewhere (by, templates): receivers
return pairs of site and snapshot, and phrases for what is on its way there, both by
template id."""

asks_obstacles = Signal()
"""What stands against workspaces (by, snapshots, sites: where each is cloned, or None):
receivers return obstacles by snapshot id."""
