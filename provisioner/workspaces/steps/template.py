"""Building a template: sync, build, verify, and a snapshot with its pin."""

from __future__ import annotations

import os
from typing import Any

from django.db import transaction
from django.utils import timezone

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.hosts import build, client_files, lint
from provisioner.gateways.hosts.mount_options import (
    MountOptionRefused,
    check_mount_options,
)
from provisioner.gateways.ontap.types import VolumeSpec
from provisioner.gateways.perforce.specs import (
    parse_client_spec,
    rename_view,
    render_client_spec,
    split_view_line,
)
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.errors import StepRefused
from provisioner.workspaces.models import Snapshot, Template, Workspace
from provisioner.workspaces.steps.run import StepRun
from provisioner.workspaces.steps.syncing import show_sync
from provisioner.workspaces.steps.volumes import (
    ensure_export_policy,
    ensure_junction,
    ensure_ours,
    ensure_policies,
    limits_in_our_words,
    require_online,
)


def ensure_volume(run: StepRun) -> dict[str, Any]:
    """Have the template's volume: thin, no snapshot reserve, no snapshot schedule."""
    template = run.template
    spec = VolumeSpec(
        name=template.volume_name,
        aggregate=run.site.aggregate,
        size_bytes=template.volume_size_bytes,
        comment=template.volume_comment,
        export_policy=ensure_export_policy(run),
        uid=run.site.template_uid,
        gid=run.site.template_gid,
    )
    volume = ensure_ours(
        run,
        name=spec.name,
        comment=spec.comment,
        create=lambda: run.ontap.create_volume(
            spec, ontap_job_started=run.remember_ontap_job
        ),
    )
    require_online(volume)
    Template.objects.filter(pk=template.pk).update(volume_uuid=volume.uuid)
    return {"volume_uuid": volume.uuid}


def ensure_exported(run: StepRun) -> dict[str, Any]:
    """Have the volume under the site's export policy."""
    ensure_policies(run, volume_uuid=run.result_of("volume")["volume_uuid"])
    return {}


def ensure_mounted(run: StepRun) -> dict[str, Any]:
    """Have the volume in the SVM's namespace at its junction path."""
    ensure_junction(
        run,
        volume_uuid=run.result_of("volume")["volume_uuid"],
        junction_path=run.template.junction_path,
    )
    return {}


def ensure_visible(run: StepRun) -> dict[str, Any]:
    """Have the junction on this host, mounted in a way that is safe for workspaces."""
    try:
        check_mount_options(run.site.mount_options)
    except MountOptionRefused as refusal:
        raise StepRefused(refusal.sentence, code=refusal.code) from refusal
    run.visible_root(run.template.junction_path)
    return {}


def template_client_spec(template: Template) -> ClientSpec:
    """Return the spec of the client that fills the template."""
    view = template.view_lines
    if view:
        written_for = split_view_line(view[0]).client.split("/")[2]
        view = rename_view(view, old=written_for, new=template.client_name)
    return ClientSpec(
        name=template.client_name,
        owner=template.site.perforce_server.p4user,
        root=str(template.path),
        host="",
        description=f"Cloneyard template {template.name} ({template.tag}).\n",
        options=template.client_options,
        submit_options=template.submit_options,
        line_end=template.line_end,
        stream=template.stream,
        view=view,
    )


def ensure_client(run: StepRun) -> dict[str, Any]:
    """Have the template's client, and settle which submitted change is built."""
    template = run.template
    found = run.perforce.find_client(template.client_name)
    if found is not None and str(template.tag) not in found.description:
        raise StepRefused(
            f"A client named {found.name} exists in Perforce and is not ours; it was "
            "left alone.",
            code="client_name_taken",
        )
    run.perforce.save_client(template_client_spec(template))
    spec = run.perforce.find_client(template.client_name)
    assert spec is not None
    return {
        "change": _change_to_build(run, spec),
        "client_spec": render_client_spec(spec),
    }


def _change_to_build(run: StepRun, spec: ClientSpec) -> int:
    """Return the change asked for, else the newest under the view.

    At a change at which the view has no files a sync would empty the template.
    """
    sides = [split_view_line(line) for line in spec.view]
    paths = tuple(side.depot for side in sides if side.flag != "-")
    asked = run.operation.parameters.get("change")
    if asked and not run.perforce.is_submitted(asked):
        raise StepRefused(
            f"Change {asked} is not a submitted change on this server.",
            code="change_not_submitted",
        )
    change = asked or run.perforce.latest_change(paths)
    if not change:
        raise StepRefused(
            "Nothing was ever submitted under the view of this template.",
            code="view_is_empty",
        )
    if not run.perforce.count_files(paths, change=change):
        raise StepRefused(
            f"The view of this template has no files at change {change}.",
            code="view_is_empty",
        )
    return int(change)


def ensure_synced(run: StepRun) -> dict[str, Any]:
    """Have the files of exactly the chosen change in the volume."""
    template, change = run.template, int(run.result_of("client")["change"])
    report = client_files.sync_as(
        run.perforce_account,
        client=template.client_name,
        change=change,
        uid=run.site.template_uid,
        gid=run.site.template_gid,
        on_progress=show_sync(run),
        replace_leftovers=True,
    )
    return {"files": report.files, "bytes": report.bytes, "seconds": report.seconds}


