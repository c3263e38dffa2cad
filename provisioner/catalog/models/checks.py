"""The latest checks of templates' definitions."""

from __future__ import annotations

from django.db import models

from provisioner.catalog.models.templates import Template
from provisioner.lib.fields import EvidenceField


class TemplateCheck(models.Model):
    """The latest checks of a template's definition.

    `remarks` are {"kind", "sentence"}. If the view could not be counted, none of the
    numbers is known, and `error` says why.
    """

    template = models.OneToOneField(
        Template, on_delete=models.CASCADE, related_name="check_result"
    )
    remarks = EvidenceField(default=list)
    files = models.BigIntegerField(null=True, blank=True)
    size_bytes = models.BigIntegerField(null=True, blank=True)
    depot_files = models.BigIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    checked_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.template}: {len(self.remarks)} remarks"
