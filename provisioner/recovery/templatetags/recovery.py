"""Template tags for recoveries on the page of a workspace."""

from __future__ import annotations

from django import template as library

from provisioner.recovery.overviews import recoveries_of

register = library.Library()
register.simple_tag(recoveries_of)
