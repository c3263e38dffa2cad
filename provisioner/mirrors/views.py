"""Pages of mirrors: what is at another site, and what is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.engine.overviews import UNDER_WAY, under_way
from provisioner.engine.queries import latest_operations
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors import actions, overviews, previews
from provisioner.mirrors.forms import (
    MirrorChangeForm,
    MirrorCreateForm,
    MirrorTemplateForm,
    MirrorTransferForm,
)
from provisioner.mirrors.lists import MIRRORS, snapshots_of
from provisioner.mirrors.models import ENDED, Mirror, MirrorOperation
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.web.http import WebRequest, administrators_only, polled, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST

_FAILED = {
    MirrorOperation.CREATE: "The mirror could not be created",
    MirrorOperation.CHANGE: "The relationship's policy could not be changed",
    MirrorOperation.TRANSFER: "The last transfer failed",
    MirrorOperation.DELETE: "The mirror could not be deleted",
    MirrorOperation.PROMOTE: "The mirror could not be promoted",
    MirrorOperation.REESTABLISH: "The former home could not be re-established",
    MirrorOperation.GIVE_UP: "The former home could not be given up",
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
    operations = latest_operations(request.user, mirror.subject_id)
    context = {
        "mirror": mirror,
        "overview": overview,
        "operations": operations,
        "progress": under_way(operations),
        "poll": reverse("mirror-progress", args=[pk]),
        "actions": list(_actions(request.user, mirror)),
        "notices": [
            *_notices(request.user, mirror, operations),
            *_remarks(overview),
        ],
    }
    return list_answer(request, snapshots_of(mirror), "mirrors/detail.html", context)


@require_safe
@vary_on_headers("HX-Request")
def mirror_progress(request: WebRequest, pk: int) -> HttpResponse:
    """Give htmx the progress of what is under way, and the whole page once it ended."""
    mirror = get_object_or_404(overviews.mirrors_ever(request.user), pk=pk)
    if not request.htmx:
        return redirect("mirror-detail", pk)
    operations = latest_operations(request.user, mirror.subject_id)
    return polled(request, UNDER_WAY, under_way(operations))


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

    def preview(mirror: Mirror) -> dict[str, Any]:
        [overview] = overviews.overviews_of([mirror])
        return {"overview": overview, "clones": overviews.clones_of(mirror)}

    return _confirmed(request, pk, actions.mirror_delete, "delete", preview)


@require_safe_or_POST
@administrators_only
def mirror_promote(request: WebRequest, pk: int) -> HttpResponse:
    """Show what a promotion leaves behind, and whom it affects; promote."""

    def preview(mirror: Mirror) -> dict[str, Any]:
        return {"preview": previews.promotion_preview(mirror)}

    return _confirmed(request, pk, actions.mirror_promote, "promote", preview)


@require_safe_or_POST
@administrators_only
def mirror_reestablish(request: WebRequest, pk: int) -> HttpResponse:
    """Show what a former home loses when it follows the new one; re-establish it."""

    def preview(mirror: Mirror) -> dict[str, Any]:
        return {"preview": previews.way_back_preview(mirror)}

    return _confirmed(request, pk, actions.mirror_reestablish, "reestablish", preview)


@require_safe_or_POST
@administrators_only
def mirror_give_up(request: WebRequest, pk: int) -> HttpResponse:
    """Show what is left of a former home that is given up; give it up."""

    def preview(mirror: Mirror) -> dict[str, Any]:
        number, named = previews.clones_at(mirror.template, mirror.site)
        return {"workspaces": number, "named": named}

    return _confirmed(request, pk, actions.mirror_give_up, "give_up", preview)


def _confirmed(
    request: WebRequest,
    pk: int,
    act: Callable[..., object],
    page: str,
    preview: Callable[[Mirror], dict[str, Any]],
) -> HttpResponse:
    """Show the preview of an action on a mirror; act when it is confirmed."""
    mirror = _mirror(request, pk)
    refusal, status = "", 200
    if request.method == "POST":
        try:
            act(by=request.user, mirror=mirror)
        except ActionRefused as error:
            refusal, status = error.sentence, 409
        else:
            return redirect("mirror-detail", pk)
    context = {"mirror": mirror, "refusal": refusal, **preview(mirror)}
    return render(request, f"mirrors/{page}.html", context, status=status)


def _mirror(request: WebRequest, pk: int) -> Mirror:
    return get_object_or_404(mirrors_visible_to(request.user), pk=pk)


def _actions(user: User, mirror: Mirror) -> Iterator[Action]:
    """Yield what the reader can do with a mirror, most common first."""
    if mirror.state in ENDED:
        return
    is_at_rest = not mirror.is_moving
    if mirror.is_former_home:
        if is_at_rest and permissions.can_manage_templates(user):
            yield from _actions_on_former_home(mirror)
        return
    may_transfer = permissions.can_change_template(user, mirror.template)
    if is_at_rest and may_transfer and mirror.relationship_uuid:
        url = reverse("mirror-transfer", args=[mirror.pk])
        yield Action(label="Transfer now…", url=url)
    if not permissions.can_manage_templates(user):
        return
    yield Action(label="Edit", url=reverse("mirror-edit", args=[mirror.pk]))
    if is_at_rest:
        url = reverse("mirror-promote", args=[mirror.pk])
        yield Action(label="Promote…", url=url)
        yield _deletion(mirror)


def _actions_on_former_home(mirror: Mirror) -> Iterator[Action]:
    """Yield what an administrator can do with a template's former home."""
    if mirror.state == Mirror.State.GIVEN_UP:
        yield _deletion(mirror)
        return
    url = reverse("mirror-reestablish", args=[mirror.pk])
    yield Action(label="Re-establish…", url=url)
    url = reverse("mirror-give-up", args=[mirror.pk])
    yield Action(label="Give up…", url=url, look="quiet-danger")