def ensure_built(run: StepRun) -> dict[str, Any]:
    """Have the build command succeed, as the template's uid; its log is kept."""
    template = run.template
    if not template.build_command.strip():
        return {"seconds": 0.0}
    run.step.log_path.parent.mkdir(parents=True, exist_ok=True)
    result = build.run_build(
        command=template.build_command,
        cwd=run.visible_root(template.junction_path),
        environment={
            **template.build_environment,
            "CLONEYARD_CHANGE": str(run.result_of("client")["change"]),
        },
        uid=run.site.template_uid if os.geteuid() == 0 else os.geteuid(),
        gid=run.site.template_gid if os.geteuid() == 0 else os.getegid(),
        timeout_seconds=template.build_timeout_seconds,
        log_path=run.step.log_path,
        progress=lambda seen: run.progress(f"{seen.log_bytes:,} bytes of log"),
    )
    if result.timed_out:
        raise StepRefused(
            f"The build did not end within {template.build_timeout_seconds:,} seconds "
            "and was stopped. Nothing was published; the log is kept.",
            code="build_timed_out",
        )
    if result.exit_code != 0:
        raise StepRefused(
            f"The build ended with exit code {result.exit_code}. Nothing was "
            f"published; the log is kept. Its last lines: {result.last_lines}",
            code="build_failed",
        )
    return {"seconds": result.seconds}


def ensure_verified(run: StepRun) -> dict[str, Any]:
    """Have proof that the tree is the change: nothing opened, missing or modified."""
    template, change = run.template, int(run.result_of("client")["change"])
    opened = run.perforce.list_opened(template.client_name)
    if opened:
        raise StepRefused(
            f"{len(opened)} files are opened on the template's client, first "
            f"{opened[0].depot_file}. Revert them, then build again.",
            code="template_has_opened_files",
        )
    behind = run.perforce.count_out_of_sync(template.client_name, change=change)
    if behind:
        raise StepRefused(
            f"{behind:,} files are not at change {change} after the sync.",
            code="template_out_of_sync",
        )
    differing = client_files.reconcile_as(
        run.perforce_account,
        client=template.client_name,
        untracked=False,
        ignore=(),
        uid=run.site.template_uid,
        gid=run.site.template_gid,
    )
    if differing:
        shown = ", ".join(finding.path for finding in differing[:10])
        raise StepRefused(
            f"{len(differing):,} versioned files differ from the depot after the "
            f"build: {shown}. A build must not change or delete what Perforce manages.",
            code="build_changed_versioned_files",
        )
    have = run.perforce.have_list(template.client_name)
    root = run.visible_root(template.junction_path)
    return {
        "have_count": have.count,
        "have_digest": have.digest,
        "lint": [str(finding) for finding in lint.lint_tree(root)],
    }


def ensure_snapshot(run: StepRun) -> dict[str, Any]:
    """Have the snapshot, and its published row with the pin."""
    template, operation = run.template, run.operation
    uuid = run.result_of("volume")["volume_uuid"]
    client, verified = run.result_of("client"), run.result_of("verify")
    name = f"c{client['change']}.b{operation.pk}"
    taken = run.ontap.find_snapshot(uuid, name=name)
    if taken is None:
        with limits_in_our_words():
            taken = run.ontap.create_snapshot(
                uuid,
                name=name,
                comment=f"{template.volume_comment} change={client['change']}",
                ontap_job_started=run.remember_ontap_job,
            )
    assert parse_client_spec(client["client_spec"]).name == template.client_name
    snapshot, _ = Snapshot.objects.get_or_create(
        template=template,
        name=name,
        defaults={
            "ontap_uuid": taken.uuid,
            "change": client["change"],
            "client_spec": client["client_spec"],
            "have_count": verified["have_count"],
            "have_digest": verified["have_digest"],
            "lint": verified["lint"],
            "sync_seconds": run.result_of("sync")["seconds"],
            "build_seconds": run.result_of("build")["seconds"],
        },
    )
    return {"snapshot": snapshot.name, "snapshot_id": snapshot.pk}


def ensure_pruned(run: StepRun) -> dict[str, Any]:
    """Have no more snapshots than are to be kept, but for those that clones need.

    One that ONTAP refuses to delete is kept, and tried again after the next build.
    """
    template = run.template
    published = Snapshot.objects.filter(template=template, deleted_at=None)
    for old in published.order_by("-created_at", "-pk")[template.snapshots_to_keep :]:
        _withdraw(old)
    volume_uuid = run.result_of("volume")["volume_uuid"]
    there = [snapshot.uuid for snapshot in run.ontap.list_snapshots(volume_uuid)]
    deleted = []
    for withdrawn in Snapshot.objects.filter(
        template=template, deleted_at__isnull=False, ontap_uuid__in=there
    ):
        try:
            run.ontap.delete_snapshot(
                volume_uuid,
                snapshot_uuid=withdrawn.ontap_uuid,
                ontap_job_started=run.remember_ontap_job,
            )
        except PermanentGatewayError:
            Snapshot.objects.filter(pk=withdrawn.pk).update(deleted_at=None)
        else:
            deleted.append(withdrawn.name)
    return {"deleted": deleted}


def _withdraw(snapshot: Snapshot) -> None:
    """Take a snapshot off the offer, unless a workspace needs it."""
    with transaction.atomic():
        Snapshot.objects.select_for_update().get(pk=snapshot.pk)
        workspaces = Workspace.objects.filter(snapshot=snapshot)
        if not workspaces.exclude(state=Workspace.State.RETIRED).exists():
            Snapshot.objects.filter(pk=snapshot.pk).update(deleted_at=timezone.now())
