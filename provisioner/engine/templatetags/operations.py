"""How steps look on pages."""

from __future__ import annotations

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma

from provisioner.engine.overviews import StepLine

register = template.Library()


@register.simple_tag
def measure(line: StepLine) -> str:
    """Return how far a step is, in words: "812 of 3,612 files, 90 files a second"."""
    unit, text = line.step.progress.get("unit", ""), line.step.progress.get("text", "")
    parts = []
    if line.total:
        parts.append(f"{intcomma(line.done)} of {intcomma(line.total)} {unit}".strip())
    elif line.done:
        parts.append(f"{intcomma(line.done)} {unit}".strip())
    return ", ".join([*parts, text] if text else parts)
