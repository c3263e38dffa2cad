"""The rows: facts about one thing each, and the rules that the database keeps.

Nothing here talks to another system, and state is written by states.py alone.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User

name_validator = RegexValidator(
    r"^[a-z](?:[a-z0-9]|-(?=[a-z0-9])){0,39}\Z",
    "Use 1 to 40 lower-case letters, digits and single hyphens, beginning with a "
    "letter and ending with a letter or a digit.",
    code="invalid_name",
)


class PerforceServer(models.Model):
    """A Perforce server; its password comes from the environment (P4PASSWD_<NAME>)."""

    name = models.CharField(max_length=40, unique=True, validators=[name_validator])
    p4port = models.CharField("P4PORT", max_length=255)
    p4user = models.CharField(
        "P4USER", max_length=128, help_text="Our account: admin, not a service user."
    )
    p4charset = models.CharField("P4CHARSET", max_length=32, default="none")
    fingerprint = models.CharField(
        max_length=128, blank=True, help_text="Of an ssl: port, as p4 trust shows it."
    )
    flush_limit = models.PositiveSmallIntegerField(
        default=4,
        validators=[MinValueValidator(1)],
        help_text="How many flushes may run on it at a time.",
    )

    def __str__(self) -> str:
        return self.name


class Site(models.Model):
    """One SVM, the mount root its hosts see, and the Perforce server used there.

    Its ONTAP password comes from the environment (ONTAP_PASSWORD_<NAME>).
    """

    class Reown(models.TextChoices):
        ONTAP = "ontap", "ONTAP at clone time, verified by sampling"
        HOST = "host", "parallel chown on a host"

    name = models.CharField(max_length=40, unique=True, validators=[name_validator])
    title = models.CharField(max_length=100, blank=True)
    perforce_server = models.ForeignKey(PerforceServer, on_delete=models.PROTECT)
    ontap_host = models.CharField(max_length=255)
    ontap_port = models.PositiveIntegerField(default=443)
    ontap_user = models.CharField(max_length=128)
    ontap_ca_file = models.CharField(max_length=500, blank=True)
    svm = models.CharField("SVM", max_length=47)
    aggregate = models.CharField(max_length=255)
    mount_root = models.CharField(
        max_length=255, help_text="Where its hosts see the SVM's namespace."
    )
    mount_options = models.CharField(max_length=500, blank=True)
    export_policy = models.CharField(max_length=256, default="cloneyard")
    export_clients = ArrayField(
        models.CharField(max_length=255),
        default=list,
        help_text="Client matches of the export rule, such as 10.0.0.0/24.",
    )
    template_uid = models.PositiveIntegerField(
        validators=[MinValueValidator(1)],
        help_text="Who owns templates and runs their builds.",
    )
    template_gid = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    reown = models.CharField(max_length=8, choices=Reown, default=Reown.ONTAP)
    remove_contents = models.BooleanField(
        default=False,
        help_text="Remove files one by one before the clone is destroyed.",
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="site_template_owner_is_not_root",
                condition=Q(template_uid__gt=0) & Q(template_gid__gt=0),
            ),
        )

    def __str__(self) -> str:
        return self.title or self.name

    def clean(self) -> None:
        """Refuse a mount root below which everything of a host would lie.

        Raises: ValidationError.
        """
        root = Path(self.mount_root)
        if not root.is_absolute() or ".." in root.parts or len(root.parts) < 2:
            raise ValidationError(
                {"mount_root": "Give the absolute path of a directory below /."}
            )

    @property
    def host_queue(self) -> str:
        """The queue that workers on this site's hosts serve."""
        return f"host.{self.name}"

    def path_of(self, junction_path: str) -> Path:
        """Return where its hosts see a junction path."""
        return Path(self.mount_root) / junction_path.lstrip("/")


class LineEnd(models.TextChoices):
    """LineEnd of client specs: templates and workspaces share one (p4 client)."""

    LOCAL = "local"
    UNIX = "unix"
    MAC = "mac"
    WIN = "win"
    SHARE = "share"


