"""Results of the last test of a site's or Perforce server's connection."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.sites.models.perforce_servers import PerforceServer
from provisioner.sites.models.sites import Site


class ConnectionTest(models.Model):
    """The latest test of a site or a Perforce server from one place.

    `checked_at` is None until the test has run there; `host` is where.
    """

    class Place(models.TextChoices):
        WEB = "web", "The web server"
        WORKER = "worker", "A worker that reaches it"
        HOST = "host", "A host of the site"
        TRIAL = "trial", "A trial volume"

    site = models.ForeignKey(
        Site,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="connection_tests",
    )
    server = models.ForeignKey(
        PerforceServer,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="connection_tests",
    )
    place = models.CharField(max_length=10, choices=Place)
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    checked_at = models.DateTimeField(null=True, blank=True)
    host = models.CharField(max_length=255, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("site", "place"), name="connection_test_once_per_site_and_place"
            ),
            models.UniqueConstraint(
                fields=("server", "place"),
                name="connection_test_once_per_server_and_place",
            ),
            models.CheckConstraint(
                name="connection_test_is_of_a_site_or_of_a_server",
                condition=Q(site__isnull=True, server__isnull=False)
                | Q(site__isnull=False, server__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.site or self.server} from {self.get_place_display()}"


class ConnectionCheck(models.Model):
    """One check of a connection test, in the order in which they ran.

    `about_host` is the host, one of many, that a daily check found something wrong on.
    """

    class Outcome(models.TextChoices):
        PASSED = "passed", "Passed"
        REMARKED = "remarked", "Good to know"
        FAILED = "failed", "Failed"
        SKIPPED = "skipped", "Not checked"

    test = models.ForeignKey(
        ConnectionTest, on_delete=models.CASCADE, related_name="checks"
    )
    about_host = models.CharField(max_length=255, blank=True)
    name = models.CharField(max_length=40, help_text="A stable code.")
    outcome = models.CharField(max_length=8, choices=Outcome)
    sentence = models.TextField()
    advice = models.TextField(blank=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.CheckConstraint(
                name="connection_check_of_a_host_has_failed",
                condition=Q(about_host="") | Q(outcome="failed"),
            ),
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}"
