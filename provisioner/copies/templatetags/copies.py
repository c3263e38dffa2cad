"""Template tags for copies on pages of workspaces and mirrors."""

from __future__ import annotations

from django import template as library

from provisioner.copies.overviews import copies_of, rule_of

register = library.Library()
register.simple_tag(copies_of)
register.simple_tag(rule_of, name="copy_rule_of")
