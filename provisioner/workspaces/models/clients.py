"""The state of a workspace's Perforce client during retire and restore."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from provisioner.engine.models import Operation
from provisioner.workspaces.models.workspaces import Workspace


class WorkspaceClient(models.Model):
    """How far a retirement or restore has got with a workspace's client.

    Written when the first of them reaches the client. From SETTLING until it is WHOLE
    again, nothing that the server says about the client is somebody's work, unless it
    was given back: then somebody may have worked there.
    """

    class State(models.TextChoices):
        WHOLE = "whole", "Has everything it had"
        SETTLING = "settling", "Its form is kept, and it is about to be deleted"
        REVERTED = "reverted", "What was rescued is reverted"
        DELETED = "deleted", "Deleted"
        DEFINED = "defined", "Defined again, without its have list"
        FLUSHED = "flushed", "Defined again, with its have list"

    workspace = models.OneToOneField(
        Workspace, on_delete=models.PROTECT, primary_key=True, related_name="client"
    )
    state = models.CharField(max_length=10, choices=State, default=State.WHOLE)
    spec = models.TextField(
        blank=True, help_text="The form to restore it with, until it is whole."
    )
    since = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The operation that last found it whole, or made it so. What earlier "
        "ones kept is over. Empty: there was none.",
    )
    given_back_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When a retirement stopped, or a restore began: somebody may have "
        "worked there since.",
    )
    is_unlocked = models.BooleanField(
        default=False, help_text="A retirement unlocked it, and owes it the lock."
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="client_whole_or_its_form_is_kept",
                condition=Q(state="whole", spec="") | ~Q(state="whole") & ~Q(spec=""),
            ),
            models.CheckConstraint(
                name="client_whole_is_not_given_back",
                condition=~Q(state="whole") | Q(given_back_at__isnull=True),
            ),
            models.CheckConstraint(
                name="client_defined_again_is_given_back",
                condition=~Q(state__in=("defined", "flushed"))
                | Q(given_back_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"Client of {self.workspace}"

    @property
    def is_whole(self) -> bool:
        return self.state == self.State.WHOLE
