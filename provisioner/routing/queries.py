"""Which rule and which server a workspace or template gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from provisioner.routing.kinds import Purpose
from provisioner.routing.models import LONGEST_REASON, RoutingRule
from provisioner.routing.refusals import RoutingRuleUnfit
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.queries import installations


@dataclass(frozen=True, kw_only=True)
class Route:
    """The Perforce server for something new, by a rule or as the site says."""

    site: Site
    rule: RoutingRule | None = None

    @property
    def server(self) -> PerforceServer:
        return self.rule.server if self.rule else self.site.perforce_server

    @property
    def columns(self) -> dict[str, object]:
        """The columns of a Routed row."""
        is_sites = self.server.pk == self.site.perforce_server_id
        rule = self.rule
        because = f"Rule {rule.position}: {rule.conditions}." if rule else ""
        return {
            "routed_to": None if is_sites else self.server,
            "routing_rule": rule,
            "routed_because": because[:LONGEST_REASON],
        }


def all_rules() -> QuerySet[RoutingRule]:
    """Return all rules in order, with what they name."""
    return RoutingRule.objects.select_related(
        *("account", "team", "site", "server__upstream"),
        *("server__slot_budget", "server__load"),
    )


def route_for(site: Site, *, purpose: str, owner: User) -> Route:
    """Return the server for something new of this owner at this site.

    The first matching rule counts. One query if there are no rules.

    Raises: RoutingRuleUnfit (its server has become one of another kind).
    """
    route = routes_for([site], purpose=purpose, owner=owner)[site.pk]
    if route.rule is not None and route.rule.why_not:
        raise RoutingRuleUnfit(why=route.rule.why_not)
    return route


def routes_for(
    sites: Collection[Site], *, purpose: str, owner: User
) -> dict[int, Route]:
    """Return the server for something new of this owner at each site, by site id.

    A rule whose server is unfit counts, too. One query if there are no rules for it.
    """
    matching = _matching(purpose, owner=owner)
    # Most have no rule, and what all_rules joins takes ten times as long to ask for.
    rules = all_rules().filter(pk__in=matching) if matching.exists() else ()
    roots = installations() if rules else {}
    return {
        site.pk: Route(site=site, rule=_first_for(site, rules, roots)) for site in sites
    }


def _matching(purpose: str, *, owner: User) -> QuerySet[RoutingRule]:
    of = Q(account=None, team=None) | Q(account=owner)
    if owner.team_id is not None:
        of |= Q(team=owner.team_id)
    return RoutingRule.objects.filter(of, purpose__in=("", Purpose(purpose)))


def _first_for(
    site: Site, rules: Iterable[RoutingRule], roots: Mapping[int, int]
) -> RoutingRule | None:
    """Return the first rule for a site whose server is of the site's installation."""
    return next(
        (
            rule
            for rule in rules
            if rule.site_id in (None, site.pk)
            and roots[rule.server_id] == roots[site.perforce_server_id]
        ),
        None,
    )
