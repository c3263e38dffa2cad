"""Workspaces."""

from __future__ import annotations

import secrets
import uuid
from pathlib import Path

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Cast, Greatest, Left, Now, Replace

from provisioner.accounts.models import ApiToken, User
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import HasOperations
from provisioner.gateways.perforce.standins import StandIns
from provisioner.lib.fields import EvidenceField, NamesField
from provisioner.lib.names import (
    LONGEST_NAME,
    name_validator,
    same_tag,
    underscored,
)
from provisioner.routing.models import Routed
from provisioner.sites.models import Ceiling, MeasuredVolume, OpenTo, Site
from provisioner.workspaces.marks import new_mark

JUNCTION_PREFIX = "/w-"


def new_secret() -> str:
    return secrets.token_hex(16)


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    """Queries for workspaces that are still there, or in use."""

    def there(self) -> WorkspaceQuerySet:
        """Keep those not purged: they have volumes, and their names are taken."""
        return self.exclude(state=Workspace.State.RETIRED)

    def clones(self) -> WorkspaceQuerySet:
        """Keep those that need their snapshots: neither purged nor independent."""
        return self.there().filter(split_at=None)

    def not_put_away(self) -> WorkspaceQuerySet:
        """Keep those not in the trash, being purged or retired."""
        return self.exclude(state__in=PUT_AWAY)

    def at_junction(self, junction_path: str) -> WorkspaceQuerySet:
        """Keep those with this junction path; whoever had it first comes first."""
        before, _, stem = junction_path.partition(JUNCTION_PREFIX)
        if before or not stem:
            return self.none()
        named = Q(remote_name=stem) | Q(remote_name="", name=stem)
        return self.filter(named).order_by("pk")


