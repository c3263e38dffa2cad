"""A template tag for snapshots on the page of a workspace."""

from __future__ import annotations

from django import template as library

from provisioner.workspace_snapshots.overviews import snapshots_overview

register = library.Library()
register.simple_tag(snapshots_overview, name="snapshots_of")
