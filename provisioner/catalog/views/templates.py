"""Pages of templates: what can be cloned and, for administrators, how it is made."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import retarget

from provisioner.catalog.actions import checks, templates
from provisioner.catalog.actions.checks import template_preview
from provisioner.catalog.actions.templates import (
    template_pin,
    template_unpin,
    template_update,
)
from provisioner.catalog.checks import Check
from provisioner.catalog.forms.templates import (
    TemplateBuildForm,
    TemplateCreateForm,
    TemplateDefinitionForm,
)
from provisioner.catalog.overviews import find_template_overview
from provisioner.catalog.queries import templates_to_choose_from, templates_visible_to
from provisioner.catalog.template_page import TemplatePage
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.sizes import size_text
from provisioner.web.http import (
    WebRequest,
    administrators_only,
    came_from,
    digest,
    posted,
)
from provisioner.web.notices import Level, Notice
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.web.templatetags.cloneyard import count


@require_safe
@vary_on_headers("HX-Request")
def template_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a template; htmx gets its build's progress, and all of it once ended.

    Its mirrors, pools and build times come once the page is there, or with `more`.
    """
    overview = find_template_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    context: dict[str, object] = {"overview": overview, "template": overview.template}
    asks_for_more = "more" in request.GET
    if request.htmx and overview.running is not None and not asks_for_more:
        context["is_update"] = True
        context["has_changed"] = request.GET.get("said") != digest(
            overview.announcement
        )
        return render(request, "catalog/_progress.html", context)
    context["page"] = TemplatePage(
        overview=overview,
        user=request.user,
        shows_all_snapshots=request.GET.get("snapshots") == "all",
        shows_more=asks_for_more,
    )
    if request.htmx and asks_for_more:
        return render(request, "catalog/_more.html", context)
    if not request.htmx:
        return render(request, "catalog/detail.html", context)
    context["is_update"] = True
    return retarget(render(request, "catalog/_template.html", context), "#template")


@require_safe_or_POST
@administrators_only
def template_create(request: WebRequest) -> HttpResponse:
    """Define a template."""
    form = TemplateCreateForm(posted(request))
    if request.POST.get("do") == "check":
        check = form.tried(template_preview, by=request.user)
        notices = _notices_of(check)
        return form_page(request, "catalog/create.html", form, notices=notices)
    if template := form.tried(templates.template_create, by=request.user):
        said = f"{template.name} is defined. Build it to publish a snapshot."
        return done(request, said, "template-detail", template.pk)
    return form_page(request, "catalog/create.html", form)


def _notices_of(check: Check | None) -> list[Notice]:
    """Return the result of a check of a definition that was not saved, if any."""
    if check is None:
        return []
    is_good = not (check.remarks or check.error)
    title = "No remarks" if is_good else "It could not be checked"
    if check.remarks:
        title = count(len(check.remarks), "remark", "remarks")
    texts = [check.error] if check.error else []
    if check.survey:
        files = count(check.survey.files, "file", "files")
        of = count(check.survey.depot_files, "file", "files")
        size = size_text(check.survey.size_bytes)
        texts.append(f"{files}, {size}, of {of} in the depots.")
    notice = Notice(
        level=Level.SUCCESS if is_good else Level.WARNING,
        title=title,
        texts=(*texts, "Remarks do not block anything. Nothing was saved."),
        items=tuple(remark.sentence for remark in check.remarks),
    )
    return [notice]


@require_safe_or_POST
@administrators_only
def template_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a template's definition."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    form = TemplateDefinitionForm(
        posted(request), initial=TemplateDefinitionForm.initial_of(template)
    )
    context: dict[str, object] = {"template": template}
    if request.POST.get("do") == "check":
        by, site = request.user, template.site
        check = form.tried(template_preview, by=by, site=site)
        context["notices"] = _notices_of(check)
    elif form.tried(template_update, by=request.user, template=template):
        said = "Saved. It applies from the next build on, a new size at once."
        return done(request, said, "template-detail", pk)
    return form_page(request, "catalog/edit.html", form, **context)


@require_POST
@administrators_only
def template_check(request: WebRequest, pk: int) -> HttpResponse:
    """Check a template's definition now."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    checks.template_check(by=request.user, template=template)
    return redirect("template-detail", pk)


@require_safe_or_POST
@administrators_only
def template_build(request: WebRequest, pk: int) -> HttpResponse:
    """Build a template at a change, by default the newest."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    form = TemplateBuildForm(posted(request))
    if form.tried(templates.template_build, by=request.user, template=template):
        return redirect("template-detail", pk)
    return form_page(request, "catalog/build.html", form, template=template)


@require_safe_or_POST
@administrators_only
def template_build_stop(request: WebRequest, pk: int) -> HttpResponse:
    """Explain what stopping the build does; stop it when confirmed."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    refusal, status = "", 200
    if request.method == "POST":
        try:
            templates.template_build_stop(by=request.user, template=template)
        except ActionRefused as error:
            refusal, status = error.sentence, 409
        else:
            return done(request, "The build was stopped.", "template-detail", pk)
    context = {"template": template, "refusal": refusal}
    return render(request, "catalog/build_stop.html", context, status=status)


@require_POST
def pin(request: WebRequest, pk: int) -> HttpResponse:
    """Pin a template, or with `do` "unpin" remove the pin; then go back."""
    template = get_object_or_404(templates_to_choose_from(request.user), pk=pk)
    do = template_unpin if request.POST.get("do") == "unpin" else template_pin
    act = partial(do, by=request.user, template=template)
    return acted(request, act, came_from(request))
