"""A private copy of a Perforce server's volumes with a server on it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.engine.models import HasOperations
from provisioner.lib.fields import EvidenceField
from provisioner.lib.names import (
    LONGEST_NAME,
    TAG_PREFIX,
    name_validator,
    same_tag,
    underscored,
)
from provisioner.sandboxes.models.hosts import SandboxHost, release_validator
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.values import check_file_path, server_id_validator

SNAPSHOT_PREFIX = "cloneyard-sandbox-"


class SandboxOperation(models.TextChoices):
    CREATE = "sandbox_create", "Create sandbox"
    START = "sandbox_start", "Start the server again"
    CHECKPOINT = "sandbox_checkpoint", "Make checkpoint in sandbox"
    VERIFY = "sandbox_verify", "Verify archives in sandbox"
    RETIRE = "sandbox_retire", "Retire sandbox"
    ABANDON = "sandbox_abandon", "Retire sandbox without its host"
    DRILL = "sandbox_drill", "Disaster drill"
    BASELINE = "sandbox_baseline", "Create sandbox to be measured"


class SandboxManager(models.Manager["Sandbox"]):
    """Sandboxes that are not retired."""

    def get_queryset(self) -> models.QuerySet[Sandbox]:
        return super().get_queryset().exclude(state="retired")


class Sandbox(HasOperations):
    """A server of its own on clones of a Perforce server's volumes, for some hours.

    `release` and `p4d_path` are those of the version that was chosen. `defanged` lists
    what was switched off before it was started. A newer p4d upgraded its database from
    `upgraded_from` in `upgrade_seconds`; None if that was interrupted, and goes on.
    """

    class Purpose(models.TextChoices):
        PATCH = "patch", "Try a patch"
        DIAGNOSE = "diagnose", "Diagnose a problem"
        UPGRADE = "upgrade", "Rehearse an upgrade"
        CHECKPOINT = "checkpoint", "Make a checkpoint"
        VERIFY = "verify", "Verify the archives"
        BASELINE = "baseline", "Measure a baseline"
        DRILL = "drill", "Disaster drill, by its plan"

    class Consistency(models.TextChoices):
        UNKNOWN = "", "Not taken yet"
        ONE = "one-volume", "One snapshot of one volume: everything at one moment"
        GROUP = "group", "Consistency group: all volumes at one moment"
        ORDERED = (
            "ordered",
            "Volume by volume: database, journal, then archives. The journal was "
            "replayed.",
        )
        REPLICATED = (
            "replicated",
            "Replicated snapshots of one name, volume by volume. The journal was "
            "replayed.",
        )

    class State(models.TextChoices):
        CREATING = "creating", "Creating"
        READY = "ready", "Ready"
        STOPPED = "stopped", "Stopped"
        STARTING = "starting", "Starting"
        FAILED = "failed", "Failed"
        RETIRING = "retiring", "Retiring"
        RETIRED = "retired", "Retired"

    name = models.CharField(max_length=LONGEST_NAME, validators=[name_validator])
    perforce_server = models.ForeignKey(
        PerforceServer, on_delete=models.PROTECT, related_name="sandboxes"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="sandboxes")
    host = models.ForeignKey(
        SandboxHost, on_delete=models.PROTECT, related_name="sandboxes"
    )
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="sandboxes")
    purpose = models.CharField(max_length=12, choices=Purpose)
    release = models.CharField(max_length=8, validators=[release_validator])
    p4d_path = models.CharField(max_length=255, validators=[check_file_path])
    server_id = models.CharField(max_length=64, validators=[server_id_validator])
    port = models.PositiveIntegerField()
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    state = models.CharField(max_length=12, choices=State, default=State.CREATING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    consistency = models.CharField(
        max_length=12, choices=Consistency, default=Consistency.UNKNOWN, blank=True
    )
    taken_at = models.DateTimeField(null=True, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)
    defanged = EvidenceField(default=list, blank=True)
    upgraded_from = models.CharField(max_length=8, blank=True)
    upgrade_seconds = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = SandboxManager()
    with_retired = models.Manager["Sandbox"]()

    class Meta:
        ordering = ("-created_at", "-pk")
        base_manager_name = "with_retired"
        default_manager_name = "with_retired"
        constraints = (
            models.UniqueConstraint(
                fields=("name",),
                condition=~Q(state="retired"),
                name="sandbox_name_once",
            ),
            models.UniqueConstraint(
                fields=("host", "port"),
                condition=~Q(state="retired"),
                name="sandbox_port_once_at_a_host",
            ),
            models.UniqueConstraint(
                fields=("server_id",),
                condition=~Q(state="retired"),
                name="sandbox_server_id_once",
            ),
            models.CheckConstraint(
                name="sandbox_ready_was_taken",
                condition=~Q(state="ready")
                | (
                    Q(ready_at__isnull=False, taken_at__isnull=False)
                    & ~Q(consistency="")
                ),
            ),
            models.CheckConstraint(
                name="sandbox_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
            models.CheckConstraint(
                name="sandbox_retired_at_its_end",
                condition=Q(state="retired", retired_at__isnull=False)
                | (~Q(state="retired") & Q(retired_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="sandbox_upgrade_has_its_release",
                condition=Q(upgrade_seconds__isnull=True) | ~Q(upgraded_from=""),
            ),
            models.CheckConstraint(
                name="sandbox_ends_after_it_began",
                condition=Q(expires_at__gt=F("created_at")),
            ),
        )
        indexes = (
            models.Index(
                fields=("expires_at",),
                condition=Q(state__in=("ready", "stopped", "failed")),
                name="sandbox_by_end",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def own_queue(self) -> str:
        """The queue of its host, for steps that only that host can do."""
        return self.host.queue

    @property
    def p4port(self) -> str:
        """Where its server answers."""
        address = self.host.address
        return (
            f"[{address}]:{self.port}" if ":" in address else f"{address}:{self.port}"
        )

    @property
    def snapshot_name(self) -> str:
        return f"{SNAPSHOT_PREFIX}{self.tag.hex[:12]}"

    @property
    def group_name(self) -> str:
        """The consistency group that is made for its server's volumes."""
        return f"cy_sandboxes_{underscored(self.perforce_server.name)}"

    @property
    def volume_comment(self) -> str:
        """The tag that marks its clones, visible in ONTAP."""
        return f"{TAG_PREFIX}sandbox={self.tag}"

    def is_tagged(self, comment: str) -> bool:
        """Return whether a volume with this comment is one of its clones."""
        return same_tag(comment, self.volume_comment)

    @property
    def shell_line(self) -> str:
        """What its owner types to use it."""
        return f"export P4PORT={self.p4port} P4USER={self.owner.username}"

    @property
    def is_moving(self) -> bool:
        return self.state in MOVING_SANDBOXES

    @property
    def was_left_at_host(self) -> bool:
        """Whether it was retired without its host, which has not been heard since."""
        return self.state == self.State.RETIRED and self.status_code == HOST_NOT_ASKED


HOST_NOT_ASKED = "host_not_asked"
MOVING_SANDBOXES = (
    Sandbox.State.CREATING,
    Sandbox.State.STARTING,
    Sandbox.State.RETIRING,
)
"""An operation is under way; in the others a sandbox rests."""
RESTING_SANDBOXES = (
    Sandbox.State.READY,
    Sandbox.State.STOPPED,
    Sandbox.State.FAILED,
)
"""States in which a lease can end, and be extended."""
