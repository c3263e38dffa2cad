"""Our rows as the drift check compares them, and views of clients that changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest

from provisioner.catalog.models import Snapshot, Template, VolumePolicy
from provisioner.catalog.snapshot_comments import asked_texts
from provisioner.catalog.steps.volume import template_client_spec
from provisioner.catalog.volume_policies import policies_of
from provisioner.copies.models import WorkspaceCopy
from provisioner.drift.comparison.facts import (
    Known,
    KnownJob,
    KnownSnapshot,
    KnownTree,
    Wanted,
)
from provisioner.drift.comparison.wanted import AnyRow, settings_wanted, wanted_size
from provisioner.engine.models import Operation, Step
from provisioner.gateways.ontap.types import Volume, VolumeSettings
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.sites.models import Site
from provisioner.sites.queries import installations
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.steps.provision import client_spec_of

# What moved less than this before a check began is left to settle.
SETTLE = dt.timedelta(minutes=5)
# Clocks of servers may differ by a little.
SECOND_OVER_AFTER = dt.timedelta(seconds=5)
# A step that ended longer ago than this has no job that ONTAP still works on.
JOBS_OF_THE_LAST = dt.timedelta(days=2)

Y, N, M = Wanted.YES, Wanted.NO, Wanted.MAYBE
W, T = Workspace.State, Template.State

# state: volume, whether it is mounted at its path (None: either), client
_OF_WORKSPACE: dict[str, tuple[Wanted, bool | None, Wanted]] = {
    W.READY: (Y, True, Y),
    W.TRASHED: (Y, False, N),
    W.FAILED: (M, None, M),
    W.RETIRED: (N, None, N),
}
_OF_TEMPLATE: dict[str, tuple[Wanted, bool | None, Wanted]] = {
    T.NEW: (M, None, M),
    T.READY: (Y, True, Y),
    T.FAILED: (M, None, M),
}
_ANYTHING = (M, None, M)


def of_storage(site: Site, *, seen: Collection[str], asof: dt.datetime) -> Known:
    """Return the rows of a site about its SVM.

    `seen` are tags that exist on the SVM. There may be very many retired workspaces:
    only those with such a tag are read.
    """
    sites_there = Site.objects.filter(ontap_host=site.ontap_host, svm=site.svm)
    return _known(site, seen=seen, asof=asof, sites_there=sites_there)


def of_perforce(site: Site, *, seen: Collection[str], asof: dt.datetime) -> Known:
    """Return the rows of a site about its Perforce server, like `of_storage`.

    The sites of an installation share its clients, except those bound to an edge or
    build server, which the sites of that server share.
    """
    roots = installations()
    sites = Site.objects.select_related("perforce_server__upstream").order_by("pk")
    domains = {
        each: _domain_of(each)
        for each in sites
        if roots[each.perforce_server_id] == roots[site.perforce_server_id]
    }
    here = domains[site]
    found = _known(
        site,
        seen=seen,
        asof=asof,
        sites_there=Site.objects.filter(
            pk__in=[each.pk for each, domain in domains.items() if domain == here]
        ),
    )
    return replace(
        found, domain=here, other_domains=frozenset(domains.values()) - {here, ""}
    )


def _domain_of(site: Site) -> str:
    """Return the ServerID to which a site's clients are bound, "" for none."""
    server = site.perforce_server.served_by
    return server.server_id if server.what.binds_clients else ""


def _tags_elsewhere(site: Site, seen: Collection[str]) -> frozenset[str]:
    """Return which of these tags belong to rows of other sites."""
    rows = (
        *(Workspace.objects, Template.objects, Mirror.objects),
        WorkspaceCopy.objects,
    )
    return frozenset(
        str(tag)
        for known in rows
        for tag in known.filter(tag__in=seen)
        .exclude(site=site)
        .values_list("tag", flat=True)
    )


def _known(
    site: Site,
    *,
    seen: Collection[str],
    asof: dt.datetime,
    sites_there: QuerySet[Site],
) -> Known:
    templates = list(Template.objects.filter(site=site))
    workspaces = Workspace.objects.filter(
        ~Q(state=W.RETIRED) | Q(tag__in=seen), site=site
    ).select_related("template", "snapshot", "transfer", "bisection_step", "growth")
    for row in (*templates, *workspaces):
        row.site = site  # joining it and its Perforce server would read both again
    mirrors = Mirror.objects.filter(site=site).select_related("template")
    copies = WorkspaceCopy.objects.filter(site=site).select_related(
        "workspace__template"
    )
    parents = {mirror.template_id: mirror.volume_name for mirror in mirrors}
    settled, policies = set(_settled(site, seen)), policies_of(site)
    in_motion = _in_motion(site, asof=asof)
    return Known(
        trees=(
            *(_of_template(template, in_motion, policies) for template in templates),
            *(
                _of_workspace(
                    workspace,
                    in_motion,
                    policies,
                    is_settled=workspace.pk in settled,
                    parent_volume=workspace.cloned_from
                    or _volume_of(workspace.template, site, parents),
                )
                for workspace in workspaces
            ),
            *(_of_destination("mirror", mirror, in_motion) for mirror in mirrors),
            *(
                _of_destination(
                    "copy",
                    copy,
                    in_motion,
                    parent_volume=_volume_of(copy.workspace.template, site, parents),
                )
                for copy in copies
            ),
        ),
        snapshots=tuple(_snapshots(site)),
        builds=asked_texts([template.pk for template in templates]),
        jobs=tuple(_jobs(site, asof=asof)),
        elsewhere=_tags_elsewhere(site, seen),
        deleted=frozenset(
            str(tag)
            for tag in Mirror.with_deleted.filter(
                tag__in=seen, state=Mirror.State.DELETED
            ).values_list("tag", flat=True)
        ),
        # The first of the sites that share a system reports its unknown objects.
        judges_strangers=sites_there.order_by("pk").first() == site,
    )


