"""The size and the settings of a template's volume. Each step is safe to repeat."""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volumes import limits_in_our_words, own_volume
from provisioner.catalog.volume_policies import (
    ensure_settings,
    policies_of,
    wanted_settings,
)
from provisioner.gateways.ontap.types import Volume, is_same_size
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text


def ensure_size(run: TemplateRun) -> None:
    """Resize the template's volume to the size in its definition, with its settings.

    Raises: StepRefused (not our volume, offline, or smaller than what it holds).
    """
    volume = own_volume(run)
    if volume.state != "online":
        raise StepRefused(
            f"The volume {volume.name} is {volume.state or 'not online'}. ONTAP "
            "resizes only volumes that are online. Bring it online, then build the "
            "template: that resizes it.",
            code="volume_offline",
        )
    volume = ensure_volume_size(run, volume, shrinks_grown=True)
    ensure_volume_settings(run, volume)


def ensure_volume_settings(run: TemplateRun, volume: Volume) -> None:
    """Give a volume what its template's and its site's policies say."""
    template, policies = run.template, policies_of(run.site)
    if not policies:
        return
    template.volume_uuid = volume.uuid  # of one that was just created
    with limits_in_our_words():
        ensure_settings(
            run.ontap,
            template,
            wanted=wanted_settings(template, policies, size_bytes=volume.size_bytes),
            seen=run.ontap.get_volume_settings(volume.uuid),
            actor=run.operation.requested_by,
        )


def ensure_volume_size(
    run: TemplateRun, volume: Volume, *, shrinks_grown: bool = False
) -> Volume:
    """Resize a volume to the size in its template's definition, and record that.

    Later clones inherit the size. What ONTAP had to grow by itself is shrunk only with
    `shrinks_grown`.

    Raises: StepRefused (smaller than what it holds).
    """
    template = run.template
    wanted, used = template.volume_size_bytes, volume.used_bytes or 0
    before = template.actual_size_bytes
    is_other = not is_same_size(volume.size_bytes, wanted)
    is_smaller = volume.size_bytes < wanted
    if is_other and (is_smaller or shrinks_grown or not volume.sizes_itself):
        if not volume.fits_in(wanted):
            reserve = volume.snapshot_reserve_percent
            raise StepRefused(
                f"The volume {volume.name} holds {size_text(used)}, more than the "
                f"{size_text(wanted)} that the template gives it"
                + (f", of which {reserve} % are for snapshots" if reserve else "")
                + ". Nothing was changed: "
                "give the template more, then build again.",
                code="volume_smaller_than_its_content",
            )
        before = volume.size_bytes
        volume = run.ontap.set_volume_size(volume.uuid, size_bytes=wanted)
    with run.writing():
        Template.objects.filter(pk=template.pk).update(
            actual_size_bytes=volume.size_bytes
        )
        # Not what ONTAP changed by itself; but what a lost answer was about.
        is_ours = is_same_size(volume.size_bytes, wanted)
        if is_ours and before and not is_same_size(before, volume.size_bytes):
            record_event(
                run.template,
                kind="template_volume_resized",
                message=f"Its volume has {size_text(volume.size_bytes)} now, and had "
                f"{size_text(before)}.",
                actor=run.operation.requested_by,
            )
    return volume