def _deletion(mirror: Mirror) -> Action:
    url = reverse("mirror-delete", args=[mirror.pk])
    return Action(label="Delete…", url=url, look="quiet-danger")


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
    if mirror.state == Mirror.State.PROMOTED:
        sentence = f"{mirror.site.name} became the home of {mirror.template.name}."
        yield Notice(level=Level.INFO, texts=(sentence,))
        return
    if mirror.status_code:
        yield _failure(user, mirror, operations)
    if mirror.state == Mirror.State.FORMER:
        yield Notice(
            level=Level.INFO,
            title=f"{mirror.site.name} was the home of the template",
            texts=(
                f"It is built at {mirror.template.site.name} now. Workspaces here "
                "stay. No new ones are cloned here until it is re-established.",
            ),
        )
    if mirror.trouble and not mirror.is_moving:
        is_ready = mirror.state == Mirror.State.READY
        yield Notice(
            level=Level.WARNING,
            title="The mirror needs attention in ONTAP",
            texts=(mirror.trouble,),
            actions=_retry(user, mirror) if is_ready else (),
        )
    yield from _filling(mirror)
    if mirror.template.is_archived:
        sentence = "The template is archived: nothing is transferred by itself."
        yield Notice(level=Level.INFO, texts=(sentence,))


def _filling(mirror: Mirror) -> Iterator[Notice]:
    fullness = mirror.fullness
    if fullness is None or not fullness.is_short or not mirror.gets_snapshots:
        return
    yield Notice(
        level=Level.ERROR if fullness.is_urgent else Level.WARNING,
        title=fullness.title,
        texts=(
            f"It is {fullness.sentence}",
            f"Without room transfers fail. {mirror.way_to_room}",
        ),
    )


def _remarks(overview: overviews.MirrorOverview) -> Iterator[Notice]:
    if overview.remark:
        yield Notice(level=Level.WARNING, texts=(overview.remark,))


def _failure(user: User, mirror: Mirror, operations: list[Operation]) -> Notice:
    kind = MirrorOperation(operations[0].kind if operations else MirrorOperation.CREATE)
    texts = [mirror.status_message]
    if kind == MirrorOperation.TRANSFER and mirror.start == Mirror.Start.AT_ONCE:
        texts.append("Cloneyard tries again every ten minutes.")
    actions = () if mirror.is_former_home else _retry(user, mirror)
    if actions and kind == MirrorOperation.PROMOTE:
        url = reverse("mirror-promote", args=[mirror.pk])
        actions = (Action(label="Promote it again…", url=url),)
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
