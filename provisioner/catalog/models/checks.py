"""Remarks of a check of a template's definition."""

from __future__ import annotations

from django.db import models

from provisioner.catalog.models.templates import Template
from provisioner.lib.fields import EvidenceField


class TemplateCheck(models.Model):
    """The latest checks of a template's definition.

    `remarks` are {"kind", "sentence"}. None of the numbers is known where the view
    could not be counted; `error` then says why.
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
