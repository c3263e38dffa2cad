"""Who an account is at the provider or in the directory."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from provisioner.accounts.models import User


class Identity(models.Model):
    """The person known elsewhere by `subject`, and their account.

    Mail addresses and names change hands; issuer and subject together never do. The
    issuer is a provider of OpenID Connect, "ldap:" and the domain of a directory, or
    "perforce:" and the name of a server, where a name is all there is.

    Source: OpenID Connect Core 1.0, 5.7; RFC 4530 (entryUUID); MS-ADTS 3.1.1.1.4
    (objectGUID).
    """

    account = models.OneToOneField(
        User, on_delete=models.CASCADE, related_name="identity"
    )
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    vouched_at = models.DateTimeField(
        db_default=Now(),
        help_text="When a sign-in there last vouched for the person, or an "
        "administrator who reopened the account.",
    )
    closed_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the directory's word closed the account; empty: it did not.",
    )

    class Meta:
        verbose_name_plural = "identities"
        constraints = (
            models.UniqueConstraint(
                fields=("issuer", "subject"), name="identity_once_per_subject"
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
