"""Template tags for sizes on pages of templates."""

from __future__ import annotations

from django import template as library

from provisioner.storage.advice import size_advice

register = library.Library()
register.simple_tag(size_advice)
