"""Template tags for mirrors on pages of templates."""

from __future__ import annotations

from django import template as library

from provisioner.mirrors.overviews import mirrors_of

register = library.Library()
register.simple_tag(mirrors_of)
