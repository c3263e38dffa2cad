"""Which Perforce server does what: rules, and where each row's client is."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce

from provisioner.accounts.models import Team, User
from provisioner.routing.kinds import Purpose, why_not
from provisioner.sites.models import PerforceServer, Site, WhenBehind
from provisioner.sites.models.perforce_servers import DAY_SECONDS

LONGEST_REASON = 300

AFTER_THE_WAIT = (
    (WhenBehind.WAIT.value, "Fail, to be retried"),
    (WhenBehind.UPSTREAM.value, "Use the site's server"),
)
MOVES_NO_TEMPLATE = (
    "A template's client and have list are at the server itself, so its builds cannot "
    "use another one meanwhile. Choose “Fail, to be retried”."
)


class RoutingRule(models.Model):
    """A rule that sends some of Cloneyard's work to a Perforce server.

    It holds for the sites of the server's installation. Of the rules that match, the
    one with the lowest position counts. Empty conditions match everything.
    """

    position = models.PositiveIntegerField(unique=True)
    purpose = models.CharField(max_length=16, choices=Purpose, blank=True)
    account = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="The owner of the workspace or template.",
    )
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    server = models.ForeignKey(
        PerforceServer, on_delete=models.PROTECT, related_name="routing_rules"
    )
    catch_up_seconds = models.PositiveIntegerField(
        default=300,
        validators=[MaxValueValidator(DAY_SECONDS)],
        help_text="How many seconds to wait until the server has the change.",
    )
    when_behind = models.CharField(
        max_length=20,
        choices=AFTER_THE_WAIT,
        default=WhenBehind.WAIT,
        help_text="What happens after that.",
    )

    class Meta:
        ordering = ("position",)
        constraints = (
            models.CheckConstraint(
                name="routing_rule_is_for_an_account_or_a_team",
                condition=Q(account__isnull=True) | Q(team__isnull=True),
                violation_error_message="Choose an account or a team, not both.",
            ),
        )

    def __str__(self) -> str:
        return self.sentence

    @property
    def conditions(self) -> str:
        """What it is for, such as "Builds of templates of team tools"."""
        purpose = Purpose(self.purpose).label if self.purpose else "Everything"
        of = f" of {self.account}" if self.account else ""
        of = f" of team {self.team}" if self.team else of
        at = f" at {self.site}" if self.site else ""
        return f"{purpose}{of}{at}"

    @property
    def sentence(self) -> str:
        """Such as "CI (read-only client) of ci: build-1"."""
        return f"{self.conditions}: {self.server}"

    @property
    def why_not(self) -> str:
        """Why its server cannot do what it sends there; "" if it can."""
        return why_not(self.server.served_by.what, self.purpose)

    def clean(self) -> None:
        """Refuse a rule that cannot work.

        Raises: ValidationError.
        """
        if self.why_not:
            raise ValidationError({"server": self.why_not})
        binds = self.server.served_by.what.binds_clients
        moves_templates = self.purpose in ("", Purpose.TEMPLATE)
        if binds and moves_templates and self.when_behind == WhenBehind.UPSTREAM:
            raise ValidationError({"when_behind": MOVES_NO_TEMPLATE})


ITS_SERVER = Coalesce("routed_to", "site__perforce_server")
"""The id of a Routed row's Perforce server, in SQL."""


class Routed(models.Model):
    """A row whose client may be at another Perforce server than its site's.

    The server is chosen once, before anything is made there.
    """

    routed_to = models.ForeignKey(
        PerforceServer,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        help_text="The Perforce server of its client. Empty: its site's.",
    )
    routing_rule = models.ForeignKey(
        RoutingRule,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    routed_because = models.CharField(
        max_length=LONGEST_REASON,
        blank=True,
        editable=False,
        help_text="Why that server was chosen. Empty: no rule matched.",
    )

    routed_as = models.CharField(
        max_length=16,
        choices=Purpose,
        blank=True,
        editable=False,
        help_text="What rules matched it as, if not by its purpose.",
    )

    class Meta:
        abstract = True

    # Declared by each.
    site: models.ForeignKey[Site, Site]
    owner_id: int

    @property
    def used_for(self) -> str:
        """The purpose of its traffic, a value of Purpose."""
        return self.routed_as

    @property
    def perforce_server(self) -> PerforceServer:
        """The Perforce server of its client."""
        return self.routed_to or self.site.perforce_server


class TrafficDay(models.Model):
    """What Cloneyard asked of a Perforce server on a day (UTC), for whom and why.

    Sums over attempts at steps, however these ended. One that was killed is not in it.
    """

    day = models.DateField()
    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="traffic"
    )
    purpose = models.CharField(max_length=16, choices=Purpose)
    account = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The owner of the workspace or template.",
    )
    commands = models.PositiveBigIntegerField(default=0)
    synced_files = models.PositiveBigIntegerField(default=0)
    synced_bytes = models.PositiveBigIntegerField(default=0)
    flushed_files = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("day", "server", "purpose", "account"),
                name="traffic_day_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.day} {self.server}: {self.commands} commands"