def _in_motion(site: Site, *, asof: dt.datetime) -> set[tuple[str, int]]:
    """Return the subjects with a running or just ended operation."""
    lately = Operation.objects.filter(
        Q(state=Operation.State.RUNNING) | Q(ended_at__gt=asof - SETTLE)
    )
    models = {"copy": "workspacecopy"}
    return {
        (kind, pk)
        for kind in ("workspace", "template", "mirror", "copy")
        for row in [f"subject__{models.get(kind, kind)}"]
        for pk in lately.filter(**{f"{row}__site": site}).values_list(row, flat=True)
    }


def _settled(site: Site, seen: Collection[str]) -> Iterable[int]:
    """Return retired workspaces whose retirement left nobody's work behind.

    It succeeded, and each rescue that was started for it is complete.
    """
    return (
        Workspace.objects.filter(
            site=site,
            tag__in=seen,
            state=W.RETIRED,
            subject__operations__kind=WorkspaceOperation.RETIRE,
            subject__operations__state=Operation.State.SUCCEEDED,
        )
        .exclude(rescues__is_complete=False)
        .values_list("pk", flat=True)
    )


def _of_workspace(
    workspace: Workspace,
    in_motion: set[tuple[str, int]],
    policies: list[VolumePolicy],
    *,
    is_settled: bool,
    parent_volume: str,
) -> KnownTree:
    volume, is_mounted, client = _OF_WORKSPACE.get(workspace.state, _ANYTHING)
    has_client = bool(workspace.client_name)
    spec = client_spec_of(workspace) if has_client and client is Y else None
    return KnownTree(
        kind="workspace",
        id=workspace.pk,
        name=workspace.name,
        tag=str(workspace.tag),
        comment=workspace.volume_comment,
        is_in_motion=workspace.is_moving or ("workspace", workspace.pk) in in_motion,
        is_settled=is_settled,
        volume=volume,
        volume_name=workspace.volume_name,
        volume_uuid=workspace.volume_uuid,
        parent_volume="" if workspace.is_independent else parent_volume,
        is_independent=workspace.is_independent,
        size_bytes=wanted_size(workspace),
        settings_of=_settings_of(workspace, policies),
        junction_path=_path(workspace.junction_path, is_mounted),
        client=client
        if has_client or (_is_of_bisection(workspace) and client is M)
        else N,
        client_name=workspace.client_name,
        client_owner=workspace.p4_user,
        client_root=str(workspace.path),
        client_view=spec.view if spec is not None else (),
        stand_ins=workspace.stand_ins,
    )


def _is_of_bisection(workspace: Workspace) -> bool:
    return hasattr(workspace, "bisection_step")


def _settings_of(
    row: AnyRow, policies: list[VolumePolicy]
) -> Callable[[Volume], VolumeSettings]:
    return lambda volume: settings_wanted(row, policies, volume=volume)


def _of_template(
    template: Template, in_motion: set[tuple[str, int]], policies: list[VolumePolicy]
) -> KnownTree:
    volume, is_mounted, client = _OF_TEMPLATE.get(template.state, _ANYTHING)
    spec = template_client_spec(template)
    return KnownTree(
        kind="template",
        id=template.pk,
        name=template.name,
        tag=str(template.tag),
        comment=template.volume_comment,
        is_in_motion=template.is_moving or ("template", template.pk) in in_motion,
        volume=volume,
        volume_name=template.volume_name,
        volume_uuid=template.volume_uuid,
        size_bytes=wanted_size(template),
        settings_of=_settings_of(template, policies),
        junction_path=_path(template.junction_path, is_mounted),
        client=client,
        client_name=template.client_name,
        client_owner=spec.owner,
        client_root=spec.root,
    )


def _volume_of(template: Template, site: Site, mirrors: dict[int, str]) -> str:
    """Return the name of a template's volume at a site, given those of its mirrors."""
    if template.site_id == site.pk:
        return template.volume_name
    return mirrors.get(template.pk, "")