class Template(models.Model):
    """A synced, built tree that workspaces are cloned from.

    Either `view` (view lines as in a client spec, with any client name on the right)
    or `stream`.
    """

    class State(models.TextChoices):
        NEW = "new", "Never built"
        BUILDING = "building", "Building"
        READY = "ready", "Ready"
        FAILED = "failed", "Last build failed"

    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="templates")
    name = models.CharField(max_length=40, validators=[name_validator])
    description = models.CharField(max_length=500, blank=True)
    view = models.TextField(
        blank=True,
        help_text="View lines as in a client spec, such as "
        "//depot/main/... //template/...; a minus before a line leaves files out.",
    )
    stream = models.CharField(max_length=255, blank=True)
    line_end = models.CharField(
        max_length=8, choices=LineEnd.choices, default=LineEnd.LOCAL
    )
    client_options = models.CharField(
        max_length=120,
        default="noallwrite noclobber nocompress unlocked nomodtime normdir",
    )
    submit_options = models.CharField(max_length=40, default="submitunchanged")
    build_command = models.TextField(
        blank=True, help_text="Run by /bin/sh in the template's root. Empty: no build."
    )
    build_environment = models.JSONField(default=dict, blank=True)
    build_timeout_seconds = models.PositiveIntegerField(
        default=4 * 3600, validators=[MinValueValidator(1)]
    )
    ignore_patterns = models.TextField(
        blank=True, help_text="What the build makes, as in P4IGNORE, one a line."
    )
    volume_size_bytes = models.BigIntegerField(
        default=100 * 2**30, validators=[MinValueValidator(20 * 2**20)]
    )
    snapshots_to_keep = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1)]
    )
    state = models.CharField(max_length=8, choices=State, default=State.NEW)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    volume_uuid = models.CharField(max_length=36, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("site", "name"), name="template_name_unique_in_site"
            ),
            models.CheckConstraint(
                name="template_has_view_or_stream",
                condition=(Q(view="") & ~Q(stream="")) | (~Q(view="") & Q(stream="")),
            ),
            models.CheckConstraint(
                name="template_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def volume_name(self) -> str:
        return f"cy_{_underscored(self.name)}_t{self.tag.hex[:6]}"

    @property
    def client_name(self) -> str:
        return f"cy-{self.name}-t{self.tag.hex[:6]}"

    @property
    def junction_path(self) -> str:
        return f"/t-{self.name}"

    @property
    def path(self) -> Path:
        return self.site.path_of(self.junction_path)

    @property
    def volume_comment(self) -> str:
        """The tag that says whose volume this is (ONTAP shows it to any operator)."""
        return f"cloneyard:v1:template={self.tag}"

    @property
    def view_lines(self) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.view.splitlines() if line.strip())

    @property
    def ignore_lines(self) -> tuple[str, ...]:
        lines = (line.strip() for line in self.ignore_patterns.splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))


class Snapshot(models.Model):
    """A published snapshot and its pin: what exactly it contains.

    Workspaces flush to `change` and compare with `have_count` and `have_digest`,
    never with the template's client, which may have moved on.
    """

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="snapshots"
    )
    name = models.CharField(max_length=255)
    ontap_uuid = models.CharField(max_length=36)
    change = models.BigIntegerField()
    client_spec = models.TextField(help_text="The template client's form.")
    have_count = models.BigIntegerField()
    have_digest = models.CharField(max_length=64)
    lint = models.JSONField(default=list, help_text="What a reader should know.")
    sync_seconds = models.FloatField(default=0)
    build_seconds = models.FloatField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("template", "name"), name="snapshot_name_unique_in_template"
            ),
            models.CheckConstraint(
                name="snapshot_is_pinned",
                condition=Q(change__gt=0)
                & Q(have_count__gte=0)
                & Q(have_digest__regex=r"^[0-9a-f]{64}$")
                & ~Q(client_spec="")
                & ~Q(ontap_uuid=""),
            ),
        )

    def __str__(self) -> str:
        return self.name


