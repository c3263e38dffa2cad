"""Submitted changes, and the refresh policies of templates."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from provisioner.catalog.models.templates import Template
from provisioner.lib.spans import span_text
from provisioner.sites.models import PerforceServer


class ServerWatch(models.Model):
    """How far a server's submitted changes have been read.

    Separate from the server's row, as every edit of that enters the audit log. All
    changes up to `newest_change` are matched to templates; None: the server was never
    polled. `failures` counts consecutive failed polls.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="watch"
    )
    interval_seconds = models.PositiveIntegerField(
        default=30, validators=[MinValueValidator(1)]
    )
    is_paused = models.BooleanField(default=False)
    newest_change = models.BigIntegerField(null=True, blank=True)
    polled_at = models.DateTimeField(null=True, blank=True)
    next_poll_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "server watches"

    def __str__(self) -> str:
        return self.server.name


class SubmittedChange(models.Model):
    """A submitted change that touches the view of at least one template.

    `recorded_at` is when we saw it, by our clock; `submitted_at` is the server's.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="changes"
    )
    number = models.BigIntegerField()
    user = models.CharField(max_length=1024)
    submitted_at = models.DateTimeField()
    title = models.CharField(max_length=200, blank=True)
    recorded_at = models.DateTimeField()
    templates = models.ManyToManyField(Template, related_name="changes")

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(
                fields=("server", "number"), name="submitted_change_unique_on_server"
            ),
        )

    def __str__(self) -> str:
        return str(self.number)


class TemplateWatch(models.Model):
    """How far back the changes of a template's view are known.

    All changes that touch `view` (lines of a client spec) are recorded, from above
    `since` to the newest change of the server. Another view or server starts over.
    """

    template = models.OneToOneField(
        Template, on_delete=models.CASCADE, related_name="watch"
    )
    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="+"
    )
    view = models.TextField()
    since = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.template} since {self.since}"


class RefreshPolicy(models.Model):
    """When a template is refreshed automatically; no row: never.

    On change: once nothing relevant was submitted for `quiet_seconds`, and never within
    `every_seconds` after the last build began. By `cron` (five fields, UTC): at its
    times, if something was submitted before. A clean build is due at the times of
    `clean_cron`, with or without new changes. None of them while nobody requested a
    workspace for `unused_days`. `changed_at`: times before it do not count.
    """

    class Mode(models.TextChoices):
        MANUAL = "manual", "Only on request"
        ON_CHANGE = "on_change", "After changes"
        CRON = "cron", "On a schedule"

    template = models.OneToOneField(
        Template, on_delete=models.CASCADE, related_name="refresh_policy"
    )
    mode = models.CharField(max_length=9, choices=Mode, default=Mode.MANUAL)
    quiet_seconds = models.PositiveIntegerField(default=120)
    every_seconds = models.PositiveIntegerField(default=1800)
    cron = models.CharField(max_length=100, blank=True)
    clean_cron = models.CharField(
        max_length=100, blank=True, help_text="When a clean build is due. Empty: never."
    )
    unused_days = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    is_paused = models.BooleanField(default=False)
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "refresh policies"
        constraints = (
            models.CheckConstraint(
                name="refresh_policy_has_its_schedule",
                condition=~Q(mode="cron") | ~Q(cron=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.template}: {self.get_mode_display()}"

    @property
    def sentence(self) -> str:
        """When it is refreshed, as a sentence."""
        if self.mode == self.Mode.MANUAL:
            if not self.clean_cron:
                return "Built on request only."
            said = "Built on request only"
        elif self.mode == self.Mode.CRON:
            said = f"Built at {self.cron} (UTC) if something was submitted before"
        else:
            said = (
                "Built after changes, once nothing came for "
                f"{span_text(self.quiet_seconds)}, at most every "
                f"{span_text(self.every_seconds)}"
            )
        if self.unused_days is not None:
            days = "a day" if self.unused_days == 1 else f"{self.unused_days} days"
            said += f"; not while nobody used it for {days}"
        if self.clean_cron:
            said += f"; clean at {self.clean_cron} (UTC)"
        return f"{said}. Paused." if self.is_paused else f"{said}."


class RefreshSwitch(models.Model):
    """One row: whether every refresh is paused."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    is_paused = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "refresh switch"
        constraints = (
            models.CheckConstraint(name="refresh_switch_is_one", condition=Q(id=1)),
        )

    def __str__(self) -> str:
        return "paused" if self.is_paused else "on"
