"""Who uses releases that are older than a server's users should have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from django.db.models import Max
from django.db.models.functions import Coalesce

from provisioner.insight.models import ProgramMail, ProgramRelease, ProgramUse
from provisioner.lib import clocks
from provisioner.lib.releases import is_older, numbers_of
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


class Person(NamedTuple):
    """A Perforce user with old programs; `mailed_at` is when they were last asked.

    `trouble` says why they did not get the last mail, "" if they did or wait for it.
    """

    user: str
    outdated: list[Outdated]
    mailed_at: dt.datetime | None
    trouble: str
    is_due: bool


def outdated_of(
    uses: Iterable[tuple[str, str, str]], releases: Iterable[ProgramRelease]
) -> dict[str, list[Outdated]]:
    """Return the old programs of each user, by name. What names no release is left out.

    Of uses these are the user, the program and its release: of thousands of people
    there are few releases, so each is judged once.

    Source: p4 help configurables, minClient: a server compares releases like this.
    """
    wanted = {each.program: each for each in releases}
    judged: dict[tuple[str, str], Outdated | None] = {}
    found: dict[str, list[Outdated]] = {}
    for user, program, release in uses:
        if (program, release) not in judged:
            judged[program, release] = _judged(program, release, wanted.get(program))
        if (outdated := judged[program, release]) is not None:
            found.setdefault(user, []).append(outdated)
    for them in found.values():
        them.sort(key=lambda each: (each.program, numbers_of(each.release)))
    return dict(sorted(found.items()))


def _judged(program: str, release: str, rule: ProgramRelease | None) -> Outdated | None:
    """Return what is old about a release, None if nothing is."""
    if rule is None:
        return None
    is_too_old = is_older(release, rule.minimum)
    if not is_too_old and not is_older(release, rule.recommended):
        return None
    return Outdated(
        program=program,
        release=release,
        minimum=rule.minimum,
        recommended=rule.recommended,
        is_too_old=is_too_old,
    )


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
    ).order_by()
    mails = ProgramMail.objects.filter(server=server)
    mailed: dict[str, dt.datetime] = dict(
        mails.filter(trouble="")
        .order_by()
        .values_list("p4_user")
        .annotate(at=Max(Coalesce("claimed_at", "requested_at")))
    )
    last = mails.order_by("p4_user", "-pk").distinct("p4_user")
    troubles = dict(last.values_list("p4_user", "trouble"))
    found = outdated_of(uses.values_list("user", "program", "release"), releases)
    return [
        Person(
            user=user,
            outdated=outdated,
            mailed_at=mailed.get(user),
            trouble=troubles.get(user, ""),
            is_due=user not in mailed or now - mailed[user] >= NOT_AGAIN_FOR,
        )
        for user, outdated in found.items()
    ]


def evidence_of(person: Person) -> list[dict[str, Any]]:
    """Return what a mail says, as it is kept."""
    return [{**asdict(each), "wanted": each.wanted} for each in person.outdated]
