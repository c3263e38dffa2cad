"""Pages of sandboxes: what there is, one of them, and what they need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.accounts.models import User
from provisioner.engine.overviews import UNDER_WAY, under_way
from provisioner.engine.queries import latest_operations
from provisioner.sandboxes.actions import creating, describing, hosts, keeping, policies
from provisioner.sandboxes.forms import (
    ExtendForm,
    P4dVersionForm,
    RetireForm,
    SandboxForm,
    SandboxHostForm,
    SandboxPolicyForm,
    ServerVolumesForm,
)
from provisioner.sandboxes.lists import SANDBOXES
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPolicy,
    ServerVolumes,
)
from provisioner.sandboxes.overviews import (
    limits_text,
    missing_for_sandboxes,
    setup_overview,
)
from provisioner.sandboxes.queries import (
    can_change_sandbox,
    is_served,
    may_have_sandboxes,
    policy_of,
    sandboxes_ever,
)
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, polled, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


@require_safe
def sandbox_list(request: WebRequest) -> HttpResponseBase:
    """List the sandboxes that the reader may see."""
    context = {"may_create": may_have_sandboxes(request.user)}
    return list_answer(request, SANDBOXES, "sandboxes/list.html", context)


@require_safe_or_POST
def sandbox_create(request: WebRequest) -> HttpResponse:
    """Request a sandbox; before that, say what is missing for one."""
    policy = policy_of(request.user)
    longest = policy.longest_hours if policy is not None else 1
    form = SandboxForm(posted(request), longest_hours=longest)
    if sandbox := form.tried(creating.sandbox_create, by=request.user):
        return redirect("sandbox-detail", sandbox.pk)
    context = {
        "may_create": policy is not None,
        "limits": limits_text(request.user, policy) if policy is not None else "",
        "missing": missing_for_sandboxes(),
    }
    return form_page(request, "sandboxes/create.html", form, **context)


@require_safe
def sandbox_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a sandbox: how to use it, what it is a copy of, what was switched off."""
    sandbox = _sandbox(request, pk)
    operations = latest_operations(request.user, sandbox.subject_id)
    context = {
        "sandbox": sandbox,
        "volumes": sandbox.volumes.prefetch_related("places"),
        "operations": operations,
        "progress": under_way(operations),
        "poll": reverse("sandbox-progress", args=[pk]),
        "actions": list(_actions(request.user, sandbox)),
        "notices": list(_notices(request.user, sandbox)),
        "is_usable": sandbox.state == Sandbox.State.READY,
        "is_over": sandbox.state == Sandbox.State.RETIRED,
    }
    return render(request, "sandboxes/detail.html", context)


@require_safe
@vary_on_headers("HX-Request")
def sandbox_progress(request: WebRequest, pk: int) -> HttpResponse:
    """Give htmx the progress of what is under way, and the whole page once it ended."""
    sandbox = _sandbox(request, pk)
    if not request.htmx:
        return redirect("sandbox-detail", pk)
    operations = latest_operations(request.user, sandbox.subject_id)
    return polled(request, UNDER_WAY, under_way(operations))


@require_safe_or_POST
def sandbox_extend(request: WebRequest, pk: int) -> HttpResponse:
    """Let a sandbox live longer."""
    sandbox = _sandbox(request, pk)
    form = ExtendForm(posted(request))
    if form.tried(keeping.sandbox_extend, by=request.user, sandbox=sandbox):
        return done(request, "Extended.", "sandbox-detail", pk)
    return form_page(request, "sandboxes/extend.html", form, sandbox=sandbox)


@require_safe_or_POST
def sandbox_retire(request: WebRequest, pk: int) -> HttpResponse:
    """Say what goes with a sandbox, and retire it."""
    sandbox = _sandbox(request, pk)
    form = RetireForm(posted(request))
    if form.tried(keeping.sandbox_retire, by=request.user, sandbox=sandbox):
        return redirect("sandbox-detail", pk)
    context = {"sandbox": sandbox, "is_served": is_served(sandbox.host)}
    return form_page(request, "sandboxes/retire.html", form, **context)


@require_POST
def sandbox_start(request: WebRequest, pk: int) -> HttpResponse:
    """Start the server of a stopped sandbox again."""
    act = partial(keeping.sandbox_start, by=request.user, sandbox=_sandbox(request, pk))
    return acted(request, act, "sandbox-detail", pk)


@require_POST
def sandbox_retry(request: WebRequest, pk: int) -> HttpResponse:
    """Try again what failed."""
    act = partial(keeping.sandbox_retry, by=request.user, sandbox=_sandbox(request, pk))
    return acted(request, act, "sandbox-detail", pk)


# --- what sandboxes need


@require_safe
@administrators_only
def sandbox_setup(request: WebRequest) -> HttpResponse:
    """Show servers with their volumes, versions, hosts and policies."""
    return render(request, "sandboxes/setup.html", {"setup": setup_overview()})


@require_safe_or_POST
@administrators_only
def server_volumes(request: WebRequest, pk: int) -> HttpResponse:
    """Say which volumes a server is on."""
    server = get_object_or_404(PerforceServer, pk=pk)
    volumes = ServerVolumes.objects.filter(server=server).first()
    form = ServerVolumesForm(
        posted(request), initial=ServerVolumesForm.initial_of(volumes)
    )
    if form.tried(describing.server_volumes_save, by=request.user, server=server):
        return done(request, "Saved.", "sandbox-setup")
    return form_page(request, "sandboxes/volumes.html", form, server=server)


