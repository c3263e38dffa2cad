"""What becomes of a run's workspaces: nothing, and the figures of their phases."""

from __future__ import annotations

from collections import Counter

from django.db.models import Avg

from provisioner.lib.refusals import StepRefused
from provisioner.qualification.models import QualificationRun, RunFigure
from provisioner.qualification.profiles import LEVELS, READY, level_figure
from provisioner.qualification.queries import phases_of, workspaces_of
from provisioner.qualification.steps.run import QualificationStep

NAMED = 10
OWNED_BY = {
    "ontap": "by ONTAP",
    "chown": "by chown",
    "caller": "by nobody, as the worker is not root",
}


def ensure_nothing_left(run: QualificationStep) -> None:
    """Check that neither ONTAP nor Perforce has anything of the workspaces.

    Raises: StepRefused.
    """
    gone = list(workspaces_of(run.row).select_related("site", "owner"))
    uuids = {each.volume_uuid for each in gone if each.volume_uuid}
    volumes = {each.uuid: each.name for each in run.ontap.list_volumes()}
    left = [f"volume {volumes[uuid]}" for uuid in uuids & volumes.keys()]
    clients = run.perforce.clients
    for workspace in gone:
        if clients.find(workspace.client_name) is not None:
            left.append(f"client {workspace.client_name}")
    if left:
        raise StepRefused(
            f"{len(left)} things are left of workspaces that were measured: "
            f"{', '.join(sorted(left)[:NAMED])}.",
            code="workspaces_left",
        )


def ensure_workspace_figures(run: QualificationStep) -> None:
    """Compute the figures of each repeat: averages of its workspaces, by phase."""
    row = run.row
    rows = (
        row.times.order_by()
        .values_list("at_once", "repeat", "phase")
        .annotate(average=Avg("seconds"))
    )
    figures = [
        RunFigure(
            run=row,
            repeat=repeat,
            code=level_figure(phase, at_once),
            value=average,
        )
        for at_once, repeat, phase, average in rows
    ]
    release = run.perforce.get_info().version[:200]
    summary = "\n".join(_sentences(row))
    with run.writing():
        row.figures.all().delete()
        RunFigure.objects.bulk_create(figures)
        QualificationRun.objects.filter(pk=row.pk).update(
            summary=summary, release=release
        )


def _sentences(row: QualificationRun) -> list[str]:
    found = phases_of(row)
    said = [
        f"{at_once} at once: ready after {ready['median']:.1f} s (median), "
        f"{ready['p95']:.1f} s (p95), of {ready['number']} workspaces."
        for at_once in LEVELS
        if (ready := found.get((at_once, READY)))
    ]
    owners = Counter(
        OWNED_BY.get(ownership.get("by", ""), "otherwise")
        for ownership in workspaces_of(row).values_list("ownership", flat=True)
        if ownership
    )
    changed = ", ".join(f"{how} {number}" for how, number in owners.most_common())
    return [*said, f"Owner changed: {changed}."] if changed else said
