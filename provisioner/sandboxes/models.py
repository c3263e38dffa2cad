"""Sandboxes: private copies of a Perforce server's volumes with a server on them."""

from __future__ import annotations

import uuid

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.accounts.models import Team, User
from provisioner.engine.models import HasOperations
from provisioner.engine.queues import SANDBOXES_PREFIX
from provisioner.lib.fields import EvidenceField
from provisioner.lib.names import (
    LONGEST_NAME,
    TAG_PREFIX,
    name_validator,
    same_tag,
    underscored,
)
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.values import (
    check_file_path,
    host_validator,
    ontap_name_validator,
    server_id_validator,
)

LONGEST_HOURS = 24 * 30
LOWEST_PORT, HIGHEST_PORT = 1024, 65_535
SNAPSHOT_PREFIX = "cloneyard-sandbox-"

release_validator = RegexValidator(
    r"^20\d\d\.\d\Z", "Write a release such as 2024.2.", code="invalid_release"
)
inner_path_validator = RegexValidator(
    r"^(?:[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*)?\Z",
    "Write a path below the volume's root, without “..”.",
    code="invalid_path",
)


class Role(models.TextChoices):
    """What of a Perforce server lies somewhere, in the order of snapshots.

    The archives come last: files only ever gain revisions, so later archives have what
    earlier metadata names. The other way round revisions would be missing.

    Source: "Backup procedures" of the Helix Core administrator's guide.
    """

    DB = "db", "Database (P4ROOT)"
    JOURNAL = "journal", "Journal"
    LOG = "log", "Log"
    DEPOT = "depot", "Archives of depots"

    @property
    def is_file(self) -> bool:
        """Whether its path names a file, and not a directory."""
        return self in (Role.JOURNAL, Role.LOG)


NEEDED_ROLES = (Role.DB, Role.JOURNAL, Role.DEPOT)


class ServerVolumes(models.Model):
    """Where a Perforce server keeps its data: volumes of one site's SVM."""

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="volumes"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("server__name",)

    def __str__(self) -> str:
        return f"Volumes of {self.server}"


class ServerVolume(models.Model):
    """The volume and the path in it of one part of a server.

    `path` is a directory of the database or the archives, "" for the volume itself; of
    the journal and the log it is a file.
    """

    of = models.ForeignKey(
        ServerVolumes, on_delete=models.CASCADE, related_name="places"
    )
    role = models.CharField(max_length=8, choices=Role)
    volume = models.CharField(max_length=203, validators=[ontap_name_validator])
    path = models.CharField(
        max_length=255, blank=True, validators=[inner_path_validator]
    )

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("of", "role"), name="server_volume_once_for_a_role"
            ),
            models.CheckConstraint(
                name="server_volume_of_a_file_names_it",
                condition=~Q(role__in=("journal", "log")) | ~Q(path=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} in {self.volume}"

    @property
    def line(self) -> str:
        """The place as forms show it."""
        return f"{self.role} {self.volume}{'/' if self.path else ''}{self.path}"


class P4dVersion(models.Model):
    """A release of p4d, and its path on hosts of sandboxes. Nothing fetches it."""

    release = models.CharField(
        max_length=8, unique=True, validators=[release_validator]
    )
    path = models.CharField(max_length=255, validators=[check_file_path])

    class Meta:
        ordering = ("-release",)

    def __str__(self) -> str:
        return self.release


class SandboxHost(models.Model):
    """A host apart from production, whose worker starts the servers of sandboxes.

    It serves the queue of its name, and mounts what the site's hosts mount. Servers run
    as `uid`, and listen at `address` on ports from `first_port` on.
    """

    name = models.CharField(
        max_length=LONGEST_NAME, unique=True, validators=[name_validator]
    )
    site = models.ForeignKey(
        Site, on_delete=models.PROTECT, related_name="sandbox_hosts"
    )
    address = models.CharField(
        max_length=255, default="127.0.0.1", validators=[host_validator]
    )
    first_port = models.PositiveIntegerField(
        default=16660,
        validators=[MinValueValidator(LOWEST_PORT), MaxValueValidator(HIGHEST_PORT)],
    )
    at_most = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    uid = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    gid = models.PositiveIntegerField(validators=[MinValueValidator(1)])

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                name="sandbox_host_does_not_run_as_root",
                condition=Q(uid__gt=0) & Q(gid__gt=0),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def queue(self) -> str:
        """The queue that the worker on this host serves."""
        return f"{SANDBOXES_PREFIX}{self.name}"

    @property
    def last_port(self) -> int:
        """The last of its ports; there are twice as many as sandboxes."""
        return min(self.first_port + 2 * self.at_most - 1, HIGHEST_PORT)


class SandboxPolicy(models.Model):
    """The people of a team may have sandboxes: so many each and together, for so long.

    `team_at_most` None: no bound for all together.
    """

    team = models.OneToOneField(
        Team, on_delete=models.CASCADE, related_name="sandbox_policy"
    )
    at_most = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    team_at_most = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
    )
    longest_hours = models.PositiveSmallIntegerField(
        default=24,
        validators=[MinValueValidator(1), MaxValueValidator(LONGEST_HOURS)],
    )

    class Meta:
        ordering = ("team__name",)

    def __str__(self) -> str:
        return f"Sandboxes of {self.team}"


class SandboxOperation(models.TextChoices):
    CREATE = "sandbox_create", "Create sandbox"
    START = "sandbox_start", "Start the server again"
    CHECKPOINT = "sandbox_checkpoint", "Make checkpoint in sandbox"
    VERIFY = "sandbox_verify", "Verify archives in sandbox"
    RETIRE = "sandbox_retire", "Retire sandbox"
    ABANDON = "sandbox_abandon", "Retire sandbox without its host"
    DRILL = "sandbox_drill", "Disaster drill"


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


class SandboxVolume(models.Model):
    """A volume of the server, its snapshot, and the clone that the sandbox has of it.

    `number` is its place in the order of snapshots. Of a volume that SnapMirror fills,
    `is_replica`, a snapshot is cloned that came with it, `replicated`.
    """

    sandbox = models.ForeignKey(
        Sandbox, on_delete=models.CASCADE, related_name="volumes"
    )
    number = models.PositiveSmallIntegerField()
    source = models.CharField(max_length=203, validators=[ontap_name_validator])
    is_replica = models.BooleanField(default=False)
    replicated = models.CharField(max_length=255, blank=True)
    snapshot_uuid = models.CharField(max_length=36, blank=True)
    clone_uuid = models.CharField(max_length=36, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(
                fields=("sandbox", "source"), name="sandbox_volume_once"
            ),
        )

    def __str__(self) -> str:
        return self.clone_name

    @property
    def clone_name(self) -> str:
        sandbox = self.sandbox
        name = underscored(sandbox.name)
        return f"cy_sandbox_{name}_{sandbox.tag.hex[:6]}_{self.number}"

    @property
    def junction_path(self) -> str:
        return f"/{self.clone_name}"


class SandboxPlace(models.Model):
    """Where a part of the server is in a sandbox, as it was described when it began."""

    volume = models.ForeignKey(
        SandboxVolume, on_delete=models.CASCADE, related_name="places"
    )
    role = models.CharField(max_length=8, choices=Role)
    path = models.CharField(
        max_length=255, blank=True, validators=[inner_path_validator]
    )

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.role} in {self.volume}"
