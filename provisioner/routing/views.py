"""Pages of routing rules and of the load they move, for administrators."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST, require_safe

from provisioner.routing import actions
from provisioner.routing.forms import RoutingRuleForm, TrafficFilterForm
from provisioner.routing.lists import TRAFFIC
from provisioner.routing.models import RoutingRule
from provisioner.routing.queries import all_rules
from provisioner.routing.traffic import (
    moved_by_day,
    moved_charts,
    moved_in_all,
    traffic_matching,
)
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import done, form_page, require_safe_or_POST


@require_safe_or_POST
@administrators_only
def routing_rule_list(request: WebRequest) -> HttpResponse:
    """List the rules in order, and add one."""
    form = RoutingRuleForm(posted(request))
    rule = form.tried(actions.routing_rule_add, by=request.user)
    if rule is not None:
        said = f"Added as rule {rule.position}. It counts for what is made from now on."
        return done(request, said, "routing-rule-list")
    context = {"rules": all_rules()}
    return form_page(request, "routing/rules.html", form, **context)


@require_POST
@administrators_only
def routing_rule_move_up(request: WebRequest, pk: int) -> HttpResponse:
    """Put a rule before the one above it."""
    rule = get_object_or_404(RoutingRule, pk=pk)
    moved = actions.routing_rule_move_up(by=request.user, rule=rule)
    said = "Moved up." if moved else "It is the first already."
    return done(request, said, "routing-rule-list")


@require_POST
@administrators_only
def routing_rule_remove(request: WebRequest, pk: int) -> HttpResponse:
    """Remove a rule."""
    rule = get_object_or_404(RoutingRule, pk=pk)
    actions.routing_rule_remove(by=request.user, rule=rule)
    said = "Removed. What it sent to its server stays there."
    return done(request, said, "routing-rule-list")


@require_safe
@administrators_only
def traffic_list(request: WebRequest) -> HttpResponseBase:
    """Show what was asked of each server, and how much was moved off commit servers."""
    criteria = TrafficFilterForm(request.GET).criteria()
    days = moved_by_day(traffic_matching(request.user, **criteria))
    context = {"moved": moved_in_all(days), "charts": moved_charts(days)}
    return list_answer(request, TRAFFIC, "routing/traffic.html", context)
