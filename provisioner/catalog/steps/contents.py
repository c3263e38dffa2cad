"""The contents of a template's volume: clear, restore and sync them."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.catalog.models import BuildParameters
from provisioner.catalog.pins import Pin, goes_in_batches
from provisioner.catalog.steps.room import room_of_template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.settled_tree import require_no_command
from provisioner.catalog.steps.syncing import show_sync
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.gateways.hosts.clearing import clear_client
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.types import TreeSize
from provisioner.lib.refusals import StepRefused


def ensure_clean(run: TemplateRun) -> None:
    """Remove every file from the volume that is not in Perforce."""
    template = run.template
    require_no_command(run)
    report = run_as(
        run.site.template_owner,
        clear_client,
        run.perforce.account,
        client=template.client_name,
        client_root=template.path,
        root=run.visible_root(template.junction_path),
        on_progress=lambda removed: run.progress(f"{removed:,} entries removed"),
    )
    if report.failed:
        raise StepRefused(
            f"{report.failed:,} entries could not be removed for a clean build: "
            f"{'; '.join(report.failures)}. Remove them, then request it again. "
            "Builds that are not clean are not affected.",
            code="clean_incomplete",
        )


@dataclass(frozen=True)
class Synced(StepResult):
    """How long the sync took."""

    step = "sync"
    seconds: float


def ensure_synced(run: TemplateRun) -> Synced:
    """Sync the volume to exactly the chosen change, and its parts to theirs.

    First undoes what a broken build or a killed sync did to versioned files.
    """
    template, pin = run.template, run.result_of(Pin)
    require_no_command(run)
    room = room_of_template(run)
    if _may_be_broken(run):
        run.progress("Checking for changed versioned files")
        have = run.perforce.files.have_list(template.client_name)
        with room.told_if_lacking():
            run_as(
                run.site.template_owner,
                run.perforce.files.restore,
                template.client_name,
                in_batches=goes_in_batches(have.count),
                on_command=run.rest_for_others,
            )
    files, expected = _how_much(run, pin.tree)
    with room.told_if_lacking():
        report = run_as(
            run.site.template_owner,
            run.perforce.files.sync,
            template.client_name,
            change=pin.change,
            parts=pin.parts,
            on_progress=show_sync(run),
            replace_leftovers=True,
            in_batches=goes_in_batches(files),
            expected=expected,
            on_command=run.rest_for_others,
        )
    return Synced(report.seconds)


def _how_much(run: TemplateRun, size: TreeSize | None) -> tuple[int, TreeSize | None]:
    """Return the number of files, and for a first sync its size."""
    newest = run.template.snapshots.order_by("-pk").first()
    if size is not None:
        return size.files, size if newest is None else None
    return newest.have_count if newest is not None else 0, None


def _may_be_broken(run: TemplateRun) -> bool:
    """Return whether something ran in the volume after it was last verified.

    Comparing reads every file, so it is skipped if the last build was verified.
    """
    if BuildParameters.of(run.operation).clean or run.step.attempt > 1:
        return True
    earlier = Operation.objects.filter(
        subject=run.operation.subject_id, pk__lt=run.operation.pk
    )
    last = earlier.order_by("-pk").first()
    if last is None:
        return False
    return not last.steps.filter(name="verify", state=Step.State.DONE).exists()
