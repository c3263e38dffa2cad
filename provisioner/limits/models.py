"""Daily samples of the limits of templates."""

from __future__ import annotations

from django.db import models

from provisioner.catalog.models import Template


class LimitDay(models.Model):
    """What a template used of a limit on a day in UTC, as last counted.

    `code` is that of the limit's refusal. One row per template, limit and day, kept as
    long as forecasts look back. `CapacityDay` has the limits of sites.
    """

    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, related_name="limit_days"
    )
    code = models.CharField(max_length=40)
    day = models.DateField()
    used = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("template", "code", "day"), name="limit_day_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.code} of {self.template} on {self.day}"
