"""Pages of moves of a template's volume."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST
from django.views.decorators.vary import vary_on_headers

from provisioner.catalog.queries import templates_visible_to
from provisioner.engine.overviews import operation_overview
from provisioner.moves import actions
from provisioner.moves.forms import MoveForm
from provisioner.moves.previews import move_preview
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.posting import acted, form_page, require_safe_or_POST


@require_safe_or_POST
@vary_on_headers("HX-Request")
@administrators_only
def template_move(request: WebRequest, pk: int) -> HttpResponse:
    """Show what a move means, or how far it is; request one."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    preview = move_preview(template)
    form = MoveForm(posted(request), preview=preview)
    if form.tried(actions.template_move, by=request.user, template=template):
        return redirect("template-move", pk)
    operation = preview.operation
    is_part = request.htmx and not form.is_bound
    return form_page(
        request,
        "moves/_move.html" if is_part else "moves/move.html",
        form,
        template=template,
        preview=preview,
        progress=operation_overview(operation) if operation is not None else None,
    )


@require_POST
@administrators_only
def template_move_stop(request: WebRequest, pk: int) -> HttpResponse:
    """Stop a move; the volume stays where it is."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    act = partial(actions.template_move_stop, by=request.user, template=template)
    return acted(request, act, "template-move", pk)


@require_POST
@administrators_only
def template_move_pause(request: WebRequest, pk: int) -> HttpResponse:
    """Pause a move; ONTAP keeps what is replicated."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    act = partial(actions.template_move_pause, by=request.user, template=template)
    return acted(request, act, "template-move", pk)


@require_POST
@administrators_only
def template_move_resume(request: WebRequest, pk: int) -> HttpResponse:
    """Go on with a move that was paused."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    act = partial(actions.template_move_resume, by=request.user, template=template)
    return acted(request, act, "template-move", pk)
