"""Room in a template's volume: enough inodes, and failures for want of room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from provisioner.catalog.models import Template, TemplateCheck
from provisioner.catalog.steps.run import TemplateRun
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.room import NO_SPACE, Lack, lack_at
from provisioner.gateways.ontap.types import Volume, most_inodes
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text

INODES_FOR_A_FILE = 3
"""A file has one, and a build makes others: objects, directories, its own notes."""

_SENTENCES = {
    Lack.INODES: "The volume {name} has no inodes left. The next build gives it more, "
    "up to one for each 4 KB; beyond that, give the template a larger volume.",
    Lack.BYTES: "The volume {name} is full. Give the template a larger volume, then "
    "build again.",
}
_CODES = {Lack.INODES: "volume_out_of_inodes", Lack.BYTES: "volume_full"}


def ensure_inodes(run: TemplateRun, volume: Volume) -> None:
    """Have inodes for the files that are known of, and more where few are left.

    They take no space until they are used, so there is no harm in too many.

    Raises: StepRefused.
    """
    files, most = _known_files(run.template), most_inodes(volume.size_bytes)
    if files > most:
        raise StepRefused(
            f"The template has {files:,} files, and a volume of "
            f"{size_text(volume.size_bytes)} can have {most:,}. Nothing was changed: "
            "give the template more, then build again.",
            code="volume_too_small_for_its_files",
        )
    used, given = volume.used_inodes or 0, volume.max_inodes
    wanted = min(most, max(files * INODES_FOR_A_FILE, more_inodes(used, given or 0)))
    if given is not None and wanted > given:
        run.ontap.set_max_inodes(
            volume.uuid, max_inodes=wanted, ontap_job_started=run.remember_ontap_job
        )


def more_inodes(used: int, given: int) -> int:
    """Return how many inodes a volume is to have that uses so many of those given."""
    return used * 2 if is_short_of_inodes(used, given) else given


def is_short_of_inodes(used: int, given: int) -> bool:
    """Return whether nine tenths are used, or more."""
    return used * 10 >= given * 9


def _known_files(template: Template) -> int:
    """Return how many files the newest snapshot has, or the view had when counted."""
    newest = template.snapshots.order_by("-pk").first()
    check = TemplateCheck.objects.filter(template=template).first()
    seen = check.files if check is not None else None
    return max(newest.have_count if newest is not None else 0, seen or 0)


@contextmanager
def telling_lack_of_room(run: TemplateRun) -> Iterator[None]:
    """Turn what fails for want of room into a sentence about that.

    Raises: StepRefused.
    """
    try:
        yield
    except GatewayError as error:
        require_room(run, after=error.sentence)
        raise


def require_room(run: TemplateRun, *, after: str) -> None:
    """Say what the volume lacks where what is told says that there was no space.

    Raises: StepRefused.
    """
    if NO_SPACE not in after:
        return
    if lack := lack_at(run.visible_root(run.template.junction_path)):
        sentence = _SENTENCES[lack].format(name=run.template.volume_name)
        raise StepRefused(f"{sentence}\n{after}", code=_CODES[lack])
