"""Where sandboxes run, with which p4d, and who may have them."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from provisioner.accounts.models import Team
from provisioner.engine.queues import SANDBOXES_PREFIX
from provisioner.lib.names import LONGEST_NAME, name_validator
from provisioner.sites.models import Site
from provisioner.sites.values import check_file_path, host_validator

LONGEST_HOURS = 24 * 30
LOWEST_PORT, HIGHEST_PORT = 1024, 65_535
release_validator = RegexValidator(
    r"^20\d\d\.\d\Z", "Write a release such as 2024.2.", code="invalid_release"
)


class P4dVersion(models.Model):
    """A release of p4d, and its path on hosts of sandboxes. Nothing fetches it."""

    release = models.CharField(
        max_length=8, unique=True, validators=[release_validator]
    )
    path = models.CharField(max_length=255, validators=[check_file_path])

    class Meta:
        ordering = ("-release__numbers",)

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

    `team_at_most` None: no limit for all together.
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
