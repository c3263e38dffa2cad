"""The volume and the client with which a template is built."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import BuildParameters, Template
from provisioner.catalog.pins import Pin
from provisioner.catalog.queries import reference_snapshot
from provisioner.catalog.steps.room import (
    aggregate_of_new,
    ensure_inodes,
    require_room_to_build,
)
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.sizing import ensure_volume_settings, ensure_volume_size
from provisioner.catalog.steps.volumes import (
    ensure_junction,
    ensure_ours,
    ensure_policies,
    ensure_templates_policy,
    require_online,
)
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.errors import Busy
from provisioner.gateways.hosts.comparing import is_same_view
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
from provisioner.gateways.perforce.types import ClientSpec, Part, TreeSize
from provisioner.lib.refusals import StepRefused
from provisioner.routing.steps import ensure_routed
from provisioner.sites.models import Ceiling, OpenTo, qos_policy_for
from provisioner.sites.queries import server_with_id
from provisioner.sites.replicas import require_bound, server_with


@dataclass(frozen=True)
class TemplateVolume(StepResult):
    """The volume in which the template is built.

    `used_bytes` is what was in it before, None if ONTAP did not say.
    """

    step = "volume"
    volume_uuid: str
    used_bytes: int | None = None


def ensure_volume(run: TemplateRun) -> TemplateVolume:
    """Ensure the template's volume at its size: thin, no reserve, no schedule.

    What policies of volumes say besides follows at once.
    """
    template = run.template
    place, why = template.aggregate or run.site.aggregate, ""
    if not template.volume_uuid and run.ontap.find_volume(template.volume_name) is None:
        place, why = aggregate_of_new(run, counted=run.result_of(Pin).tree)
    spec = VolumeSpec(
        name=template.volume_name,
        aggregate=place,
        size_bytes=template.volume_size_bytes,
        comment=template.volume_comment,
        export_policy=ensure_templates_policy(run),
        uid=run.site.template_uid,
        gid=run.site.template_gid,
        unix_permissions=OpenTo.OWNER.mode,
        shows_snapshots=run.site.shows_snapshots,
        qos_policy=qos_policy_for(run.site, Ceiling.Purpose.TEMPLATES),
    )
    volume = ensure_ours(
        run,
        name=spec.name,
        comment=spec.comment,
        create=lambda: run.ontap.create_volume(spec),
    )
    require_online(volume)
    volume = ensure_volume_size(run, volume)
    ensure_volume_settings(run, volume)
    ensure_inodes(run, volume, counted=run.result_of(Pin).tree)
    with run.writing():
        Template.objects.filter(pk=template.pk).update(
            volume_uuid=volume.uuid, aggregate=volume.aggregate
        )
        if why:
            record_event(template, kind="template_placed", message=why)
    if why:
        run.progress(why)
    begun = run.find_result(TemplateVolume)
    if begun is not None:  # the build may have written to it since
        return TemplateVolume(volume.uuid, used_bytes=begun.used_bytes)
    require_room_to_build(run, volume, counted=run.result_of(Pin).tree)
    return TemplateVolume(volume.uuid, used_bytes=volume.used_bytes)


def ensure_exported(run: TemplateRun) -> None:
    """Export the volume to workers only; its root belongs to the build user."""
    ensure_policies(
        run,
        volume_uuid=run.result_of(TemplateVolume).volume_uuid,
        export_policy=ensure_templates_policy(run),
        root_mode=OpenTo.OWNER.mode,
    )


def ensure_mounted(run: TemplateRun) -> None:
    """Mount the volume at its junction path."""
    ensure_junction(
        run,
        volume_uuid=run.result_of(TemplateVolume).volume_uuid,
        junction_path=run.template.junction_path,
    )


def ensure_visible(run: TemplateRun) -> None:
    """Verify that this host has the junction mounted safely for workspaces."""
    try:
        check_mount_options(run.site.mount_options)
    except MountOptionRefused as refusal:
        raise StepRefused(refusal.sentence, code=refusal.code) from refusal
    run.visible_root(run.template.junction_path)


def template_client_spec(template: Template) -> ClientSpec:
    """Return the spec of the client that fills the template."""
    view = template.view_lines
    if view:
        written_for = split_view_line(view[0]).client.split("/")[2]
        view = rename_view(view, old=written_for, new=template.client_name)
    return ClientSpec(
        name=template.client_name,
        owner=template.perforce_server.p4user,
        root=str(template.path),
        host="",
        description=f"Cloneyard template {template.name} ({template.tag}).\n",
        options=template.client_options,
        submit_options=template.submit_options,
        line_end=template.line_end,
        stream=template.stream,
        view=view,
    )


def ensure_client(run: TemplateRun) -> Pin:
    """Ensure the template's client, and decide which change is built."""
    spec = define_client(run, run.template)
    change, parts = _pin_to_build(run, spec)
    return Pin(
        change=change,
        parts=parts,
        client_spec=render_client_spec(spec),
        tree=_tree_if_new(run, spec, change=change),
    )


