"""Provision a workspace: a FlexClone owned by its owner, and a flushed client."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.catalog.pins import goes_in_batches
from provisioner.catalog.steps.volumes import (
    ensure_export_policy,
    ensure_junction,
    ensure_ours,
    ensure_policies,
    limits_in_our_words,
    require_online,
)
from provisioner.catalog.volume_policies import policies_of, size_with_headroom
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.errors import PermanentGatewayError, Unreachable
from provisioner.gateways.hosts import files, ownership, sampling
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.trees.run import WalkReport
from provisioner.gateways.ontap.types import CloneSpec, Volume, is_same_size
from provisioner.gateways.perforce.errors import ClientTypeMissing
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.specs import parse_client_spec, rename_view
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.gateways.snapshot_directories import SNAPSHOTS
from provisioner.lib.refusals import StepRefused
from provisioner.mirrors.queries import parent_volume
from provisioner.sites.models import Ceiling, Site, qos_policy_for
from provisioner.sites.replicas import require_bound
from provisioner.workspaces.marks import mark_text
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import not_supported
from provisioner.workspaces.steps.clients import (
    is_own,
    take_another_name,
)
from provisioner.workspaces.steps.flushing import flush_to_pin, server_with_pin
from provisioner.workspaces.steps.run import WorkspaceRun, room_of

P4CONFIG_NAME = ".p4config"
IGNORE_NAME = ".cloneyardignore"
OWNER_SAMPLE_SIZE = 200
FINDINGS_SHOWN = 200


@dataclass(frozen=True)
class Clone(StepResult):
    """The FlexClone of a workspace."""

    step = "clone"
    volume_uuid: str


def ensure_clone(run: WorkspaceRun) -> Clone:
    """Ensure a FlexClone of the pinned snapshot with our tag.

    One that has become independent of its snapshot is not made again.
    """
    snapshot = run.workspace.snapshot
    if snapshot.template_id == run.workspace.template_id:
        snapshot.template = run.workspace.template  # it is at hand
    return clone_of(
        run,
        parent_volume=parent_volume(snapshot, run.site),
        parent_snapshot=snapshot.name,
    )


def clone_of(run: WorkspaceRun, *, parent_volume: str, parent_snapshot: str) -> Clone:
    """Ensure a FlexClone of this snapshot with our tag, like `ensure_clone`.

    Raises: StepRefused.
    """
    workspace = run.workspace
    if workspace.is_independent:
        volume = _independent(run)
    else:
        volume = _clone(run, parent_volume, parent_snapshot)
    require_online(volume)
    volume = _ensure_headroom(run, volume)
    _write_when_done(run, volume_uuid=volume.uuid, volume_size_bytes=volume.size_bytes)
    return Clone(volume.uuid)


def _write_when_done(run: WorkspaceRun, **fields: Any) -> None:
    row = Workspace.objects.filter(pk=run.workspace.pk)
    run.when_done(lambda: row.update(**fields))


def _ensure_headroom(run: WorkspaceRun, volume: Volume) -> Volume:
    """Grow a new clone by what its site or template gives for its purpose.

    One that is larger already stays so.
    """
    workspace = run.workspace
    policies = policies_of(run.site)
    if not policies:
        return volume
    is_for_builds = workspace.ceiling_purpose == Ceiling.Purpose.BUILDS
    template = workspace.snapshot.template
    size = size_with_headroom(template, policies, is_for_builds=is_for_builds)
    if size > volume.size_bytes and not is_same_size(size, volume.size_bytes):
        with limits_in_our_words():
            return run.ontap.set_volume_size(volume.uuid, size_bytes=size)
    return volume


def _independent(run: WorkspaceRun) -> Volume:
    workspace = run.workspace
    volume = run.ontap.find_volume(workspace.volume_name)
    if volume is None or not workspace.is_tagged(volume.comment):
        raise StepRefused(
            f"The volume {workspace.volume_name} is no longer on the SVM "
            f"{run.site.svm}. It was independent of its snapshot, so it cannot be "
            "cloned again. Retire the workspace.",
            code="clone_is_gone",
        )
    return volume


def _clone(run: WorkspaceRun, parent_volume: str, parent_snapshot: str) -> Volume:
    workspace = run.workspace
    owned_by_ontap = run.site.reown == Site.Reown.ONTAP
    spec = CloneSpec(
        name=workspace.volume_name,
        parent_volume=parent_volume,
        parent_snapshot=parent_snapshot,
        comment=workspace.volume_comment,
        uid=workspace.uid if owned_by_ontap else None,
        gid=workspace.gid if owned_by_ontap else None,
        qos_policy=qos_policy_for(run.site, workspace.ceiling_purpose),
    )
    volume = ensure_ours(
        run,
        name=spec.name,
        comment=spec.comment,
        create=lambda: run.ontap.create_clone(spec),
    )
    parent = volume.clone_parent
    if parent is None or parent.snapshot_name != parent_snapshot:
        raise StepRefused(
            f"The volume {volume.name} has our tag but is not a clone of the "
            f"snapshot {parent_snapshot}; it was left alone.",
            code="volume_is_not_the_clone",
        )
    return volume


def ensure_exported(run: WorkspaceRun) -> None:
    """Put the clone under the site's export policy, without a snapshot schedule.

    Its root directory gets its mode before it is mounted, and only once: the owner may
    change the mode later.
    """
    workspace = run.workspace
    mode = workspace.open_to.mode
    ensure_policies(
        run,
        volume_uuid=run.result_of(Clone).volume_uuid,
        export_policy=ensure_export_policy(run),
        root_mode=mode if workspace.root_mode != mode else None,
    )
    _write_when_done(run, root_mode=mode)


def ensure_mounted(run: WorkspaceRun) -> None:
    """Mount the clone at its junction path."""
    ensure_junction(
        run,
        volume_uuid=run.result_of(Clone).volume_uuid,
        junction_path=run.workspace.junction_path,
    )


def ensure_owner(run: WorkspaceRun) -> None:
    """Ensure that every entry of the clone has the workspace's uid and gid.

    A sample shows whether ONTAP did it; if not, the parallel chown does. Without root,
    files cannot be given to another uid: they stay as they are, with a message.
    """
    workspace = run.workspace
    try:
        root = run.visible_root(workspace.junction_path)
    except Unreachable:
        if not _is_owned_says_ontap(run):
            raise
        return
    may_be_owned = run.site.reown == Site.Reown.ONTAP or os.geteuid() != 0
    if may_be_owned and _is_owned_says_sample(run, root):
        return
    if os.geteuid() == 0:
        _change_owner(run, root)
        return
    _note_ownership(
        run,
        by="caller",
        sentence=f"The files belong to uid {os.geteuid()}, not to uid {workspace.uid}: "
        "changing the owner needs root, and this worker does not run as root.",
    )


def _is_owned_says_sample(run: WorkspaceRun, root: Path) -> bool:
    """Return whether a sample of the entries has the right owner."""
    workspace = run.workspace
    sample = sampling.sample_ownership(
        root, uid=workspace.uid, gid=workspace.gid, sample_size=OWNER_SAMPLE_SIZE
    )
    if sample.mismatches:
        return False
    _note_ownership(
        run,
        by="ontap",
        sentence=f"The clone belongs to uid {workspace.uid}, gid {workspace.gid}: "
        f"{sample.checked} sampled entries agree.",
    )
    return True


def _change_owner(run: WorkspaceRun, root: Path) -> None:
    """Give every entry to the owner.

    Raises: StepRefused if some stay as they are.
    """
    workspace = run.workspace

    def show(seen: WalkReport) -> None:
        speed = seen.entries / max(seen.seconds, 1e-6)
        run.progress(
            f"{speed:,.0f} entries a second", done=seen.entries, unit="entries"
        )

    report = ownership.change_ownership(
        root, uid=workspace.uid, gid=workspace.gid, progress=show
    )
    if report.failed_count:
        named = run.keep_failures(report)
        raise StepRefused(
            f"{report.failed_count:,} entries could not be given to uid "
            f"{workspace.uid}: {named}",
            code="ownership_incomplete",
        )
    _note_ownership(
        run,
        by="chown",
        sentence=f"{report.entries:,} entries seen, {report.done:,} given to uid "
        f"{workspace.uid} in {report.seconds:.1f} s by the {report.walker} walk.",
    )


def _is_owned_says_ontap(run: WorkspaceRun) -> bool:
    """Return whether ONTAP reports the right owner of a clone not mounted yet.

    False if ONTAP does not report it.
    """
    if run.site.reown != Site.Reown.ONTAP:
        return False
    workspace = run.workspace
    try:
        sample = sampling.sample_ownership_remotely(
            run.ontap,
            run.result_of(Clone).volume_uuid,
            uid=workspace.uid,
            gid=workspace.gid,
            sample_size=OWNER_SAMPLE_SIZE,
        )
    except PermanentGatewayError:
        return False
    if sample.mismatches:
        return False
    _note_ownership(
        run,
        by="ontap",
        sentence=f"The clone belongs to uid {workspace.uid}, gid {workspace.gid}: "
        f"{sample.checked} entries read through ONTAP agree. No host has seen it yet.",
    )
    return True


def _note_ownership(run: WorkspaceRun, *, by: str, sentence: str) -> None:
    _write_when_done(run, ownership={"by": by, "sentence": sentence})


def client_spec_of(workspace: Workspace) -> ClientSpec:
    """Return the client of a workspace: the pin's spec under its own name and root.

    `client -t` would copy View and Options only, and enter our host as Host, so every
    field is given here.

    Source: p4 client.
    """
    pinned = parse_client_spec(workspace.snapshot.client_spec)
    return dataclasses.replace(
        pinned,
        name=workspace.client_name,
        owner=workspace.p4_user,
        host="",
        root=str(workspace.path),
        description=f"Cloneyard workspace {workspace.name} ({workspace.tag}), a "
        f"clone of {workspace.snapshot.name}.\n{mark_text(workspace.client_mark)}\n",
        options=pinned.options.replace(" locked", " unlocked"),
        type=workspace.client_type,
        view=rename_view(pinned.view, old=pinned.name, new=workspace.client_name),
        updated_at=None,
        accessed_at=None,
    )


def ensure_client(run: WorkspaceRun) -> None:
    """Ensure the workspace's client on the Perforce server."""
    workspace = run.workspace
    with run.perforce.at_once() as perforce:
        found = perforce.clients.find(workspace.client_name)
        if found is not None and not is_own(found, workspace):
            take_another_name(run)
            found = None
        if found is not None:
            require_bound(run.server, found)
        wanted = client_spec_of(workspace)
        if found is None or not _same_client(found, wanted):
            _save_client(run, perforce, wanted)


