"""Pages of mirrors: what is at another site, and what is under way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRefresh

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors import actions, overviews
from provisioner.mirrors.forms import (
    MirrorChangeForm,
    MirrorCreateForm,
    MirrorTemplateForm,
    MirrorTransferForm,
)
from provisioner.mirrors.lists import MIRRORS, snapshots_of
from provisioner.mirrors.models import Mirror, MirrorOperation
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.web.http import WebRequest, administrators_only, digest, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST

_FAILED = {
    MirrorOperation.CREATE: "The mirror could not be created",
    MirrorOperation.CHANGE: "The relationship's policy could not be changed",
    MirrorOperation.TRANSFER: "The last transfer failed",
    MirrorOperation.DELETE: "The mirror could not be deleted",
}


@require_safe
def mirror_list(request: WebRequest) -> HttpResponseBase:
    """List the mirrors of all templates."""
    may_create = permissions.can_manage_templates(request.user)
    return list_answer(
        request, MIRRORS, "mirrors/list.html", {"may_create": may_create}
    )


@require_safe_or_POST
@administrators_only
def mirror_create(request: WebRequest) -> HttpResponse:
    """Choose a template, then mirror it to one of the sites that fit."""
    is_chosen = "template" in request.GET
    chosen = MirrorTemplateForm(request.GET if is_chosen else None)
    if not chosen.is_valid():
        status = 422 if chosen.errors else 200
        page = "mirrors/choose_template.html"
        return render(request, page, {"form": chosen}, status=status)
    template = chosen.cleaned_data["template"]
    form = MirrorCreateForm(posted(request), template=template)
    if mirror := form.tried(actions.mirror_create, by=request.user, template=template):
        return redirect("mirror-detail", mirror.pk)
    return form_page(request, "mirrors/create.html", form, template=template)


@require_safe
def mirror_detail(request: WebRequest, pk: int) -> HttpResponseBase:
    """Show a mirror, what is under way, its snapshots and operations."""
    mirror = get_object_or_404(overviews.mirrors_ever(request.user), pk=pk)
    [overview] = overviews.overviews_of([mirror])
    operations = overviews.latest_operations(request.user, mirror)
    context = {
        "mirror": mirror,
        "overview": overview,
        "operations": operations,
        "progress": _progress(operations),
        "actions": list(_actions(request.user, mirror)),
        "notices": list(_notices(request.user, mirror, operations)),
    }
    return list_answer(request, snapshots_of(mirror), "mirrors/detail.html", context)


@require_safe
@vary_on_headers("HX-Request")
def mirror_progress(request: WebRequest, pk: int) -> HttpResponse:
    """Give htmx the progress of what is under way, and the whole page once it ended."""
    mirror = get_object_or_404(overviews.mirrors_ever(request.user), pk=pk)
    if not request.htmx:
        return redirect("mirror-detail", pk)
    progress = _progress(overviews.latest_operations(request.user, mirror))
    if progress is None:
        return HttpResponseClientRefresh()
    has_changed = request.GET.get("said") != digest(progress.announcement)
    context = {"mirror": mirror, "progress": progress, "has_changed": has_changed}
    return render(request, "mirrors/_progress.html", context)


@require_safe_or_POST
@administrators_only
def mirror_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change when a mirror's transfers start, and how fast they may be."""
    mirror = _mirror(request, pk)
    form = MirrorChangeForm(
        posted(request), initial=MirrorChangeForm.initial_of(mirror)
    )
    if form.tried(actions.mirror_update, by=request.user, mirror=mirror):
        return done(request, "Saved.", "mirror-detail", pk)
    return form_page(request, "mirrors/edit.html", form, mirror=mirror)


@require_safe_or_POST
def mirror_transfer(request: WebRequest, pk: int) -> HttpResponse:
    """Choose a snapshot that the mirror lacks, and transfer it."""
    mirror = _mirror(request, pk)
    if not permissions.can_change_template(request.user, mirror.template):
        raise PermissionDenied(
            "This page is for the template's owner and administrators."
        )
    form = MirrorTransferForm(posted(request), mirror=mirror)
    if form.tried(actions.mirror_transfer, by=request.user, mirror=mirror):
        return redirect("mirror-detail", pk)
    return form_page(request, "mirrors/transfer.html", form, mirror=mirror)