class Workspace(Routed, MeasuredVolume, HasOperations):
    """A clone, its client and its export, with one lifecycle."""

    class State(models.TextChoices):
        PROVISIONING = "provisioning", "Being created"
        READY = "ready", "Ready"
        RETIRING = "retiring", "Being retired"
        TRASHED = "trashed", "In the trash"
        RESTORING = "restoring", "Being restored"
        PURGING = "purging", "Being purged"
        RETIRED = "retired", "Retired"
        FAILED = "failed", "Failed"

    class Purpose(models.TextChoices):
        DEVELOPMENT = "development", "Development"
        BUILD = "build", "Build only (no Perforce client)"
        CI = "ci", "CI (read-only client)"
        CI_EDIT = "ci-edit", "CI that submits"

    class ColdReason(models.TextChoices):
        NO_POOL = "no_pool", "No pool"
        RECONCILE = "reconcile", "To be compared with the depot"
        OTHER_SNAPSHOT = "other_snapshot", "Of another snapshot"
        POOL_RENEWED = "pool_renewed", "Pool being refilled"
        POOL_RESTING = "pool_resting", "Pool at rest"
        POOL_EMPTY = "pool_empty", "Pool empty"

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="workspaces")
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="workspaces")
    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="workspaces"
    )
    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.PROTECT, related_name="workspaces"
    )
    name = models.CharField(max_length=LONGEST_NAME, validators=[name_validator])
    remote_name = models.CharField(
        max_length=LONGEST_NAME,
        blank=True,
        help_text="What its volume, client and path are named after where that is not "
        "its name: it was made before anybody named it.",
    )
    purpose = models.CharField(
        max_length=16, choices=Purpose, default=Purpose.DEVELOPMENT
    )
    wants_reconcile = models.BooleanField(default=False)
    client_type = models.CharField(
        max_length=16,
        blank=True,
        help_text="The type of its Perforce client; empty: writeable, or none.",
    )
    request_key = models.CharField(
        max_length=200, blank=True, help_text="Makes a repeated request the same one."
    )
    request_fingerprint = models.CharField(
        max_length=64, blank=True, help_text="A digest of the request that made it."
    )
    token = models.ForeignKey(
        ApiToken,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="workspaces",
        help_text="The API token that requested it, if it still exists.",
    )
    pool = models.ForeignKey(
        "pools.Pool",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="workspaces",
        help_text="The warm pool that it is in, came from, or could have come from.",
    )
    is_pooled = models.BooleanField(
        default=False, help_text="A pool's member that nobody has claimed."
    )
    made_ahead_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When it was made for a pool, where it was claimed from one.",
    )
    seconds_saved = models.FloatField(
        null=True,
        blank=True,
        help_text="How long provisioning took, if it was claimed.",
    )
    site_because = models.CharField(
        max_length=300,
        blank=True,
        editable=False,
        help_text="Why it is at its site, where the nearest was requested.",
    )
    cold_reason = models.CharField(max_length=16, choices=ColdReason, blank=True)
    uid = models.PositiveIntegerField()
    gid = models.PositiveIntegerField()
    p4_user = models.CharField(max_length=128)
    state = models.CharField(max_length=16, choices=State, default=State.PROVISIONING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    secret = models.CharField(
        max_length=32,
        default=new_secret,
        db_default=Replace(
            Cast(RandomUUID(), models.TextField()), Value("-"), Value("")
        ),
        editable=False,
        help_text="Proves that a client which stands in for its own is ours.",
    )
    client_mark = models.CharField(
        max_length=16,
        default=new_mark,
        db_default=Left(Cast(RandomUUID(), models.TextField()), 8),
        editable=False,
        help_text="In the description of its client: proves that it is ours. A new one "
        "once that was deleted, since whoever read the old one may have copied it.",
    )
    client_suffix = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="A suffix of its client's name, if the name was taken.",
    )
    was_ready = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its retirement began while it was ready to work in.",
    )
    retired_as_abandoned = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The abandoned page lists it until it is purged or restored.",
    )
    volume_uuid = models.CharField(max_length=36, blank=True)
    cloned_from = models.CharField(
        max_length=203,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The volume that it is a clone of, where that is not its template's "
        "or the mirror's at its site.",
    )
    split_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="What a split of its clone would copy, as ONTAP estimates it.",
    )
    split_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When its volume was found to be independent of its snapshot. Empty: "
        "it is a clone.",
    )
    opened_to = models.CharField(
        max_length=16,
        choices=OpenTo,
        blank=True,
        default="",
        db_default="",
        help_text="Who may enter its root directory. Empty: as its site says.",
    )
    root_mode = models.CharField(
        max_length=4,
        blank=True,
        default="",
        db_default="",
        help_text="The mode that its root directory was given last, in octal digits. "
        "Its owner may have changed it since.",
    )
    ownership = EvidenceField(null=True, blank=True)
    reconcile = EvidenceField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ready_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it last failed."
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="When its lease ends. Empty: never."
    )
    keep_reason = models.CharField(
        max_length=500, blank=True, help_text="Why it is kept without a lease."
    )
    heartbeat_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="After how long a silence of its job its lease ends. Empty: never.",
    )
    heartbeat_at = models.DateTimeField(
        null=True, blank=True, help_text="The last heartbeat of its job."
    )
    trashed_at = models.DateTimeField(null=True, blank=True)
    purge_at = models.DateTimeField(
        null=True, blank=True, help_text="When it is purged from the trash."
    )
    purge_seen_at = models.DateTimeField(
        null=True, blank=True, help_text="When a sweep first saw that its time is over."
    )
    retired_at = models.DateTimeField(null=True, blank=True)
    volume_size_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The size that its volume was given. Empty: not known.",
    )
    unique_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="What purging it would free, as ONTAP reports it.",
    )
    measured_at = models.DateTimeField(null=True, blank=True)
    activity = EvidenceField(
        default=dict,
        blank=True,
        help_text="Signs of life by kind: {kind: {at, detail}}; at is ISO 8601.",
    )
    activity_seen_at = models.DateTimeField(null=True, blank=True)
    client_checked_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When its client's changes and opened files were last read.",
    )
    worked_at = models.DateTimeField(
        null=True, blank=True, help_text="The newest of these signs."
    )
    used_at = models.DateTimeField(
        null=True, blank=True, help_text="The newest sign of any kind among these."
    )
    idle_since = models.GeneratedField(
        expression=Greatest("ready_at", "worked_at"),
        output_field=models.DateTimeField(null=True),
        db_persist=True,
        help_text="Since when no work shows.",
    )
    client_seen = NamesField(
        default=dict,
        blank=True,
        help_text="What a drift check last read of its client: {updated_at, view}. "
        "Reading refreshes the client's Access date, so it is done once per change.",
    )

    objects = WorkspaceQuerySet.as_manager()

    # Set on what an earlier request made, where one is answered with it again.
    was_asked_for_before = False

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "name"),
                condition=~Q(state="retired"),
                name="workspace_name_unique_in_site",
                violation_error_message="This name is taken.",
            ),
            models.UniqueConstraint(
                fields=("owner", "request_key"),
                condition=~Q(request_key=""),
                name="workspace_request_key_unique",
            ),
            models.CheckConstraint(
                name="workspace_owner_is_not_root",
                condition=Q(uid__gt=0) & Q(gid__gt=0),
            ),
            models.CheckConstraint(
                name="workspace_ready_has_ready_at",
                condition=~Q(state="ready") | Q(ready_at__isnull=False),
            ),
            models.CheckConstraint(
                name="workspace_retired_has_retired_at",
                condition=Q(state="retired", retired_at__isnull=False)
                | (~Q(state="retired") & Q(retired_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="workspace_was_ready_is_being_retired",
                condition=Q(was_ready=False) | Q(state="retiring"),
            ),
            models.CheckConstraint(
                name="workspace_retired_as_abandoned_is_going",
                condition=Q(retired_as_abandoned=False)
                | ~Q(state__in=("provisioning", "ready", "retired")),
            ),
            models.CheckConstraint(
                name="workspace_trashed_has_times",
                condition=~Q(state="trashed")
                | Q(trashed_at__isnull=False, purge_at__isnull=False),
            ),
            models.CheckConstraint(
                name="workspace_kept_or_leased",
                condition=Q(keep_reason="") | Q(expires_at__isnull=True),
            ),
            models.CheckConstraint(
                name="workspace_type_goes_with_client",
                condition=~Q(purpose="build") | Q(client_type=""),
            ),
            models.CheckConstraint(
                name="workspace_pooled_is_nobodys",
                condition=Q(is_pooled=False)
                | (
                    Q(expires_at__isnull=True, token__isnull=True, keep_reason="")
                    & Q(request_key="")
                    & ~Q(remote_name="")
                ),
            ),
            models.CheckConstraint(
                name="workspace_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
        )
        indexes = (
            models.Index(fields=("owner", "-created_at"), name="workspace_by_owner"),
            models.Index(
                fields=("-created_at", "-id"),
                condition=Q(is_pooled=False),
                name="workspace_by_age",
            ),
            models.Index(
                fields=("template", "-created_at"),
                include=("owner", "purpose", "ready_at", "made_ahead_at"),
                condition=Q(is_pooled=False),
                name="workspace_of_template",
            ),
            models.Index(
                fields=("site", "template", "snapshot"),
                include=("split_at",),
                condition=~Q(state="retired"),
                name="workspace_in_place",
            ),
            models.Index(
                fields=("state",),
                condition=Q(
                    state__in=("provisioning", "retiring", "restoring", "purging")
                ),
                name="workspace_moving",
            ),
            models.Index(
                fields=("expires_at",),
                condition=Q(state="ready"),
                name="workspace_by_lease",
            ),
            models.Index(
                fields=("purge_at",),
                condition=Q(state="trashed"),
                name="workspace_by_purge",
            ),
            models.Index(
                fields=("id",),
                condition=Q(
                    heartbeat_seconds__isnull=False, state__in=("ready", "failed")
                ),
                name="workspace_by_heartbeat",
            ),
            models.Index(
                fields=("id",),
                condition=Q(retired_as_abandoned=True),
                name="workspace_as_abandoned",
            ),
            # Without what each measurement changes: abandoned ones are few.
            models.Index(
                fields=("idle_since", "id"),
                include=("activity_seen_at", "used_at"),
                condition=Q(state="ready", is_pooled=False),
                name="workspace_by_idle",
            ),
            models.Index(
                fields=("pool", "state"),
                condition=Q(is_pooled=True),
                name="workspace_in_pool",
            ),
            models.Index(
                fields=("id",),
                condition=Q(is_pooled=True) | Q(made_ahead_at__isnull=False),
                name="workspace_made_ahead",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def used_for(self) -> str:
        return self.routed_as or self.purpose

    @property
    def open_to(self) -> OpenTo:
        """Who may enter its root directory."""
        return OpenTo(self.opened_to or self.site.clones_open_to)

    @property
    def made_as(self) -> str:
        """The name stem of its volume and client."""
        return self.remote_name or self.name

    @property
    def is_warm(self) -> bool:
        """Whether it was claimed from a pool."""
        return self.made_ahead_at is not None

    @property
    def start_sentence(self) -> str:
        """A sentence on whether it came from a warm pool and, if not, why."""
        if self.is_warm:
            saved = f"{self.seconds_saved or 0:.1f} seconds"
            return f"Claimed from a warm pool, which saved {saved}."
        if not self.cold_reason:
            return "Created on request."
        return f"Created on request. {WHY_COLD[self.cold_reason]}"

    @property
    def volume_name(self) -> str:
        return f"cy_{underscored(self.made_as)}_w{self.tag.hex[:6]}"

    @property
    def client_name(self) -> str:
        """The Perforce client, "" for a build-only workspace, which has none."""
        if self.purpose == self.Purpose.BUILD:
            return ""
        return self._own_name + self.client_suffix

    @property
    def stand_ins(self) -> StandIns:
        """Its temporary clients."""
        return StandIns(client=self._own_name, tag=str(self.tag), secret=self.secret)

    @property
    def _own_name(self) -> str:
        return f"cy-{self.made_as}-w{self.tag.hex[:6]}"

    @property
    def holds_work(self) -> bool:
        """Whether it can hold somebody's work, as it can be submitted from."""
        return self.purpose in (self.Purpose.DEVELOPMENT, self.Purpose.CI_EDIT)

    @property
    def ceiling_purpose(self) -> Ceiling.Purpose:
        """Whose ceiling its traffic has."""
        if self.purpose == self.Purpose.DEVELOPMENT:
            return Ceiling.Purpose.DEVELOPMENT
        return Ceiling.Purpose.BUILDS

    @property
    def junction_path(self) -> str:
        return f"{JUNCTION_PREFIX}{self.made_as}"

    @property
    def purge_path(self) -> str:
        """The unguessable junction path at which its contents are removed."""
        return f"/purge-{self.tag.hex[:12]}"

    @property
    def path(self) -> Path:
        return self.site.path_of(self.junction_path)

    @property
    def volume_comment(self) -> str:
        """The tag that marks the clone as this workspace's, visible in ONTAP.

        With its purpose, unless that is development: once the row is lost with a
        database, nothing else says it of a clone without a client.
        """
        tag = f"cloneyard:v1:workspace={self.tag}"
        if self.purpose == self.Purpose.DEVELOPMENT:
            return tag
        return f"{tag} purpose={self.purpose}"

    def is_tagged(self, comment: str) -> bool:
        """Return whether a volume's comment has its tag; older ones name no purpose."""
        return same_tag(comment, self.volume_comment)

    @property
    def is_put_away(self) -> bool:
        """Whether it is in the trash, being purged or retired."""
        return self.state in PUT_AWAY

    @property
    def is_independent(self) -> bool:
        """Whether its volume was split from its snapshot."""
        return self.split_at is not None

    @property
    def is_trashed(self) -> bool:
        return self.state == self.State.TRASHED

    @property
    def is_moving(self) -> bool:
        return self.state in MOVING


MOVING = (
    Workspace.State.PROVISIONING,
    Workspace.State.RETIRING,
    Workspace.State.RESTORING,
    Workspace.State.PURGING,
)
"""An operation is under way; the others rest until somebody asks or time is up."""

WHY_COLD: dict[str, str] = {
    Workspace.ColdReason.NO_POOL: "No warm pool fits this request.",
    Workspace.ColdReason.RECONCILE: "A comparison with the depot was requested, "
    "which pools do not make in advance.",
    Workspace.ColdReason.OTHER_SNAPSHOT: "Warm pools have the default snapshot only.",
    Workspace.ColdReason.POOL_RENEWED: "The pool is being refilled: its members were "
    "too old, or of an older snapshot or account setting.",
    Workspace.ColdReason.POOL_RESTING: "The pool is empty by its schedule, or "
    "because nobody has requested a workspace for a while.",
    Workspace.ColdReason.POOL_EMPTY: "All members of the pool were claimed.",
}
"""Why a workspace did not come from a warm pool, for people."""


class Unsubmitted(models.TextChoices):
    """What a retirement does with unsubmitted work."""

    REFUSE = "refuse", "Stop and show it"
    RESCUE = "rescue", "Rescue it: shelve what is opened, archive the rest"
    DISCARD = "discard", "Discard it"


PUT_AWAY = (
    Workspace.State.TRASHED,
    Workspace.State.PURGING,
    Workspace.State.RETIRED,
)
"""The states of a retired workspace, from the trash on: it counts for no quota."""

LEASED = (
    Workspace.State.PROVISIONING,
    Workspace.State.READY,
    Workspace.State.FAILED,
)
"""The states in which a lease applies. Other states end otherwise, or never."""
