"""Compare accounts with the directory, and follow it within bounds."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Now

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.directory.models import DirectoryChange, DirectorySync
from provisioner.directory.people import sources
from provisioner.directory.refusals import NothingToApprove
from provisioner.gateways.errors import GatewayError
from provisioner.identities.absence import (
    absent_people,
    closes_absent_people,
    people_of_the_provider,
)
from provisioner.identities.actions import account_end, follow
from provisioner.identities.models import Identity
from provisioner.identities.people import Found, Person, Rules, Source
from provisioner.lib import clocks
from provisioner.workspaces.models import PUT_AWAY

FOLLOWED = ("email", "first_name", "last_name", "is_staff", "team_id")
WORDS = {"is_staff": "role", "team_id": "team"}
NO_SERVICE_ACCOUNT = (
    "A sync needs LDAP_BIND_DN: people bind themselves to sign in, and only then."
)
NO_DIRECTORY = (
    "Nobody is followed: LDAP_URLS and P4_SIGN_IN_SERVER are not set, nor OIDC_ISSUER "
    "with OIDC_ABSENT_DAYS."
)
Action = DirectoryChange.Action

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What is to be done to an account of an issuer.

    `person` and `rules` are None if it is closed.
    """

    account: User
    issuer: str
    action: DirectoryChange.Action
    sentence: str
    person: Person | None = None
    rules: Rules | None = None

    @property
    def loses(self) -> bool:
        return self.action in DirectoryChange.LOSES


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All that one source says; `known` are accounts, `active` people of them.

    `nobody_is_left` is what an administrator is asked where nobody is active.
    """

    known: int
    active: int
    planned: list[Planned]
    nobody_is_left: str


def directory_sync(
    *, is_preview: bool = False, most: int | None = None
) -> DirectorySync:
    """Follow directory and Perforce: close accounts of people who are gone from there.

    So are those of people of the provider who have not signed in for OIDC_ABSENT_DAYS.
    Their sessions end and their tokens are revoked; their workspaces stay until their
    leases end. Teams, roles, names and mail addresses of all others are updated. Local
    accounts are never touched, so a break-glass administrator is not.

    Nothing is done, and an administrator is asked, if more than `most` accounts would
    be closed or lose the role of an administrator (LDAP_MOST_CLOSED by default), or if
    nobody at all is left: then the directory is rather wrong than empty.

    A sync that was cut short is followed by a whole one.
    """
    DirectorySync.objects.filter(state=DirectorySync.State.RUNNING).update(
        state=DirectorySync.State.FAILED, ended_at=Now(), message="It was cut short."
    )
    sync = DirectorySync.objects.create()
    asked = sources()
    if not asked and not closes_absent_people():
        message = NO_SERVICE_ACCOUNT if settings.DIRECTORY else NO_DIRECTORY
        return _ended(sync, DirectorySync.State.FAILED, message=message)
    try:
        comparisons = [_compare(source) for source in asked]
    except GatewayError as error:
        log.warning("directory_sync_failed", **error.log_context())
        return _ended(sync, DirectorySync.State.FAILED, message=error.sentence)
    if closes_absent_people():
        comparisons.append(_absent())
    _write_down(sync, comparisons)
    if is_preview:
        return _ended(sync, DirectorySync.State.PREVIEWED)
    limit = settings.LDAP_MOST_CLOSED if most is None else most
    question = _question(comparisons, most=limit, approved=_approved())
    if question:
        return _asking(sync, question)
    for planned in _all_planned(comparisons):
        if _apply(planned):
            sync.changes.filter(account=planned.account).update(is_applied=True)
    return _ended(sync, DirectorySync.State.DONE)


@transaction.atomic
def directory_sync_approve(*, by: User, sync: DirectorySync) -> None:
    """Let the next sync do to these accounts what this one asks for.

    Raises: NotAllowed, NothingToApprove.
    """
    permissions.require(permissions.can_administer(by))
    approved = DirectorySync.objects.filter(
        pk=sync.pk, state=DirectorySync.State.ASKS
    ).update(state=DirectorySync.State.APPROVED, approved_by=by)
    newest = DirectorySync.objects.exclude(state=DirectorySync.State.RUNNING).first()
    if not approved or newest is None or newest.pk != sync.pk:
        raise NothingToApprove
    record_event(
        None,
        kind="directory_sync_approved",
        message=f"Approved what the directory sync {sync.pk} asks for.",
        actor=by,
    )


def _compare(source: Source) -> Comparison:
    """Raises: GatewayError."""
    identities = list(
        Identity.objects.filter(issuer=source.issuer)
        .select_related("account__team")
        .order_by("account__username")
    )
    found = source.find([identity.subject for identity in identities])
    active = sum(not person.why_disabled for person in found.values())
    planned = [
        each
        for identity in identities
        for each in _planned(source, identity.account, found.get(identity.subject))
    ]
    return Comparison(
        known=len(identities),
        active=active,
        planned=planned,
        nobody_is_left=f"{source.name} has none of {len(identities)} people any more. "
        f"Check {source.where_to_look} first.",
    )


def _absent() -> Comparison:
    """Return what is to be done to people of the provider, by their last sign-ins."""
    known = people_of_the_provider().count()
    absent = absent_people().select_related("account").order_by("account__username")
    name, days = settings.OIDC_NAME, settings.OIDC_ABSENT_DAYS
    return Comparison(
        known=known,
        active=known - absent.count(),
        planned=[
            Planned(
                account=identity.account,
                issuer=identity.issuer,
                action=Action.CLOSE,
                sentence=f"Has not signed in with {name} for {days} days.",
            )
            for identity in absent.filter(account__is_active=True)
        ],
        nobody_is_left=f"None of {known} people have signed in with {name} for {days} "
        "days. Check that people can sign in there.",
    )


def _all_planned(comparisons: Sequence[Comparison]) -> list[Planned]:
    return [each for comparison in comparisons for each in comparison.planned]


def _planned(source: Source, account: User, found: Found | None) -> Iterator[Planned]:
    if not account.is_active:
        return
    if found is None or found.why_disabled:
        why = "gone from" if found is None else f"{found.why_disabled} in"
        yield Planned(
            account=account,
            issuer=source.issuer,
            action=Action.CLOSE,
            sentence=f"Is {why} {source.name}.",
        )
        return
    after = copy.copy(account)
    follow(after, found.person, rules=source.rules)
    differing = [
        name for name in FOLLOWED if getattr(account, name) != getattr(after, name)
    ]
    if differing:
        loses_role = account.is_staff and not after.is_staff
        words = ", ".join(WORDS.get(name, name.replace("_", " ")) for name in differing)
        yield Planned(
            account=account,
            issuer=source.issuer,
            action=Action.TAKE_ROLE if loses_role else Action.UPDATE,
            sentence=f"Differs in {source.name}: {words}.",
            person=found.person,
            rules=source.rules,
        )


def _question(
    comparisons: Sequence[Comparison], *, most: int, approved: set[int]
) -> str:
    """Return what an administrator has to say yes to, "" if nothing."""
    losing = {each.account.pk for each in _all_planned(comparisons) if each.loses}
    if losing <= approved:
        return ""
    for comparison in comparisons:
        if any(each.loses for each in comparison.planned) and not comparison.active:
            return comparison.nobody_is_left
    if len(losing) > most:
        return (
            f"{len(losing)} accounts would be closed or lose the role of an "
            f"administrator, more than {most} at once (LDAP_MOST_CLOSED)."
        )
    return ""


def _approved() -> set[int]:
    """Return the accounts that somebody agreed to close since the last sync."""
    last = DirectorySync.objects.filter(
        state__in=(DirectorySync.State.APPROVED, DirectorySync.State.DONE)
    ).first()
    if last is None or last.state != DirectorySync.State.APPROVED:
        return set()
    losing = last.changes.filter(action__in=DirectoryChange.LOSES)
    return set(losing.values_list("account_id", flat=True))


def _write_down(sync: DirectorySync, comparisons: Sequence[Comparison]) -> None:
    sync.accounts_known = sum(comparison.known for comparison in comparisons)
    sync.save(update_fields=["accounts_known"])
    all_planned = _all_planned(comparisons)
    held = _workspaces_of([each.account for each in all_planned])
    DirectoryChange.objects.bulk_create(
        DirectoryChange(
            sync=sync,
            account=each.account,
            action=each.action,
            sentence=_with_workspaces(each, held.get(each.account.pk, 0)),
        )
        for each in all_planned
    )


def _workspaces_of(accounts: Sequence[User]) -> dict[int, int]:
    counted = (
        User.objects.filter(pk__in=[account.pk for account in accounts])
        .annotate(number=Count("workspaces", filter=~Q(workspaces__state__in=PUT_AWAY)))
        .values_list("pk", "number")
    )
    return dict(counted)


def _with_workspaces(planned: Planned, number: int) -> str:
    if planned.action != Action.CLOSE or not number:
        return planned.sentence
    kept = "1 workspace stays" if number == 1 else f"{number} workspaces stay"
    return (
        f"{planned.sentence} {kept} until the lease ends; unsubmitted work is rescued "
        "then."
    )


@transaction.atomic
def _apply(planned: Planned) -> bool:
    """Do it to the account as it is now; return whether there was anything to do."""
    account = User.objects.select_for_update(no_key=True).get(pk=planned.account.pk)
    identities = Identity.objects.filter(account=account, issuer=planned.issuer)
    if planned.issuer == settings.OIDC_ISSUER:
        identities = identities & absent_people()
    if not account.is_active or not identities.exists():
        return False
    if planned.person is None or planned.rules is None:
        number = _workspaces_of([account]).get(account.pk, 0)
        said = _with_workspaces(planned, number)
        account_end(account, reason=f"Closed. {said}")
    else:
        follow(account, planned.person, rules=planned.rules)
        account.save()
    return True


@transaction.atomic
def _asking(sync: DirectorySync, question: str) -> DirectorySync:
    record_event(None, kind="directory_sync_asks", message=question)
    return _ended(sync, DirectorySync.State.ASKS, message=question)


def _ended(
    sync: DirectorySync, state: DirectorySync.State, *, message: str = ""
) -> DirectorySync:
    sync.state, sync.message = state, message
    sync.ended_at = clocks.database_now()
    sync.save(update_fields=["state", "message", "ended_at"])
    return sync
