"""The list of bisections."""

from __future__ import annotations

from typing import Any

from provisioner.bisect.actions import bisection_stop
from provisioner.bisect.forms import BisectionFilterForm
from provisioner.bisect.models import Bisection
from provisioner.bisect.queries import bisections_visible_to
from provisioner.bisect.refusals import BisectionOver
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched


class Stop(Act[Bisection]):
    name, label, done = "stop", "Stop", "Stopped"
    is_dangerous = True

    def do(self, row: Bisection, **told: Any) -> Bisection:
        if not row.is_running:
            raise BisectionOver
        return bisection_stop(by=self.by, bisection=row)

    def says(self, row: Bisection, result: Bisection) -> str:
        return "No further change is tested. The current clone is deleted."


BISECTIONS = Listing[Bisection](
    name="bisections",
    one="bisection",
    many="bisections",
    columns=(
        Column("id", "", "pk", "pk"),
        Column("template", "Search", "template.name", "template__name"),
        Column("good", "", "good"),
        Column("bad", "", "bad"),
        Column("owner", "Owner", "owner.username", "owner__username"),
        Column("state", "State", "state", "state"),
        Column("first_bad", "", "first_bad", "first_bad", has_gaps=True),
        Column("status_message", "Result", "status_message"),
        Column(
            *("created_at", "Requested", "created_at", "created_at"),
            begins_descending=True,
        ),
        Column("ended_at", "", "ended_at", "ended_at", has_gaps=True),
    ),
    cells="bisect/_cells.html",
    matching=searched(
        # The list shows no steps.
        lambda user: bisections_visible_to(user).prefetch_related(None),
        *("template__name", "owner__username"),
    ),
    usual="-created_at",
    form=BisectionFilterForm,
    acts=(Stop,),
    quiet_below=10,
)