@require_safe_or_POST
@administrators_only
def p4d_version_create(request: WebRequest) -> HttpResponse:
    """Name the path of a release of p4d."""
    form = P4dVersionForm(posted(request))
    if form.tried(hosts.p4d_version_save, by=request.user):
        return done(request, "Saved.", "sandbox-setup")
    return form_page(request, "sandboxes/version.html", form)


@require_POST
@administrators_only
def p4d_version_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Stop offering a release."""
    version = get_object_or_404(P4dVersion, pk=pk)
    act = partial(hosts.p4d_version_delete, by=request.user, version=version)
    return acted(request, act, "sandbox-setup", said="Deleted.")


@require_safe_or_POST
@administrators_only
def sandbox_host_create(request: WebRequest) -> HttpResponse:
    """Make a host for sandboxes, or change one by its name."""
    form = SandboxHostForm(posted(request))
    if form.tried(hosts.sandbox_host_save, by=request.user):
        return done(request, "Saved.", "sandbox-setup")
    return form_page(request, "sandboxes/host.html", form)


@require_POST
@administrators_only
def sandbox_host_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Remove a host of sandboxes."""
    host = get_object_or_404(SandboxHost, pk=pk)
    act = partial(hosts.sandbox_host_delete, by=request.user, host=host)
    return acted(request, act, "sandbox-setup", said="Deleted.")


@require_safe_or_POST
@administrators_only
def sandbox_policy_create(request: WebRequest) -> HttpResponse:
    """Set the sandbox policy of a team."""
    form = SandboxPolicyForm(posted(request))
    if form.tried(policies.sandbox_policy_save, by=request.user):
        return done(request, "Saved.", "sandbox-setup")
    return form_page(request, "sandboxes/policy.html", form)


@require_POST
@administrators_only
def sandbox_policy_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Delete the sandbox policy of a team."""
    policy = get_object_or_404(SandboxPolicy.objects.select_related("team"), pk=pk)
    act = partial(policies.sandbox_policy_delete, by=request.user, policy=policy)
    return acted(request, act, "sandbox-setup", said="Deleted.")


def _sandbox(request: WebRequest, pk: int) -> Sandbox:
    return get_object_or_404(sandboxes_ever(request.user), pk=pk)


def _actions(user: User, sandbox: Sandbox) -> Iterator[Action]:
    """Yield what the reader can do with a sandbox."""
    ends = (Sandbox.State.RETIRING, Sandbox.State.RETIRED)
    if sandbox.state in ends or not can_change_sandbox(user, sandbox):
        return
    yield Action(label="Extend…", url=reverse("sandbox-extend", args=[sandbox.pk]))
    url = reverse("sandbox-retire", args=[sandbox.pk])
    yield Action(label="Retire…", url=url, look="quiet-danger")


def _notices(user: User, sandbox: Sandbox) -> Iterator[Notice]:
    may_change = can_change_sandbox(user, sandbox)
    if sandbox.was_left_at_host:
        yield Notice(
            level=Level.WARNING,
            title="This sandbox was retired without its host",
            texts=(sandbox.status_message,),
        )
    elif sandbox.state != Sandbox.State.RETIRED and not is_served(sandbox.host):
        yield _unserved(sandbox, may_change=may_change)
    if sandbox.state == Sandbox.State.STOPPED:
        url = reverse("sandbox-start", args=[sandbox.pk])
        yield Notice(
            level=Level.ERROR,
            title="Its server does not run",
            texts=(sandbox.status_message,),
            actions=(Action(label="Start again", url=url, is_post=True),) * may_change,
            is_urgent=True,
        )
    if sandbox.state == Sandbox.State.RETIRED and not sandbox.was_left_at_host:
        yield Notice(
            level=Level.INFO,
            title="This sandbox was retired",
            texts=("Nothing of it is left. Its operations and their logs are kept.",),
        )
    if sandbox.state == Sandbox.State.FAILED:
        url = reverse("sandbox-retry", args=[sandbox.pk])
        yield Notice(
            level=Level.ERROR,
            title="The last operation failed",
            texts=(sandbox.status_message,),
            actions=(Action(label="Retry", url=url, is_post=True),) * may_change,
            is_urgent=True,
        )
    if sandbox.consistency == Sandbox.Consistency.ORDERED:
        yield Notice(
            level=Level.WARNING,
            title="Its volumes were copied at different moments",
            texts=(
                "ONTAP could not put them into a consistency group. What was submitted "
                "meanwhile may be there in part.",
            ),
        )


def _unserved(sandbox: Sandbox, *, may_change: bool) -> Notice:
    """Say that nobody hears of a sandbox's host."""
    url = reverse("sandbox-retire", args=[sandbox.pk])
    return Notice(
        level=Level.WARNING,
        title=f"No worker at {sandbox.host.name} has reported lately",
        texts=(
            "Whether its server runs is not known, and what the host has to do waits. "
            f"Start the worker of the queue {sandbox.host.queue}. If the host is lost, "
            "retire the sandbox without it.",
        ),
        actions=(Action(label="Retire…", url=url),) * may_change,
    )
