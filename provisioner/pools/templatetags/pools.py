"""Template tags for warm pools on pages of templates."""

from __future__ import annotations

from django import template as library

from provisioner.pools.queries import pools_shown_to

register = library.Library()
register.simple_tag(pools_shown_to)
