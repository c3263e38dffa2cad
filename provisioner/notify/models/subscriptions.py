"""Who wants to hear of a template, and what is known about its view."""

from __future__ import annotations

from django.db import models

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.lib.fields import EvidenceField


class Subscription(models.Model):
    """Somebody who gets mails when builds of a template fail, and are good again."""

    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, related_name="subscriptions"
    )
    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="subscriptions"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("template", "user"), name="subscription_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} to {self.template}"


class TemplateCheck(models.Model):
    """What was found about a template's definition when it was last looked at.

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
