"""Pages of copies: switch them on or off for a mirror, and transfer one now."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from provisioner.copies import actions
from provisioner.copies.forms import CopyRuleForm
from provisioner.copies.models import CopyRule
from provisioner.copies.queries import copies_visible_to, rule_at
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@administrators_only
def copy_rule(request: WebRequest, pk: int) -> HttpResponse:
    """Choose which workspaces are copied to a mirror's site, and how often."""
    mirror: Mirror = get_object_or_404(mirrors_visible_to(request.user), pk=pk)
    rule = rule_at(mirror)
    shown = rule or CopyRule(site=mirror.site, second_site=mirror.template.site)
    form = CopyRuleForm(
        posted(request),
        initial={"every_minutes": shown.every_minutes, "purposes": shown.purposes},
    )
    if form.tried(actions.copy_rule_set, by=request.user, mirror=mirror):
        said = f"Workspaces are copied to {shown.site.name} from now on."
        return done(request, said, "mirror-detail", pk)
    context = {"mirror": mirror, "rule": rule, "shown": shown}
    return form_page(request, "copies/rule.html", form, **context)


@require_POST
@administrators_only
def copy_rule_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Stop copying workspaces to a mirror's site."""
    mirror = get_object_or_404(mirrors_visible_to(request.user), pk=pk)
    rule = rule_at(mirror)
    if rule is None:
        return redirect("mirror-detail", pk)
    act = partial(actions.copy_rule_delete, by=request.user, rule=rule)
    said = f"Workspaces are no longer copied to {rule.site.name}."
    return acted(request, act, "mirror-detail", pk, said=said)


@require_POST
@for_changing
def copy_transfer(
    request: WebRequest, workspace: Workspace, copy_pk: int
) -> HttpResponse:
    """Transfer what changed in a workspace now."""
    copies = copies_visible_to(request.user).filter(workspace=workspace)
    copy = get_object_or_404(copies, pk=copy_pk)
    act = partial(actions.copy_transfer, by=request.user, copy=copy)
    said = f"{workspace.name} is being copied to {copy.site.name}."
    return acted(request, act, "workspace-detail", workspace.pk, said=said)
