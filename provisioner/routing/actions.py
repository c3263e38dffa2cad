"""Add, order and remove routing rules."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.lib.databases import pass_one_by_one
from provisioner.lib.refusals import InvalidRequest
from provisioner.routing.models import RoutingRule
from provisioner.sites.queries import same_installation


@transaction.atomic
def routing_rule_add(*, by: User, **fields: Any) -> RoutingRule:
    """Add a rule behind all others. It counts for what is made from now on.

    Raises: NotAllowed, InvalidRequest (it cannot work).
    """
    permissions.require(permissions.can_administer(by))
    pass_one_by_one("routing_rules", 0)
    rule = RoutingRule(position=_last_position() + 1, **fields)
    _require_sound(rule)
    rule.save()
    _record(rule, by=by, kind="routing_rule_added", did="Added")
    return rule


@transaction.atomic
def routing_rule_move_up(*, by: User, rule: RoutingRule) -> bool:
    """Put a rule before the one above it; return whether there was one.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    pass_one_by_one("routing_rules", 0)
    rule.refresh_from_db(fields=["position"])
    above = RoutingRule.objects.filter(position__lt=rule.position).last()
    if above is None:
        return False
    upper, lower = above.position, rule.position
    RoutingRule.objects.filter(pk=rule.pk).update(position=_last_position() + 1)
    RoutingRule.objects.filter(pk=above.pk).update(position=lower)
    RoutingRule.objects.filter(pk=rule.pk).update(position=upper)
    _record(rule, by=by, kind="routing_rule_moved", did="Moved up")
    return True


@transaction.atomic
def routing_rule_remove(*, by: User, rule: RoutingRule) -> None:
    """Remove a rule. What it sent to its server stays there.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    _record(rule, by=by, kind="routing_rule_removed", did="Removed")
    rule.delete()


def _last_position() -> int:
    last: int | None = RoutingRule.objects.aggregate(last=Max("position"))["last"]
    return last or 0


def _require_sound(rule: RoutingRule) -> None:
    """Refuse a rule that cannot work, or that no request would reach.

    Raises: InvalidRequest.
    """
    try:
        rule.full_clean()
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, sentences[0]) from error
    site = rule.site
    if site is not None and not same_installation(site.perforce_server, rule.server):
        raise InvalidRequest.at(
            "server",
            f"{rule.server} is of another Perforce installation than "
            f"{site.perforce_server}, which {site} uses.",
        )
    if rule.catch_up_seconds > settings.STEP_GIVE_UP_SECONDS:
        raise InvalidRequest.at(
            "catch_up_seconds",
            f"A step is given up after {settings.STEP_GIVE_UP_SECONDS:.0f} s "
            "(STEP_GIVE_UP_SECONDS). Wait no longer than that.",
        )
    for other in RoutingRule.objects.filter(
        purpose=rule.purpose, account=rule.account, team=rule.team, site=rule.site
    ).select_related("server"):
        if same_installation(other.server, rule.server):
            raise InvalidRequest(
                f"Rule {other.position} is for the same already. Remove it first."
            )


def _record(rule: RoutingRule, *, by: User, kind: str, did: str) -> None:
    record_event(
        rule.server,
        kind=kind,
        message=f"{did} the routing rule {rule.position}, {rule.sentence}",
        actor=by,
    )
