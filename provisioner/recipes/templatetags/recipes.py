"""Template tags for what sandboxes found, on the pages of servers and sandboxes."""

from __future__ import annotations

from django import template as library

from provisioner.recipes.overviews import result_of, results_of

register = library.Library()
register.simple_tag(results_of)
register.simple_tag(result_of)
