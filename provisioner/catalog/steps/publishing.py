"""Verify a template's volume, and publish it as a snapshot."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from provisioner.catalog import checks
from provisioner.catalog.models import Quality, Snapshot
from provisioner.catalog.pins import Pin, goes_in_batches
from provisioner.catalog.snapshot_comments import (
    MIRROR_LABEL,
    SnapshotMark,
    asked_text,
    go_on_after,
)
from provisioner.catalog.steps.commands import Built, Tested
from provisioner.catalog.steps.contents import Synced
from provisioner.catalog.steps.room import began_clean
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.settled_tree import (
    changes_named,
    require_no_command,
    require_no_writers,
)
from provisioner.catalog.steps.volume import TemplateVolume
from provisioner.catalog.steps.volumes import come_back_later, limits_in_our_words
from provisioner.engine.results import StepResult
from provisioner.gateways.errors import AlreadyExists
from provisioner.gateways.hosts import files, root_paths, tree_remarks
from provisioner.gateways.hosts.file_digests import FileDigest, sample_files
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.ontap.types import VolumeSnapshot
from provisioner.gateways.perforce.specs import parse_client_spec
from provisioner.lib.refusals import StepRefused


@dataclass(frozen=True, kw_only=True)
class Verified(StepResult):
    """How the tree was verified against its pin, with remarks on its files.

    `sample` has digests of a few of them.
    """

    step = "verify"
    have_count: int
    have_digest: str
    remarks: list[str]
    sample: list[FileDigest] = field(default_factory=list)


def ensure_verified(run: TemplateRun) -> Verified:
    """Verify that the tree equals its pin: nothing opened, missing or modified."""
    template, pin = run.template, run.result_of(Pin)
    require_no_command(run)
    require_no_writers(run.visible_root(template.junction_path))
    opened = run.perforce.changes.list_opened(template.client_name)
    if opened:
        raise StepRefused(
            f"{len(opened)} files are opened on the template's client, first "
            f"{opened[0].depot_file}. Revert them, then build again.",
            code="template_has_opened_files",
        )
    behind = run.perforce.files.count_out_of_sync(
        template.client_name, change=pin.change, parts=pin.parts
    )
    if behind:
        raise StepRefused(
            f"{behind:,} files are not at change {pin.change} after the sync.",
            code="template_out_of_sync",
        )
    have = run.perforce.files.have_list(template.client_name)
    differing = run_as(
        run.site.template_owner,
        run.perforce.files.reconcile_preview,
        template.client_name,
        untracked=False,
        in_batches=goes_in_batches(have.count),
        on_command=run.rest_for_others,
    )
    if differing:
        shown = ", ".join(finding.path for finding in differing[:10])
        raise StepRefused(
            f"{len(differing):,} versioned files differ from the depot after the "
            f"build: {shown}. A build must not change or delete versioned files. The "
            "next build restores them first.",
            code="build_changed_versioned_files",
        )
    root = run.visible_root(template.junction_path)
    # A build may have opened what the export step closed; clones begin like that.
    files.close_directory(root)
    return Verified(
        have_count=have.count,
        have_digest=have.digest,
        remarks=remarks_on(run, root, files=have.count),
        sample=_sample(run, root),
    )


def _sample(run: TemplateRun, root: Path) -> list[FileDigest]:
    """Return digests of a few files, each build chooses others."""
    with changes_named(root):
        return sample_files(root, seed=str(run.operation.pk))


def remarks_on(run: TemplateRun, root: Path, *, files: int) -> list[str]:
    """Return what people with a clone of this build should know."""
    info = run.perforce.get_info()
    said = checks.remarks_on_build(run.template, files=files, info=info)
    with changes_named(root):
        findings = [
            *tree_remarks.remarks_on_tree(root),
            *root_paths.sample_root_paths(root),
        ]
    return [*(remark.sentence for remark in said), *map(str, findings)]


@dataclass(frozen=True)
class Published(StepResult):
    """The snapshot that a build published."""

    step = "snapshot"
    name: str


def ensure_snapshot(run: TemplateRun) -> Published:
    """Ensure the snapshot and its published row, with pin and quality."""
    pin, verified = run.result_of(Pin), run.result_of(Verified)
    mark = SnapshotMark(
        tree=run.template.volume_comment,
        change=pin.change,
        have_count=verified.have_count,
        have_digest=verified.have_digest,
        asked=asked_text(run.operation),
        parts=len(pin.parts),
    )
    name = f"c{pin.change}.b{run.operation.pk}"
    grew = _grew_bytes(run)
    _publish(run, pin, verified, taken=_take(run, name, mark=mark), grew_bytes=grew)
    return Published(name)


def _grew_bytes(run: TemplateRun) -> int | None:
    """Return what the build added to the volume, None if ONTAP did not say."""
    began = run.result_of(TemplateVolume)
    used_bytes = run.ontap.get_volume(began.volume_uuid).used_bytes
    if began.used_bytes is None or used_bytes is None:
        return None
    return max(used_bytes - began.used_bytes, 0)


def _take(run: TemplateRun, name: str, *, mark: SnapshotMark) -> VolumeSnapshot:
    """Return the snapshot of this build; take it if there is none yet.

    Raises: StepRefused if another build made the one with this name.
    """
    uuid = run.result_of(TemplateVolume).volume_uuid
    taken = run.ontap.find_snapshot(uuid, name=name)
    if taken is None:
        try:
            with limits_in_our_words():
                taken = run.ontap.create_snapshot(
                    uuid,
                    name=name,
                    comment=str(mark),
                    label=MIRROR_LABEL,
                )
        except AlreadyExists as error:
            # Our own request before a lost reply: ONTAP was, or is, still at it.
            taken = run.ontap.find_snapshot(uuid, name=name)
            if taken is None:
                raise come_back_later(error) from error
    if taken.comment != str(mark):
        _refuse_another(run, name, volume_uuid=uuid)
    return taken


def _publish(
    run: TemplateRun,
    pin: Pin,
    verified: Verified,
    *,
    taken: VolumeSnapshot,
    grew_bytes: int | None,
) -> None:
    """Ensure the row that publishes a snapshot."""
    assert parse_client_spec(pin.client_spec).name == run.template.client_name
    synced, built = run.result_of(Synced), run.result_of(Built)
    tested = run.find_result(Tested)
    with run.writing():
        Snapshot.objects.get_or_create(
            template=run.template,
            name=taken.name,
            defaults={
                "ontap_uuid": taken.uuid,
                "change": pin.change,
                "is_complete": not pin.parts,
                "parts": [asdict(part) for part in pin.parts],
                "sample": [asdict(each) for each in verified.sample],
                "client_spec": pin.client_spec,
                "have_count": verified.have_count,
                "have_digest": verified.have_digest,
                "quality": tested.quality if tested else Quality.BUILT,
                "grew_bytes": grew_bytes,
                "is_clean": began_clean(run.operation),
                "remarks": verified.remarks,
                "sync_seconds": synced.seconds,
                "build_seconds": built.seconds,
                "test_seconds": tested.seconds if tested else 0,
                "operation": run.operation,
            },
        )


def _refuse_another(run: TemplateRun, name: str, *, volume_uuid: str) -> NoReturn:
    """Refuse to publish a snapshot that another build made.

    Raises: StepRefused.
    """
    there = run.ontap.list_snapshots(volume_uuid)
    go_on_after([snapshot.name for snapshot in there])
    raise StepRefused(
        f"A snapshot {name} on the volume is not of this build, as after a restore "
        "of an older database backup. It was not changed. Build again: numbers "
        "continue after it. The drift check offers to adopt it.",
        code="snapshot_of_another_build",
    )


def ensure_outcome(run: TemplateRun) -> None:
    """Fail the build if its test failed; its snapshot exists for inspection."""
    tested = run.result_of(Tested)
    if tested.has_rejected:
        name = run.result_of(Published).name
        raise StepRefused(
            f"The snapshot {name} failed its tests, so it is never the default. The "
            f"next build runs as usual. {tested.reason}",
            code="test_failed",
        )
