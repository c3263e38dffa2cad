"""Pages of warm pools: members, costs and savings."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from provisioner.pools import actions, queries
from provisioner.pools.forms import PoolChangeForm, PoolCreateForm
from provisioner.pools.lists import members_of
from provisioner.pools.models import Pool
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import done, form_page, require_safe_or_POST
from provisioner.web.templatetags.cloneyard import ago


@require_safe_or_POST
@administrators_only
def pool_create(request: WebRequest) -> HttpResponse:
    """Create a pool; sweeps fill it."""
    form = PoolCreateForm(posted(request), initial=PoolCreateForm.initial_of(Pool()))
    if pool := form.tried(actions.pool_create, by=request.user):
        said = "Created. It is filled after all requests."
        return done(request, said, "pool-detail", pool.pk)
    return form_page(request, "pools/create.html", form)


@require_safe
@administrators_only
def pool_detail(request: WebRequest, pk: int) -> HttpResponseBase:
    """Show a pool, its figures and its members."""
    pool = _pool(pk)
    [overview] = queries.overviews_of([pool])
    delete = reverse("pool-delete", args=[pk])
    context = {
        "pool": pool,
        "overview": overview,
        "notices": _notices(pool),
        "actions": [
            Action(label="Edit", url=reverse("pool-edit", args=[pk])),
            Action(label="Delete…", url=delete, look="quiet-danger"),
        ],
    }
    return list_answer(request, members_of(pool), "pools/detail.html", context)


def _notices(pool: Pool) -> list[Notice]:
    """Return notices that say why a pool is not filled."""
    if not pool.status_message:
        return []
    said = [pool.status_message]
    if pool.failures:
        failed = "failure" if pool.failures == 1 else "failures"
        said.append(
            format_html(
                "{} {} in a row. Retried {}.",
                *(pool.failures, failed, ago(pool.retry_at)),
            )
        )
    return [Notice(level=Level.WARNING, texts=tuple(said))]


@require_safe_or_POST
@administrators_only
def pool_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the settings of a pool."""
    pool = _pool(pk)
    form = PoolChangeForm(posted(request), initial=PoolChangeForm.initial_of(pool))
    if form.tried(actions.pool_update, by=request.user, pool=pool):
        return done(request, "Saved.", "pool-detail", pk)
    return form_page(request, "pools/edit.html", form, pool=pool)


@require_safe_or_POST
@administrators_only
def pool_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Show what is retired, then delete a pool."""
    pool = _pool(pk)
    if request.method == "POST":
        actions.pool_delete(by=request.user, pool=pool)
        said = "Deleted. Its members are retired."
        return done(request, said, "pool-list")
    return render(request, "pools/delete.html", _with_members(pool))


def _pool(pk: int) -> Pool:
    return get_object_or_404(queries.all_pools(), pk=pk)


def _with_members(pool: Pool) -> dict[str, object]:
    [overview] = queries.overviews_of([pool])
    members = queries.members_of(pool).select_related("snapshot", "site")
    return {
        "pool": pool,
        "overview": overview,
        "members": members.prefetch_related("subject__operations"),
    }
