"""Pages of a template's life: rename, hand over, archive, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from provisioner.catalog.actions import lifecycle
from provisioner.catalog.dependents import goes_with, needed_by
from provisioner.catalog.forms.templates import (
    OptionalReasonForm,
    TemplateOwnerForm,
    TemplateRenameForm,
)
from provisioner.catalog.models import Template
from provisioner.catalog.queries import templates_visible_to
from provisioner.catalog.views.guards import require_may_change
from provisioner.engine.models import Operation
from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


def _template_to_change(request: WebRequest, pk: int) -> Template:
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    require_may_change(request.user, template)
    return template


def _changed(
    request: WebRequest,
    template: Template,
    form: AskingForm,
    *,
    change: Callable[..., Template | Operation],
    page: str,
    said: str,
    **context: Any,
) -> HttpResponse:
    """Apply a form and show the template, or the form with its errors."""
    if form.tried(change, by=request.user, template=template):
        return done(request, said, "template-detail", template.pk)
    return form_page(request, page, form, template=template, **context)


@require_safe_or_POST
def template_rename(request: WebRequest, pk: int) -> HttpResponse:
    """Change the title of a template."""
    template = _template_to_change(request, pk)
    return _changed(
        request,
        template,
        TemplateRenameForm(posted(request), initial={"title": template.title}),
        change=lifecycle.template_rename,
        page="catalog/rename.html",
        said="Saved.",
    )


@require_safe_or_POST
def template_owner(request: WebRequest, pk: int) -> HttpResponse:
    """Hand a template over to another owner."""
    template = _template_to_change(request, pk)
    return _changed(
        request,
        template,
        TemplateOwnerForm(posted(request), initial={"owner": template.owner_id}),
        change=lifecycle.template_hand_over,
        page="catalog/owner.html",
        said="The owner was changed.",
    )


@require_safe_or_POST
def template_archive(request: WebRequest, pk: int) -> HttpResponse:
    """Explain archiving; archive the template when confirmed."""
    return _changed(
        request,
        _template_to_change(request, pk),
        OptionalReasonForm(posted(request)),
        change=lifecycle.template_archive,
        page="catalog/archive.html",
        said="Archived. Existing workspaces stay.",
    )


@require_POST
def template_unarchive(request: WebRequest, pk: int) -> HttpResponse:
    """Offer an archived template again."""
    template = _template_to_change(request, pk)
    act = partial(lifecycle.template_unarchive, by=request.user, template=template)
    said = "Unarchived. It gives new workspaces again."
    return acted(request, act, "template-detail", pk, said=said)


@require_safe_or_POST
@administrators_only
def template_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Show what needs a template, and what goes with it; delete it when confirmed."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    return _changed(
        request,
        template,
        OptionalReasonForm(posted(request)),
        change=lifecycle.template_delete,
        page="catalog/delete.html",
        said="Being deleted.",
        needed_by=needed_by(template),
        goes_with=goes_with(template),
        snapshots_count=template.snapshots.there().count(),
    )
