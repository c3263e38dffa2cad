"""Check a template's definition after it was saved."""

from __future__ import annotations

from procrastinate.contrib.django import app

from provisioner.catalog import checks
from provisioner.catalog.models import Template


@app.task(name=checks.CHECK, queue=checks.CHECK_QUEUE)
def check_template(template_id: int) -> None:
    """Check a definition, and save the result even if the server does not answer."""
    template = (
        Template.objects.select_related("site__perforce_server")
        .filter(pk=template_id)
        .first()
    )
    if template is not None:
        checks.keep(template, checks.look(template))
