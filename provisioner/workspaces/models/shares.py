"""Shares: people and teams that may see a workspace."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import Team, User
from provisioner.workspaces.models.workspaces import Workspace


class ShareQuerySet(models.QuerySet["Share"]):
    def current(self) -> ShareQuerySet:
        """Keep those that have not ended."""
        return self.filter(Q(ends_at__isnull=True) | Q(ends_at__gt=Now()))

    def ended(self) -> ShareQuerySet:
        """Keep those that are over."""
        return self.filter(ends_at__lte=Now())

    def reaching(self, user: User) -> ShareQuerySet:
        """Keep current ones with a person or with their current team.

        A scoped token sees only its own workspaces, never shared ones.
        """
        if user.scope is not None:
            return self.none()
        is_theirs = Q(person=user)
        if user.team_id is not None:
            is_theirs |= Q(team=user.team_id)
        return self.current().filter(is_theirs)


class Share(models.Model):
    """A person or a team that may view somebody's workspace until it ends.

    They may also clone it where `may_clone` says so: the clone's files are theirs.

    It applies to pages and the API only: files keep their owner and modes.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="shares"
    )
    person = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="shares"
    )
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="shares"
    )
    may_clone = models.BooleanField(default=False, db_default=False)
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text="Null: it lasts until it is revoked."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    objects = ShareQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.CheckConstraint(
                name="share_is_with_a_person_or_a_team",
                condition=Q(person__isnull=False, team__isnull=True)
                | Q(person__isnull=True, team__isnull=False),
            ),
            models.UniqueConstraint(
                fields=("workspace", "person"), name="share_once_with_a_person"
            ),
            models.UniqueConstraint(
                fields=("workspace", "team"), name="share_once_with_a_team"
            ),
        )

    def __str__(self) -> str:
        if self.person is not None:
            return self.person.get_username()
        return f"the team {self.team}"

    @property
    def title(self) -> str:
        """Whom it is shared with, as the start of a sentence."""
        return self.person.get_username() if self.person else f"The team {self.team}"

    @property
    def by_another(self) -> User | None:
        """Who shared it; None if that was the workspace's owner."""
        return (
            None if self.created_by_id == self.workspace.owner_id else self.created_by
        )