def _of_destination(
    kind: str,
    row: Mirror | WorkspaceCopy,
    in_motion: set[tuple[str, int]],
    *,
    parent_volume: str = "",
) -> KnownTree:
    """Return the tree of a volume that SnapMirror fills, which has no client."""
    is_ready = row.state == row.State.READY
    return KnownTree(
        kind=kind,
        id=row.pk,
        name=row.name,
        tag=str(row.tag),
        comment=row.volume_comment,
        is_in_motion=row.is_moving or (kind, row.pk) in in_motion,
        volume=Y if is_ready else M,
        volume_name=row.volume_name,
        volume_uuid=row.volume_uuid,
        parent_volume=parent_volume,
        size_bytes=wanted_size(row) if is_ready else None,
        settings_of=_settings_of(row, []),
        junction_path=None,
        client=N,
    )


def _path(junction_path: str, is_mounted: bool | None) -> str | None:
    if is_mounted is None:
        return None
    return junction_path if is_mounted else ""


def _snapshots(site: Site) -> Iterable[KnownSnapshot]:
    of_templates_here = Workspace.objects.filter(template__site=site)
    needed = set(of_templates_here.there().values_list("snapshot", flat=True))
    for snapshot in Snapshot.objects.filter(template__site=site):
        yield KnownSnapshot(
            of=("template", snapshot.template_id),
            name=snapshot.name,
            uuid=snapshot.ontap_uuid,
            is_published=snapshot.is_there,
            is_needed=snapshot.pk in needed,
        )
    for mirrored in MirroredSnapshot.objects.filter(
        mirror__site=site, state=MirroredSnapshot.State.AVAILABLE
    ).select_related("snapshot"):
        yield KnownSnapshot(
            of=("mirror", mirrored.mirror_id),
            name=mirrored.snapshot.name,
            uuid=mirrored.ontap_uuid,
            is_published=True,
            is_needed=False,
        )


def _jobs(site: Site, *, asof: dt.datetime) -> Iterable[KnownJob]:
    """Return ONTAP jobs of steps that ended, or whose operation did."""
    settled = (Step.State.DONE, Step.State.SKIPPED, Step.State.FAILED)
    steps = (
        Step.objects.filter(
            Q(operation__subject__workspace__site=site)
            | Q(operation__subject__template__site=site)
            | Q(operation__subject__mirror__site=site)
            | Q(operation__subject__mirror__template__site=site)
            | Q(operation__subject__workspacecopy__site=site)
            | Q(operation__subject__workspacecopy__workspace__site=site),
            Q(state__in=settled) | ~Q(operation__state=Operation.State.RUNNING),
            started_at__gt=asof - JOBS_OF_THE_LAST,
        )
        .exclude(ontap_job_uuid="")
        .exclude(ended_at__gt=asof - SETTLE)
    )
    rows = steps.values_list(
        *("ontap_job_uuid", "name", "operation", "operation__subject__workspace"),
        *("operation__subject__template", "operation__subject__mirror"),
        "operation__subject__workspacecopy",
    )
    for uuid, name, operation, workspace, template, mirror, copy in rows:
        yield KnownJob(
            uuid=uuid,
            step=name,
            operation_id=operation,
            workspace_id=workspace,
            template_id=template,
            mirror_id=mirror,
            copy_id=copy,
        )


def client_views(
    clients: Iterable[ClientSpec],
    *,
    known: Known,
    perforce: PerforceGateway,
    at_most: int,
) -> dict[str, tuple[str, ...]]:
    """Return the views of clients that changed since we created them.

    Reading one (`client -o`) refreshes its Access date, which people use to find
    abandoned clients. So it is read once per Update date and the result is saved.
    Update dates have whole seconds, so one within the current second is read again.
    """
    over_by = clocks.database_now() - SECOND_OVER_AFTER
    trees = {
        tree.client_name: tree
        for tree in known.trees
        if tree.is_workspace and tree.client is Y and not tree.is_in_motion
    }
    rows = _made_at({tree.id for tree in trees.values()})
    views: dict[str, tuple[str, ...]] = {}
    for client in clients:
        tree = trees.get(client.name)
        if tree is None or client.updated_at is None:
            continue
        seen, made_at = rows[tree.id]
        updated_at = client.updated_at.isoformat()
        if seen.get("updated_at") == updated_at:
            views[client.name] = tuple(seen["view"])
        elif made_at is None or client.updated_at > made_at:
            if at_most <= 0:
                continue
            at_most -= 1
            spec = perforce.clients.find(client.name)
            if spec is not None:
                views[client.name] = spec.view
                if client.updated_at < over_by:
                    Workspace.objects.filter(pk=tree.id).update(
                        client_seen={"updated_at": updated_at, "view": list(spec.view)}
                    )
    return views


def _made_at(
    ids: set[int],
) -> dict[int, tuple[dict[str, Any], dt.datetime | None]]:
    """Return what was seen of each client, and when we last changed it."""
    rows = Workspace.objects.filter(pk__in=ids).annotate(
        made_at=Greatest(
            Coalesce("ready_at", "created_at"), Max("subject__operations__ended_at")
        )
    )
    found = rows.values_list("pk", "client_seen", "made_at")
    return {pk: (client_seen, made_at) for pk, client_seen, made_at in found}
