"""Template tags for measurements, on the pages of sandboxes."""

from __future__ import annotations

from django import template as library

from provisioner.qualification.reports import measurements_of

register = library.Library()
register.simple_tag(measurements_of)
