"""Who an account is at the provider."""

from __future__ import annotations

from django.db import models

from provisioner.accounts.models import User


class Identity(models.Model):
    """The person that the provider knows by `subject`, and their account.

    Mail addresses and names change hands; issuer and subject together never do.

    Source: OpenID Connect Core 1.0, 5.7.
    """

    account = models.OneToOneField(
        User, on_delete=models.CASCADE, related_name="identity"
    )
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)

    class Meta:
        verbose_name_plural = "identities"
        constraints = (
            models.UniqueConstraint(
                fields=("issuer", "subject"), name="identity_once_per_subject"
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
