"""People: their account here, their name in Perforce, their number on the file system.

Three different things, never one word for them: `username` is the Django account,
`p4_user` the Perforce user, `uid` and `gid` what the file server stores.
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from knox.models import AbstractAuthToken


class Quota(models.Model):
    """What somebody may have at a time; empty: as much as there is."""

    max_workspaces = models.PositiveIntegerField(null=True, blank=True)
    max_unique_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Bytes that its workspaces do not share with their templates.",
    )

    class Meta:
        abstract = True


class Team(Quota):
    """People who share a quota and see each other's workspaces."""

    name = models.CharField(max_length=100, unique=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class User(AbstractUser, Quota):  # noqa: DJ008 - AbstractUser has __str__
    """An account; `is_staff` makes it an administrator of Cloneyard.

    `uid` and `gid` come from the site's directory, never from a browser. An account
    without them can look at everything that is its own but own no workspace.
    """

    p4_user = models.CharField(
        "Perforce user", max_length=128, blank=True, help_text="Empty: the username."
    )
    uid = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    gid = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    team = models.ForeignKey(
        Team, on_delete=models.SET_NULL, null=True, blank=True, related_name="members"
    )
    is_service = models.BooleanField(
        default=False, help_text="An account of a machine, such as CI."
    )

    class Meta:
        verbose_name = "user"
        verbose_name_plural = "users"
        constraints = (
            models.CheckConstraint(
                name="user_uid_is_not_root",
                condition=Q(uid__isnull=True) | Q(uid__gt=0),
            ),
            models.CheckConstraint(
                name="user_gid_is_not_root",
                condition=Q(gid__isnull=True) | Q(gid__gt=0),
            ),
            models.CheckConstraint(
                name="user_uid_goes_with_gid",
                condition=Q(uid__isnull=True, gid__isnull=True)
                | Q(uid__isnull=False, gid__isnull=False),
            ),
        )

    @property
    def perforce_name(self) -> str:
        return self.p4_user or self.username

    @property
    def is_administrator(self) -> bool:
        return self.is_active and self.is_staff


class ApiToken(AbstractAuthToken):
    """What a script sends instead of a password: kept as a hash, and it expires.

    `token_key` is how the token begins, so that people can tell theirs apart.
    """

    name = models.CharField(max_length=100, blank=True)

    def __str__(self) -> str:
        return self.name or self.token_key


class SignInAttempts(models.Model):
    """How many attempts to sign in failed under a key until its window ends.

    See attempts.py, which alone writes it.
    """

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "sign-in attempts"

    def __str__(self) -> str:
        return self.key
