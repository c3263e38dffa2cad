"""Daily samples of the limits of templates, and of the quotas of teams."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from provisioner.accounts.models import Team
from provisioner.catalog.models import Template


class LimitDay(models.Model):
    """What a template or a team used of a limit on a day in UTC, as last counted.

    `code` is that of the limit's refusal. One row per limit and day, kept as long as
    forecasts look back; none for a quota of which nothing is used. `CapacityDay` has
    the limits of sites.
    """

    template = models.ForeignKey(
        Template, null=True, on_delete=models.CASCADE, related_name="limit_days"
    )
    team = models.ForeignKey(
        Team, null=True, on_delete=models.CASCADE, related_name="limit_days"
    )
    code = models.CharField(max_length=40)
    day = models.DateField()
    used = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("template", "code", "day"), name="limit_day_once"
            ),
            models.UniqueConstraint(
                fields=("team", "code", "day"), name="limit_day_once_by_team"
            ),
            models.CheckConstraint(
                name="limit_day_of_one",
                condition=Q(template__isnull=False, team__isnull=True)
                | Q(template__isnull=True, team__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.code} of {self.template or self.team} on {self.day}"
