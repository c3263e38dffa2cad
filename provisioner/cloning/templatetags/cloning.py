"""A template tag for clones on the page of a workspace."""

from __future__ import annotations

from django import template as library

from provisioner.cloning.overviews import clones_of

register = library.Library()
register.simple_tag(clones_of, name="workspace_clones_of")
