"""Pages of what runs at Perforce servers, and of how they are set up."""

from __future__ import annotations

from functools import partial

from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from provisioner.insight import actions
from provisioner.insight.forms import OrphanRuleForm, ProgramFilterForm
from provisioner.insight.lists import PROCESSES, PROGRAMS
from provisioner.insight.models import Process
from provisioner.insight.orphans import orphans_of, rule_of
from provisioner.insight.overviews import orphan_overviews, overview_of
from provisioner.insight.programs import proposals
from provisioner.insight.queries import (
    configurations_visible_to,
    readings,
    recent_endings,
    servers_with_orphan_rules,
)
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


@require_safe
@administrators_only
def process_list(request: WebRequest) -> HttpResponseBase:
    """List the processes of all servers, and what becomes of those to end."""
    context = {"readings": readings(), "endings": recent_endings()}
    return list_answer(request, PROCESSES, "insight/processes.html", context)


@require_safe_or_POST
@administrators_only
def process_end(request: WebRequest, pk: int) -> HttpResponse:
    """Show what a process is, and end it when that is confirmed."""
    process = get_object_or_404(Process.objects.select_related("server"), pk=pk)
    if request.method == "POST":
        act = partial(actions.process_end, by=request.user, process=process)
        said = f"A worker ends {process}. What became of it is shown here."
        return acted(request, act, "process-list", said=said)
    return render(request, "insight/end_process.html", {"process": process})


@require_safe
@administrators_only
def program_list(request: WebRequest) -> HttpResponseBase:
    """List who uses which program in which release, with what would stop old ones."""
    form = ProgramFilterForm(request.GET)
    found = form.cleaned_data if form.is_valid() else {}
    older_than = found.get("older_than", "")
    proposed = proposals(older_than, server=found.get("server"))
    context = {"older_than": older_than, "proposals": proposed}
    return list_answer(request, PROGRAMS, "insight/programs.html", context)


@require_safe
@administrators_only
def orphan_list(request: WebRequest) -> HttpResponse:
    """Show what counts as orphaned at each server: a preview of what may be ended."""
    return render(request, "insight/orphans.html", {"servers": orphan_overviews()})


@require_safe_or_POST
@administrators_only
def orphan_rule(request: WebRequest, pk: int) -> HttpResponse:
    """Change which processes of a server count as orphans."""
    server = get_object_or_404(servers_with_orphan_rules(), pk=pk)
    rule = rule_of(server)
    initial = model_to_dict(rule, OrphanRuleForm.base_fields)
    form = OrphanRuleForm(posted(request), initial=initial)
    if form.tried(actions.orphan_rule_save, by=request.user, server=server):
        return done(request, "Saved.", "orphan-list")
    context = {"server": server, "orphans": orphans_of(rule)}
    return form_page(request, "insight/orphan_rule.html", form, **context)


@require_POST
@administrators_only
def orphan_end(request: WebRequest, pk: int) -> HttpResponse:
    """End the orphans of a server that the page showed, if they still are."""
    server = get_object_or_404(servers_with_orphan_rules(), pk=pk)
    shown = {int(text) for text in request.POST.getlist("process") if text.isdecimal()}
    endings = actions.orphans_end(by=request.user, server=server, process_ids=shown)
    said = f"A worker ends {len(endings)} of {len(shown)}."
    return done(request, said, "process-list")


@require_safe
@administrators_only
def configuration_list(request: WebRequest) -> HttpResponse:
    """Show how each server is set up, and what the rules would change."""
    found = configurations_visible_to(request.user)
    context = {"servers": [overview_of(each) for each in found]}
    return render(request, "insight/configurations.html", context)
