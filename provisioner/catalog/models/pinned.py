"""Templates that people pinned to their home page."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.catalog.models.templates import Template


class PinnedTemplate(models.Model):
    """A template on top of a person's home page."""

    person = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="pinned_templates"
    )
    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, related_name="pinned_by"
    )
    pinned_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("person", "template"), name="template_pinned_once_by_a_person"
            ),
        )

    def __str__(self) -> str:
        return f"{self.template} for {self.person}"