def define_client(run: TemplateRun, template: Template) -> ClientSpec:
    """Ensure a template's client at the server of the run's site, and return it.

    Raises: StepRefused (the name is taken, or another server has the client).
    """
    found = run.perforce.clients.find(template.client_name)
    if found is not None and str(template.tag) not in found.description:
        raise StepRefused(
            f"A client named {found.name} exists in Perforce and is not ours; it was "
            "left alone.",
            code="client_name_taken",
        )
    if found is not None and not _is_freed(run, found):
        require_bound(run.server, found)
    run.perforce.clients.save(template_client_spec(template))
    spec = run.perforce.clients.find(template.client_name)
    assert spec is not None
    return spec


def _is_freed(run: TemplateRun, client: ClientSpec) -> bool:
    """Delete a client that is bound elsewhere; return whether its name is free here.

    Only for a clean build, which needs no have list: the client is then made again.

    Raises: Busy, StepRefused (this server is behind).
    """
    home = server_with_id(client.server_id, near=run.site.perforce_server)
    if not BuildParameters.of(run.operation).clean or home == run.server:
        return False
    if client.server_id == run.server.served_by.server_id:
        return False
    at_site = registry.perforce(run.site.perforce_server)
    ensure_routed(run, run.template, change=at_site.changes.latest(()))
    registry.perforce(home).clients.delete(client.name, as_seen=client)
    if run.perforce.clients.find(client.name) is None:
        return True
    raise Busy(
        f"The client {client.name} was deleted at {home} and still exists at "
        f"{run.server}. Waiting until it is gone.",
        system="perforce",
        operation="client -d",
    )


def _tree_if_new(run: TemplateRun, spec: ClientSpec, *, change: int) -> TreeSize | None:
    """Return the tree's size if the view is new or changed, else None."""
    earlier = run.template.snapshots.exclude(operation=run.operation)
    newest = earlier.order_by("-pk").first()
    if newest and is_same_view(parse_client_spec(newest.client_spec), spec):
        return None
    return run.perforce.files.tree_size(spec.name, change=change)


def _pin_to_build(run: TemplateRun, spec: ClientSpec) -> tuple[int, list[Part]]:
    """Return the change to build, and the parts at another one.

    A refresh of parts leaves the rest at the change of the default snapshot.
    """
    parameters = BuildParameters.of(run.operation)
    asked, paths = parameters.change, parameters.paths
    sides = [split_view_line(line) for line in spec.view]
    mapped = tuple(side.depot for side in sides if side.flag != "-")
    if not paths:
        return _change_to_build(run, mapped, asked=asked), []
    rest = reference_snapshot(run.template)
    if rest is None:
        raise StepRefused(
            "No snapshot of the whole view is left. Build the whole view first.",
            code="nothing_to_refresh_in_part",
        )
    change = _change_to_build(run, tuple(paths), asked=asked)
    return rest.change, [Part(path=path, change=change) for path in paths]


def _change_to_build(
    run: TemplateRun, paths: tuple[str, ...], *, asked: int | None
) -> int:
    """Return the requested change, else the newest under these depot paths.

    The newest is asked of the site's server. A replica or edge that does not have the
    change yet is waited for.

    A sync to a change without such files would empty the template.
    """
    at_site = registry.perforce(run.site.perforce_server)
    change = asked or at_site.changes.latest(paths)
    if change:
        is_bound = run.server.served_by.what.binds_clients
        ensure_routed(run, run.template, change=change, has_client=is_bound)
    if asked:
        began_at = run.step.first_started_at
        assert began_at is not None
        server_with(run.server, change=asked, since=began_at)
    if asked and not run.perforce.changes.is_submitted(asked):
        raise StepRefused(
            f"Change {asked} is not a submitted change on this server.",
            code="change_not_submitted",
        )
    if not change:
        raise StepRefused(
            "Nothing was ever submitted under the view of this template.",
            code="view_is_empty",
        )
    if not run.perforce.files.exist(paths, change=change):
        raise StepRefused(
            f"The view of this template has no files at change {change}.",
            code="view_is_empty",
        )
    return int(change)
