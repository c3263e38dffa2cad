"""Pages of what runs at Perforce servers, and of how they are set up."""

from __future__ import annotations

from functools import partial

from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from provisioner.insight import actions
from provisioner.insight.forms import (
    AdviceRuleForm,
    OrphanRuleForm,
    ProgramFilterForm,
    ProgramReleaseForm,
)
from provisioner.insight.lists import ADVISED_CLIENTS, PROCESSES, PROGRAMS
from provisioner.insight.models import AdviceRule, Process
from provisioner.insight.orphans import orphans_of, rule_of
from provisioner.insight.overviews import (
    clients_overviews,
    orphan_overviews,
    overview_of,
    release_overviews,
)
from provisioner.insight.programs import proposals
from provisioner.insight.queries import (
    configurations_visible_to,
    readings,
    recent_endings,
    servers_with_clients,
    servers_with_orphan_rules,
    servers_with_programs,
)
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action
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
def program_releases(request: WebRequest) -> HttpResponse:
    """Show which releases people should have at each server, and whom to ask."""
    return render(request, "insight/releases.html", {"servers": release_overviews()})


@require_safe_or_POST
@administrators_only
def program_release(request: WebRequest, pk: int) -> HttpResponse:
    """Change which releases of a program a server's users should have."""
    server = get_object_or_404(servers_with_programs(), pk=pk)
    named = server.program_releases.filter(program=request.GET.get("program", ""))
    initial = named.values("program", "minimum", "recommended").first()
    form = ProgramReleaseForm(posted(request), initial=initial)
    if request.method == "POST" and form.is_valid():
        save = partial(actions.program_release_save, by=request.user, server=server)
        form.tried(save)
        if not form.errors:
            return done(request, "Saved.", "program-releases")
    return form_page(request, "insight/release.html", form, server=server)


@require_POST
@administrators_only
def program_ask(request: WebRequest, pk: int) -> HttpResponse:
    """Send one mail to each of the people that the page showed, if still due."""
    server = get_object_or_404(servers_with_programs(), pk=pk)
    shown = set(request.POST.getlist("user"))
    send = partial(
        actions.program_mails_send, by=request.user, server=server, users=shown
    )
    said = "Mails are sent within minutes. Who was asked is shown here."
    return acted(request, send, "program-releases", said=said)


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
def advice_list(request: WebRequest) -> HttpResponseBase:
    """List the clients that slow a server down, with what to do about each."""
    context = {"servers": clients_overviews()}
    return list_answer(request, ADVISED_CLIENTS, "insight/clients.html", context)


@require_safe_or_POST
@administrators_only
def advice_rule(request: WebRequest, pk: int) -> HttpResponse:
    """Change when clients and protections of a server get advice."""
    server = get_object_or_404(servers_with_clients(), pk=pk)
    initial = model_to_dict(AdviceRule.of(server), AdviceRuleForm.base_fields)
    form = AdviceRuleForm(posted(request), initial=initial)
    if form.tried(actions.advice_rule_save, by=request.user, server=server):
        return done(request, "Saved.", "advice-list")
    return form_page(request, "insight/advice_rule.html", form, server=server)


@require_safe
@administrators_only
def configuration_list(request: WebRequest) -> HttpResponse:
    """Show how each server is set up, and what the rules would change."""
    found = configurations_visible_to(request.user)
    read = Action(
        label="Read now", url=reverse("configuration-read"), is_post=True, icon="search"
    )
    context = {"servers": [overview_of(each) for each in found], "actions": [read]}
    return render(request, "insight/configurations.html", context)


@require_POST
@administrators_only
def configuration_read(request: WebRequest) -> HttpResponse:
    """Request a reading of each server's configuration."""
    actions.configurations_read(by=request.user)
    said = "A worker reads them. Reload this page in a moment."
    return done(request, said, "configuration-list")
