"""Subscriptions to a template's failures and recoveries."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.catalog.models import Template


class Subscription(models.Model):
    """A person who gets mails when a template fails or recovers."""

    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, related_name="subscriptions"
    )
    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="subscriptions"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("template", "user"), name="subscription_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} to {self.template}"
