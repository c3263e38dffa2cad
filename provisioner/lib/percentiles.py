"""Percentiles in SQL."""

from __future__ import annotations

from typing import Any

from django.db.models import Aggregate, DurationField, Field, Q
from django.db.models.expressions import Combinable


class Percentile(Aggregate):
    """A percentile, interpolated between two values."""

    function = "PERCENTILE_CONT"
    name = "percentile"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"

    def __init__(
        self,
        expression: Combinable,
        *,
        share: float,
        filter: Q | None = None,
        output_field: Field[Any, Any] | None = None,
    ) -> None:
        super().__init__(
            expression,
            share=share,
            filter=filter,
            output_field=output_field or DurationField(),
        )
