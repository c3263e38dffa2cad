"""People: accounts, Perforce users, and uids.

Three different things, never one word for them: `username` is the Django account,
`p4_user` the Perforce user, `uid` and `gid` what the file server stores.
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from knox.models import AbstractAuthToken

from provisioner.accounts.names import check_one_line, perforce_user_validator
from provisioner.lib.rows import few


class Quota(models.Model):
    """Limits of a person or a team; empty: no limit."""

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

    name = models.CharField(max_length=100, unique=True, validators=[check_one_line])

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


@few
class User(AbstractUser, Quota):  # noqa: DJ008 - AbstractUser has __str__
    """An account; `is_staff` makes it an administrator of Cloneyard.

    `uid` and `gid` come from the site's directory, never from a browser. An account
    without them can view everything that it may see, but own no workspace.
    """

    p4_user = models.CharField(
        "Perforce user",
        max_length=128,
        blank=True,
        validators=[perforce_user_validator],
        help_text="Empty: the username.",
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
    time_zone = models.CharField(
        max_length=64,
        blank=True,
        help_text="Times are shown in it, such as Europe/Berlin. Empty: that of the "
        "browser.",
    )
    is_service = models.BooleanField(
        default=False, help_text="An account of a machine, such as CI."
    )

    # The token that the request at hand was sent with; None for a session.
    token: ApiToken | None = None

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
        return self.is_active and self.is_staff and self.scope is None

    @property
    def scope(self) -> ApiToken | None:
        """The scope of the current request's token; None: only the person's rights."""
        return self.token if self.token is not None and self.token.is_scoped else None


class ApiToken(AbstractAuthToken):
    """An API token: stored as a hash, and it expires.

    `token_key` is the start of the token, by which people identify it. A token with any
    of the four bounds is scoped: it gets workspaces within them, and only sees and
    changes its own. An empty bound is no bound. One that reads mounts is scoped, too:
    it does nothing else.
    """

    name = models.CharField(max_length=100, blank=True, validators=[check_one_line])
    template_ids = ArrayField(
        models.BigIntegerField(),
        null=True,
        blank=True,
        help_text="The allowed templates; empty: all.",
    )
    purposes = ArrayField(
        models.CharField(max_length=16),
        null=True,
        blank=True,
        help_text="The allowed purposes; empty: all.",
    )
    max_lease_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="The maximum lease from now."
    )
    max_workspaces = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many workspaces at a time."
    )
    reads_mounts = models.BooleanField(
        default=False,
        db_default=False,
        help_text="For hosts: it reads where everybody's workspaces are mounted from, "
        "and nothing else.",
    )
    last_used_at = models.DateTimeField(
        null=True, blank=True, help_text="To the minute."
    )

    def __str__(self) -> str:
        return self.name or self.token_key

    @property
    def is_scoped(self) -> bool:
        bounds = (
            self.template_ids,
            self.purposes,
            self.max_lease_seconds,
            self.max_workspaces,
        )
        return self.reads_mounts or any(bound is not None for bound in bounds)


class Session(AbstractBaseSession):
    """A session of pages; only sessions.py writes it.

    Its key is a secret: `name` follows from it, and names it on pages and in the audit
    log. Without an account nobody has signed in yet.
    """

    name = models.CharField(max_length=16, unique=True)
    account = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, related_name="sessions"
    )
    signed_in_at = models.DateTimeField()
    last_used_at = models.DateTimeField(help_text="To the minute.")
    ip = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=120, blank=True)

    class Meta:
        verbose_name = "session"
        verbose_name_plural = "sessions"

    def __str__(self) -> str:
        """Return how the audit log names it: origin.by_session."""
        return f"session {self.name[:8]}"


class TokenUse(models.Model):
    """How many requests of a kind used a token until its window ends.

    Only throttling.py writes it.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("token", "kind"), name="token_use_unique"),
        )

    def __str__(self) -> str:
        return f"{self.kind}: {self.count}"


class SignInAttempts(models.Model):
    """Failed sign-ins under a key until its window ends.

    Only attempts.py writes it.
    """

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "sign-in attempts"

    def __str__(self) -> str:
        return self.key