class Workspace(models.Model):
    """What a person asked for: clone, client and export, with one lifecycle."""

    class State(models.TextChoices):
        PROVISIONING = "provisioning", "Being made"
        READY = "ready", "Ready"
        RETIRING = "retiring", "Being retired"
        RETIRED = "retired", "Retired"
        FAILED = "failed", "Failed"

    class Purpose(models.TextChoices):
        DEVELOPMENT = "development", "Development"
        BUILD = "build", "Build only (no Perforce client)"

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="workspaces")
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="workspaces")
    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="workspaces"
    )
    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.PROTECT, related_name="workspaces"
    )
    name = models.CharField(max_length=40, validators=[name_validator])
    purpose = models.CharField(
        max_length=16, choices=Purpose, default=Purpose.DEVELOPMENT
    )
    wants_reconcile = models.BooleanField(default=False)
    request_key = models.CharField(
        max_length=200, blank=True, help_text="Makes a repeated request the same one."
    )
    uid = models.PositiveIntegerField()
    gid = models.PositiveIntegerField()
    p4_user = models.CharField(max_length=128)
    state = models.CharField(max_length=16, choices=State, default=State.PROVISIONING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    volume_uuid = models.CharField(max_length=36, blank=True)
    ownership = models.JSONField(null=True, blank=True)
    reconcile = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)

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
                name="workspace_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
        )
        indexes = (
            models.Index(fields=("owner", "-created_at"), name="workspace_by_owner"),
            models.Index(
                fields=("state",),
                condition=Q(state__in=("provisioning", "retiring")),
                name="workspace_moving",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def volume_name(self) -> str:
        return f"cy_{_underscored(self.name)}_w{self.tag.hex[:6]}"

    @property
    def client_name(self) -> str:
        """The Perforce client, "" for a build-only workspace, which has none."""
        if self.purpose == self.Purpose.BUILD:
            return ""
        return f"cy-{self.name}-w{self.tag.hex[:6]}"

    @property
    def junction_path(self) -> str:
        return f"/w-{self.name}"

    @property
    def path(self) -> Path:
        return self.site.path_of(self.junction_path)

    @property
    def volume_comment(self) -> str:
        """The tag that says whose clone this is (ONTAP shows it to any operator)."""
        return f"cloneyard:v1:workspace={self.tag}"

    @property
    def is_moving(self) -> bool:
        return self.state in (self.State.PROVISIONING, self.State.RETIRING)


def _underscored(name: str) -> str:
    """Volume names have no hyphens; our names have no underscores, so this reverses."""
    return name.replace("-", "_")


class Operation(models.Model):
    """One request that takes a while, with the journal of its steps."""

    class Kind(models.TextChoices):
        PROVISION = "provision", "Provision"
        RETIRE = "retire", "Retire"
        TEMPLATE_BUILD = "template_build", "Build template"

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        SUCCEEDED = "succeeded", "Succeeded"
        REFUSED = "refused", "Refused"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    kind = models.CharField(max_length=20, choices=Kind)
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="operations",
    )
    template = models.ForeignKey(
        Template,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="operations",
    )
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    parameters = models.JSONField(default=dict, help_text="What was asked for.")
    requested_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    findings = models.JSONField(
        null=True, blank=True, help_text="Unsaved work that was found, by kind."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="operation_is_about_one_thing",
                condition=Q(
                    kind="template_build",
                    template__isnull=False,
                    workspace__isnull=True,
                )
                | Q(
                    ~Q(kind="template_build"),
                    template__isnull=True,
                    workspace__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="operation_ended_has_ended_at",
                condition=Q(state="running", ended_at__isnull=True)
                | (~Q(state="running") & Q(ended_at__isnull=False)),
            ),
            models.UniqueConstraint(
                fields=("workspace",),
                condition=Q(state="running"),
                name="operation_one_running_per_workspace",
            ),
            models.UniqueConstraint(
                fields=("template",),
                condition=Q(state="running"),
                name="operation_one_running_per_template",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.workspace or self.template}"

    @property
    def site(self) -> Site:
        subject = self.workspace or self.template
        assert subject is not None
        return subject.site


class Step(models.Model):
    """One ensure_* of an operation; workflow.py says what it does and comes after.

    `progress` is {"done", "total", "unit", "text"}, any of them absent; `remote` holds
    ids of the far side as soon as they are known; `result` is what later steps use.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        RETRYING = "retrying", "Will be tried again"
        DONE = "done", "Done"
        SKIPPED = "skipped", "Not needed"
        FAILED = "failed", "Failed"

    operation = models.ForeignKey(
        Operation, on_delete=models.CASCADE, related_name="steps"
    )
    name = models.CharField(max_length=40)
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    attempt = models.PositiveIntegerField(default=0)
    job_id = models.BigIntegerField(null=True, blank=True)
    queued_at = models.DateTimeField(null=True, blank=True)
    first_started_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    progress = models.JSONField(default=dict)
    remote = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)

    class Meta:
        ordering = ("operation", "position")
        constraints = (
            models.UniqueConstraint(
                fields=("operation", "name"), name="step_name_unique_in_operation"
            ),
            models.CheckConstraint(
                name="step_running_has_started_at",
                condition=~Q(state__in=("running", "retrying", "done"))
                | Q(started_at__isnull=False),
            ),
            models.CheckConstraint(
                name="step_settled_has_ended_at",
                condition=~Q(state__in=("done", "skipped", "failed"))
                | Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="step_failed_has_reason",
                condition=~Q(state__in=("failed", "retrying")) | ~Q(error_message=""),
            ),
        )
        indexes = (
            models.Index(
                fields=("queued_at",),
                condition=Q(state__in=("queued", "running", "retrying")),
                name="step_in_flight",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def seconds(self) -> float | None:
        """How long its last attempt took, None while it runs or never ran."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def log_path(self) -> Path:
        """Where a step that runs a command keeps its output."""
        return Path(settings.LOG_DIR) / f"operation-{self.operation_id}-{self.name}.log"


class Event(models.Model):
    """Something that happened, for people to read; written once, never changed."""

    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=60)
    message = models.TextField()
    actor = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )
    template = models.ForeignKey(
        Template,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ("-at", "-id")
        constraints = (
            models.CheckConstraint(
                name="event_is_about_something",
                condition=Q(workspace__isnull=False) | Q(template__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.message

    @staticmethod
    def about(subject: Workspace | Template) -> dict[str, Any]:
        """Return the field that points an event at its subject."""
        key = "workspace" if isinstance(subject, Workspace) else "template"
        return {key: subject}