def _save_client(
    run: WorkspaceRun, perforce: PerforceGateway, wanted: ClientSpec
) -> None:
    try:
        perforce.clients.save(wanted)
    except ClientTypeMissing as error:
        refusal = not_supported(run.workspace.purpose, server=run.server)
        raise StepRefused(refusal.sentence, code=refusal.code) from error


def _same_client(found: ClientSpec, wanted: ClientSpec) -> bool:
    return (found.owner, found.root, found.host, found.view, found.line_end) == (
        wanted.owner,
        wanted.root,
        wanted.host,
        wanted.view,
        wanted.line_end,
    )


@dataclass(frozen=True, kw_only=True)
class Flushed(StepResult):
    """The have list after a flush."""

    step = "flush"
    have_count: int
    have_digest: str


def ensure_flushed(run: WorkspaceRun) -> Flushed:
    """Ensure that the have list equals the snapshot's pin."""
    perforce = registry.perforce(server_with_pin(run))
    total = run.workspace.snapshot.have_count
    run.progress("flushing", done=0, total=total, unit="files")
    have = flush_to_pin(perforce, run.workspace, watch=run.flush_watch())
    return Flushed(have_count=have.count, have_digest=have.digest)


def ensure_p4config(run: WorkspaceRun) -> None:
    """Ensure a .p4config in the root, so that p4 works there without settings.

    A file of ours beside the project's own .p4ignore ignores build outputs.

    Source: P4CONFIG and P4IGNORE in the p4 command reference.
    """
    workspace, server = run.workspace, run.server
    lines = [
        f"P4PORT={server.p4port_for_people}",
        f"P4USER={workspace.p4_user}",
        f"P4CLIENT={workspace.client_name}",
        f"P4IGNORE=.p4ignore;{IGNORE_NAME}",
    ]
    if server.p4charset != "none":
        lines.append(f"P4CHARSET={server.p4charset}")
    root = run.visible_root(workspace.junction_path)
    with room_of(run).told_if_lacking():
        for name, content in (
            (IGNORE_NAME, ignored_in(workspace)),
            (P4CONFIG_NAME, lines),
        ):
            files.write_as_owner(
                root,
                name,
                "\n".join(content) + "\n",
                uid=workspace.uid if os.geteuid() == 0 else os.geteuid(),
                gid=workspace.gid if os.geteuid() == 0 else os.getegid(),
            )


def ensure_reconciled(run: WorkspaceRun) -> None:
    """Compare the files with the have list and record the differences."""
    workspace = run.workspace
    found = run_as(
        workspace,
        run.perforce.files.reconcile_preview,
        workspace.client_name,
        untracked=True,
        ignore=ignored_in(workspace),
        in_batches=goes_in_batches(workspace.snapshot.have_count),
        on_command=run.rest_for_others,
    )
    reconcile = {
        "count": len(found),
        "findings": [dataclasses.asdict(f) for f in found[:FINDINGS_SHOWN]],
    }
    with run.writing():
        Workspace.objects.filter(pk=workspace.pk).update(reconcile=reconcile)


def ignored_in(workspace: Workspace) -> tuple[str, ...]:
    """Return P4IGNORE patterns for files of builds, ONTAP and Cloneyard."""
    ours = (P4CONFIG_NAME, IGNORE_NAME, SNAPSHOTS)
    return (*workspace.template.ignore_lines, *ours)
