"""Runs of profiles: what was measured, where, and what came out."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine.models import HasOperations
from provisioner.gateways.perforce.releases import p4d_release_in
from provisioner.qualification.profiles import BY_CODE, CHOICES, Profile, Target
from provisioner.sandboxes.models import Sandbox
from provisioner.sites.models import PerforceServer, Site

MOST_HOSTS = 8
LARGEST_LOG = 64 << 20
# Parameters with the lowest and the highest value of each.
BOUNDS = {
    "files": (1, 700_000),
    "size": (1, 1 << 20),
    "seed": (0, 1_000_000),
    "children": (1, 256),
    "hosts": (1, MOST_HOSTS),
    "rounds": (1, 100_000),
    "stagger_ms": (0, 60_000),
    "repeats": (1, 100),
}
# What says which files are made.
DATA = ("files", "size", "seed")
USUAL = {
    **{"files": 7_000, "size": 1_024, "seed": 1, "children": 1, "hosts": 1},
    **{"rounds": 1, "stagger_ms": 0, "repeats": 3},
}


def _number(name: str, said: str) -> models.PositiveIntegerField[int, int]:
    low, high = BOUNDS[name]
    return models.PositiveIntegerField(
        default=USUAL[name],
        validators=[MinValueValidator(low), MaxValueValidator(high)],
        help_text=said,
    )


class QualificationOperation(models.TextChoices):
    RUN = "qualification_run", "Measure a server"
    PROVE = "qualification_prove", "Check what measured workspaces left"


class QualificationRun(HasOperations):
    """A profile, measured at a sandbox, at a server that is marked as scratch, or by
    workspaces of a template.

    Without a sandbox and a template it is the server itself. It waits for its sandbox
    to be ready, or for the workspaces that it makes. `name` says in lists of operations
    what is measured where. `release` is what the server said it is, and `log_start`
    where its log ended before anything was measured. `summary` has a sentence a line.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    name = models.CharField(max_length=100, editable=False)
    profile = models.CharField(max_length=20, choices=CHOICES)
    perforce_server = models.ForeignKey(
        PerforceServer, on_delete=models.PROTECT, related_name="+"
    )
    sandbox = models.ForeignKey(
        Sandbox,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="qualification_runs",
    )
    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    files = _number("files", "How many files are made.")
    size = _number("size", "Bytes of each.")
    seed = _number("seed", "The same number makes the same files.")
    children = _number("children", "Processes on each host.")
    hosts = _number("hosts", "Each needs a worker of the site.")
    rounds = _number("rounds", "Browses of each child.")
    stagger_ms = _number("stagger_ms", "Milliseconds from one child to the next.")
    repeats = _number("repeats", "How often all of it is measured.")
    is_cold = models.BooleanField(
        default=False,
        help_text="Before each repeat the host forgets the server's files.",
    )
    note = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    attempt = models.PositiveIntegerField(default=1, editable=False)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    release = models.CharField(max_length=200, blank=True)
    log_start = models.BigIntegerField(null=True, blank=True)
    summary = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager[QualificationRun]]

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("perforce_server",),
                condition=Q(state__in=("waiting", "running"), sandbox__isnull=True),
                name="qualification_run_one_at_a_server",
            ),
            models.UniqueConstraint(
                fields=("sandbox",),
                condition=Q(state__in=("waiting", "running"), sandbox__isnull=False),
                name="qualification_run_one_at_a_sandbox",
            ),
            models.CheckConstraint(
                name="qualification_run_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
            models.CheckConstraint(
                name="qualification_run_ended_or_under_way",
                condition=Q(state__in=("waiting", "running"), ended_at__isnull=True)
                | (~Q(state__in=("waiting", "running")) & Q(ended_at__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return f"{self.profile} {self.pk}"

    @property
    def described(self) -> Profile:
        return BY_CODE[self.profile]

    @property
    def measured_at(self) -> str:
        """The name of what is measured."""
        if self.template is not None:
            return f"{self.template.name} at {self.site.name}"
        if self.sandbox is None:
            return self.perforce_server.name
        return f"{self.sandbox.name}, a sandbox of {self.perforce_server.name}"

    @property
    def what_measured(self) -> str:
        """The name of what is measured, with the release that answered."""
        release = p4d_release_in(self.release)
        return f"{self.measured_at}{f', p4d {release}' if release else ''}"

    @property
    def begins_with_its_sandbox(self) -> bool:
        """Whether nothing was measured, as the sandbox made for it is not ready."""
        return (
            self.sandbox is not None
            and self.sandbox.purpose == Sandbox.Purpose.BASELINE
            and self.sandbox.state != Sandbox.State.READY
            and self.log_start is None
        )

    @property
    def is_under_way(self) -> bool:
        return self.state in UNDER_WAY

    @property
    def own_queue(self) -> str:
        """The queue of the host that measures: a sandbox's own where it is alone."""
        if self.sandbox is not None and self.hosts == 1:
            return self.sandbox.host.queue
        return self.site.host_queue

    @property
    def uid(self) -> int:
        """Who works on the files of clients."""
        of = self.sandbox.host if self.sandbox else None
        return of.uid if of else self.site.template_uid

    @property
    def gid(self) -> int:
        of = self.sandbox.host if self.sandbox else None
        return of.gid if of else self.site.template_gid

    @property
    def parameters(self) -> list[tuple[str, int]]:
        """The parameters that count for its profile."""
        data = () if self.described.target == Target.TEMPLATE else DATA
        names = (*data, *self.described.usual)
        return [(name, getattr(self, name)) for name in dict.fromkeys(names)]


UNDER_WAY = (QualificationRun.State.WAITING, QualificationRun.State.RUNNING)


class PhaseTime(models.Model):
    """How long a phase of one workspace took, of so many requested at once.

    `number` counts those of a batch.
    """

    run = models.ForeignKey(
        QualificationRun, on_delete=models.CASCADE, related_name="times"
    )
    at_once = models.PositiveSmallIntegerField()
    repeat = models.PositiveSmallIntegerField()
    number = models.PositiveSmallIntegerField()
    phase = models.CharField(max_length=20)
    seconds = models.FloatField()

    class Meta:
        ordering = ("at_once", "repeat", "number", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "at_once", "repeat", "number", "phase"),
                name="phase_time_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.phase} of workspace {self.number}, {self.at_once} at once"


class HostRound(models.Model):
    """What one host did in one repeat; the first, 0, only warms the caches.

    `token` begins the names of its clients, by which the server's log tells of it. A
    load is that of the host's last minute: processes that ran, or waited to.
    """

    run = models.ForeignKey(
        QualificationRun, on_delete=models.CASCADE, related_name="host_rounds"
    )
    host_number = models.PositiveSmallIntegerField()
    repeat = models.PositiveSmallIntegerField()
    host = models.CharField(max_length=255)
    token = models.CharField(max_length=60)
    began = models.DateTimeField()
    ended = models.DateTimeField()
    processors = models.PositiveSmallIntegerField()
    load_before = models.FloatField()
    load_after = models.FloatField()

    class Meta:
        ordering = ("repeat", "host_number")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "host_number", "repeat"), name="host_round_once"
            ),
        )

    def __str__(self) -> str:
        return f"Repeat {self.repeat} at {self.host}"


class RunFigure(models.Model):
    """A figure of one repeat; `host_number` 0 is for all hosts together."""

    run = models.ForeignKey(
        QualificationRun, on_delete=models.CASCADE, related_name="figures"
    )
    repeat = models.PositiveSmallIntegerField()
    host_number = models.PositiveSmallIntegerField(default=0)
    code = models.CharField(max_length=20)
    value = models.FloatField()

    class Meta:
        ordering = ("repeat", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "repeat", "host_number", "code"),
                name="run_figure_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.code} of repeat {self.repeat}"


class RunLog(models.Model):
    """The server's log of a run, compressed by gzip; without its end if it is large."""

    run = models.OneToOneField(
        QualificationRun, on_delete=models.CASCADE, related_name="log"
    )
    data = models.BinaryField()
    size = models.BigIntegerField(help_text="Bytes, before compression.")
    is_whole = models.BooleanField()

    def __str__(self) -> str:
        return f"Log of {self.run}"