@require_POST
@administrators_only
def mirror_retry(request: WebRequest, pk: int) -> HttpResponse:
    """Try again what failed."""
    mirror = _mirror(request, pk)
    act = partial(actions.mirror_retry, by=request.user, mirror=mirror)
    return acted(request, act, "mirror-detail", pk)


@require_safe_or_POST
@administrators_only
def mirror_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Show what a deletion removes and what prevents it; delete when confirmed."""
    mirror = _mirror(request, pk)
    refusal, status = "", 200
    if request.method == "POST":
        try:
            actions.mirror_delete(by=request.user, mirror=mirror)
        except ActionRefused as error:
            refusal, status = error.sentence, 409
        else:
            return redirect("mirror-detail", pk)
    [overview] = overviews.overviews_of([mirror])
    context = {
        "mirror": mirror,
        "overview": overview,
        "clones": overviews.clones_of(mirror),
        "refusal": refusal,
    }
    return render(request, "mirrors/delete.html", context, status=status)


def _mirror(request: WebRequest, pk: int) -> Mirror:
    return get_object_or_404(mirrors_visible_to(request.user), pk=pk)


def _progress(operations: list[Operation]) -> OperationOverview | None:
    """Return the latest operation with its steps if it is under way."""
    if not operations or operations[0].state != Operation.State.RUNNING:
        return None
    return operation_overview(operations[0])


def _actions(user: User, mirror: Mirror) -> Iterator[Action]:
    """Yield what the reader can do with a mirror, most common first."""
    if mirror.state == Mirror.State.DELETED:
        return
    is_at_rest = not mirror.is_moving
    may_transfer = permissions.can_change_template(user, mirror.template)
    if is_at_rest and may_transfer and mirror.relationship_uuid:
        url = reverse("mirror-transfer", args=[mirror.pk])
        yield Action(label="Transfer now…", url=url)
    if not permissions.can_manage_templates(user):
        return
    yield Action(label="Edit", url=reverse("mirror-edit", args=[mirror.pk]))
    if is_at_rest:
        url = reverse("mirror-delete", args=[mirror.pk])
        yield Action(label="Delete…", url=url, look="quiet-danger")


def _notices(
    user: User, mirror: Mirror, operations: list[Operation]
) -> Iterator[Notice]:
    """Yield what the reader should know about a mirror, most important first."""
    if mirror.state == Mirror.State.DELETED:
        yield Notice(
            level=Level.INFO,
            title="This mirror was deleted",
            texts=("Its operations and their logs are kept.",),
        )
        return
    if mirror.state == Mirror.State.FAILED:
        yield _failure(user, mirror, operations)
    if mirror.trouble and not mirror.is_moving:
        is_ready = mirror.state == Mirror.State.READY
        yield Notice(
            level=Level.WARNING,
            title="The mirror needs attention in ONTAP",
            texts=(mirror.trouble,),
            actions=_retry(user, mirror) if is_ready else (),
        )
    if mirror.template.is_archived:
        sentence = "The template is archived: nothing is transferred by itself."
        yield Notice(level=Level.INFO, texts=(sentence,))


def _failure(user: User, mirror: Mirror, operations: list[Operation]) -> Notice:
    kind = MirrorOperation(operations[0].kind if operations else MirrorOperation.CREATE)
    texts = [mirror.status_message]
    if kind == MirrorOperation.TRANSFER and mirror.start == Mirror.Start.AT_ONCE:
        texts.append("It is tried again every ten minutes.")
    actions = _retry(user, mirror)
    if actions and kind == MirrorOperation.DELETE:
        url = reverse("mirror-delete", args=[mirror.pk])
        actions = (Action(label="Delete it again…", url=url),)
    return Notice(
        level=Level.ERROR,
        title=_FAILED[kind],
        texts=tuple(texts),
        actions=actions,
        is_urgent=True,
    )


def _retry(user: User, mirror: Mirror) -> tuple[Action, ...]:
    """Return the action that tries again, for those who may."""
    if not permissions.can_manage_templates(user):
        return ()
    url = reverse("mirror-retry", args=[mirror.pk])
    return (Action(label="Retry", url=url, is_post=True),)
