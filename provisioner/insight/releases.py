"""Who uses releases that are older than a server's users should have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Max
from django.db.models.functions import Coalesce

from provisioner.insight.models import ProgramMail, ProgramRelease, ProgramUse
from provisioner.lib import clocks
from provisioner.lib.releases import is_older
from provisioner.sites.models import PerforceServer

NOT_AGAIN_FOR = dt.timedelta(days=30)
# By one click, or request. A form has 1,000 fields at most, too.
MAILS_AT_ONCE = 200
# What nobody has used since needs no update.
SEEN_WITHIN = dt.timedelta(days=90)


@dataclass(frozen=True, kw_only=True)
class Outdated:
    """A release in use that is older than the minimum or the recommended one."""

    program: str
    release: str
    minimum: str
    recommended: str
    is_too_old: bool

    @property
    def wanted(self) -> str:
        return self.recommended or self.minimum

    def __str__(self) -> str:
        return f"{self.program} {self.release}"


@dataclass(frozen=True, kw_only=True)
class Person:
    """A Perforce user with old programs; `mailed_at` is when they were last asked.

    `trouble` says why they did not get the last mail, "" if they did or wait for it.
    """

    user: str
    outdated: list[Outdated]
    mailed_at: dt.datetime | None
    trouble: str
    is_due: bool


def outdated_of(
    uses: Iterable[ProgramUse], releases: Iterable[ProgramRelease]
) -> dict[str, list[Outdated]]:
    """Return the old programs of each user, by name. What names no release is left out.

    Source: p4 help configurables, minClient: a server compares releases like this.
    """
    wanted = {each.program: each for each in releases}
    found: dict[str, list[Outdated]] = {}
    for use in uses:
        rule = wanted.get(use.program)
        if rule is None:
            continue
        is_too_old = is_older(use.release, rule.minimum)
        if is_too_old or is_older(use.release, rule.recommended):
            found.setdefault(use.user, []).append(
                Outdated(
                    program=use.program,
                    release=use.release,
                    minimum=rule.minimum,
                    recommended=rule.recommended,
                    is_too_old=is_too_old,
                )
            )
    return dict(sorted(found.items()))


def people_to_ask(server: PerforceServer) -> list[Person]:
    """Return who lately used programs that are too old at a server, by name.

    Nobody is due again for 30 days. Four queries.
    """
    now = clocks.database_now()
    releases = server.program_releases.all()
    uses = ProgramUse.objects.filter(
        server=server,
        program__in=[each.program for each in releases],
        last_seen_at__gte=now - SEEN_WITHIN,
    ).order_by("program", "release__numbers")
    mails = ProgramMail.objects.filter(server=server)
    mailed: dict[str, dt.datetime] = dict(
        mails.filter(trouble="")
        .order_by()
        .values_list("p4_user")
        .annotate(at=Max(Coalesce("claimed_at", "requested_at")))
    )
    last = mails.order_by("p4_user", "-pk").distinct("p4_user")
    troubles = dict(last.values_list("p4_user", "trouble"))
    return [
        Person(
            user=user,
            outdated=outdated,
            mailed_at=mailed.get(user),
            trouble=troubles.get(user, ""),
            is_due=user not in mailed or now - mailed[user] >= NOT_AGAIN_FOR,
        )
        for user, outdated in outdated_of(uses, releases).items()
    ]


def evidence_of(person: Person) -> list[dict[str, Any]]:
    """Return what a mail says, as it is kept."""
    return [{**asdict(each), "wanted": each.wanted} for each in person.outdated]
