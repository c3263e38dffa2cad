"""The audit log: what happened, who did it, why, and from where."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Concat, Now, Upper

from provisioner.accounts.models import User
from provisioner.audit_log.changes import Change, changes_of
from provisioner.lib.fields import EvidenceField


def _joined(*fields: str) -> Combinable:
    """Return the expression for the lines of several fields."""
    lines = [part for field in fields for part in (Value("\n"), F(field))]
    return Concat(*lines[1:], output_field=models.TextField())


class Event(models.Model):
    """An event. The database refuses to change or delete it.

    Names are stored as they were, so they survive renames and deletions. `via` is the
    means, such as "token 1a2b3c", "session 4d5e6f" or "worker host7, job 12"; `ip` and
    `user_agent` are those of a request.
    """

    class SubjectKind(models.TextChoices):
        NONE = "", "Nothing in particular"
        WORKSPACE = "workspace", "Workspace"
        TEMPLATE = "template", "Template"
        SITE = "site", "Site"
        PERFORCE_SERVER = "perforce_server", "Perforce server"
        ACCOUNT = "account", "Account"
        TEAM = "team", "Team"
        POLICY = "policy", "Lease policy"
        WEBHOOK = "webhook", "Webhook"
        POOL = "pool", "Warm pool"
        BISECTION = "bisection", "Bisection"
        MIRROR = "mirror", "Mirror"
        COPY = "copy", "Copy of a workspace"
        SANDBOX = "sandbox", "Sandbox"
        QUALIFICATION = "qualification", "Qualification run"

    at = models.DateTimeField(db_default=Now(), editable=False)
    kind = models.CharField(max_length=60)
    message = models.TextField(help_text="What happened.")
    reason = models.TextField(blank=True, help_text="The reason that the actor gave.")
    actor = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True)
    via = models.CharField(max_length=200, blank=True)
    ip = models.GenericIPAddressField(null=True, blank=True)
    user_agent = models.CharField(max_length=120, blank=True)
    subject_kind = models.CharField(
        max_length=16,
        choices=SubjectKind,
        default=SubjectKind.NONE,
        blank=True,
    )
    subject_id = models.BigIntegerField(null=True, blank=True)
    subject = models.CharField(max_length=200, blank=True)
    workspace = models.ForeignKey(
        "workspaces.Workspace",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )
    template = models.ForeignKey(
        "catalog.Template",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )
    data = EvidenceField(default=dict)
    # In capitals, as searches compare: to turn every event to capitals for each search
    # takes four times as long as to look through them (benchmarks/pages.py).
    searched = models.GeneratedField(
        expression=Upper(_joined("message", "reason", "subject", "actor_name", "via")),
        output_field=models.TextField(),
        db_persist=True,
    )

    class Meta:
        ordering = ("-at", "-id")
        constraints = (
            models.CheckConstraint(
                name="event_says_what_it_is_about",
                condition=Q(subject_kind="", subject_id__isnull=True, subject="")
                | (~Q(subject_kind="") & Q(subject_id__isnull=False) & ~Q(subject="")),
            ),
        )
        indexes = (
            models.Index(fields=("-at", "-id"), name="event_by_time"),
            # Also for the beginning of a kind, whatever the collation.
            models.Index(
                fields=("kind", "-at"),
                opclasses=("varchar_pattern_ops", "timestamptz_ops"),
                name="event_by_kind",
            ),
            models.Index(fields=("actor_name", "-at"), name="event_by_actor"),
            models.Index(
                fields=("subject_kind", "subject_id", "-at"), name="event_by_subject"
            ),
            # Equal names share an entry, so it is a tenth of one with times.
            models.Index(fields=("subject",), name="event_by_name_of_subject"),
        )

    def __str__(self) -> str:
        return self.message

    @property
    def changes(self) -> list[Change]:
        """The changed values, before and after."""
        return changes_of(self.data)
