"""Steps that templates and workspaces share for their volumes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from provisioner.catalog.steps.run import TemplateRun
from provisioner.gateways.errors import AlreadyExists, Busy, LimitReached, OutOfSpace
from provisioner.gateways.ontap.types import Volume
from provisioner.lib.names import same_tag
from provisioner.lib.refusals import StepRefused
from provisioner.sites.export_policies import ensure_policy_rules, policies_of


def ensure_export_policy(run: TemplateRun) -> str:
    """Ensure the site's export policy with exactly its rules; return its name.

    Hosts mount with their users' own uids. Only the workers' hosts get superuser
    access, for the chown.
    """
    return _ensure_policy(run, run.site.export_policy)


def ensure_frozen_policy(run: TemplateRun) -> str:
    """Ensure the workers-only policy for clones being retired; return its name.

    A site without worker_clients cannot tell its workers from other hosts: there the
    policy admits the same hosts as the site's own.
    """
    return _ensure_policy(run, run.site.frozen_policy)


def ensure_templates_policy(run: TemplateRun) -> str:
    """Ensure the workers-only policy for templates; return its name.

    Nobody else needs to mount a template, and people without access to its files in
    Perforce must not.
    """
    return _ensure_policy(run, run.site.templates_policy)


def _ensure_policy(run: TemplateRun, name: str) -> str:
    ensure_policy_rules(run.ontap, name, rules=policies_of(run.site)[name])
    return name


def ensure_ours(
    run: TemplateRun, *, name: str, comment: str, create: Callable[[], Volume]
) -> Volume:
    """Ensure a volume of this name with our tag; create it if there is none.

    Raises: StepRefused if another volume has the name, or there is no room.
    """
    volume = run.ontap.find_volume(name)
    if volume is None:
        try:
            with limits_in_our_words():
                volume = create()
        except AlreadyExists as error:
            # Our own request before a lost reply, or a stranger: the tag decides.
            volume = run.ontap.find_volume(name)
            if volume is None:
                raise come_back_later(error) from error
    require_ours(volume, comment=comment)
    return volume


def require_ours(volume: Volume, *, comment: str) -> None:
    """Refuse a volume that does not have the tag of this comment.

    Raises: StepRefused.
    """
    if not same_tag(volume.comment, comment):
        raise StepRefused(
            f"A volume named {volume.name} exists on this SVM without our tag. It was "
            "not changed.",
            code="volume_name_taken",
        )


def own_volume(run: TemplateRun) -> Volume:
    """Return the volume that a template was built in.

    Raises: StepRefused if it is not there, or does not have our tag.
    """
    template = run.template
    volume = run.ontap.find_volume(template.volume_name)
    if volume is None or not template.is_tagged(volume.comment):
        raise StepRefused(
            f"The volume {template.volume_name} on {run.site.svm} is not the one that "
            "the template was built in. Nothing was changed.",
            code="volume_is_not_ours",
        )
    return volume


def come_back_later(error: AlreadyExists) -> Busy:
    """Return the error that retries a step whose name a not yet visible volume has."""
    return Busy(
        f"{error.sentence} ONTAP does not list it yet.",
        system=error.system,
        operation=error.operation,
        remote_code=error.remote_code,
    )


@contextmanager
def limits_in_our_words() -> Iterator[None]:
    """Turn ONTAP's refusals for lack of room into those of our limits.

    ONTAP gives limits of clones and volumes no codes of their own.

    Raises: StepRefused.
    """
    try:
        yield
    except LimitReached as error:
        kind = re.search(r"\b(clone|snapshot)s\b", str(error))
        code = f"{kind[1]}_limit" if kind else "volume_limit"
        raise StepRefused(
            f"{error} Retire and purge workspaces that nobody needs, or ask an "
            "administrator. Then retry.",
            code=code,
        ) from error
    except OutOfSpace as error:
        raise StepRefused(
            f"{error} Retire and purge workspaces that nobody needs, or ask an "
            "administrator for space. Then retry.",
            code="space_low",
        ) from error


def require_online(volume: Volume) -> None:
    """Raise Busy while ONTAP is still creating the volume.

    An interrupted attempt may leave one that exists but is not online yet.
    """
    if volume.state != "online":
        raise Busy(
            f"The volume {volume.name} is {volume.state or 'not online yet'}.",
            system="ontap",
            operation="volume create",
        )


def ensure_policies(
    run: TemplateRun,
    *,
    volume_uuid: str,
    export_policy: str,
    root_mode: str | None = None,
) -> None:
    """Ensure a volume's export policy and the snapshot policy none.

    With `root_mode`, ensure the mode of its root directory as well.
    """
    volume = run.ontap.get_volume(volume_uuid)
    found = (volume.export_policy, volume.snapshot_policy)
    has_mode = root_mode is None or volume.root_mode == root_mode
    if found != (export_policy, "none") or not has_mode:
        run.ontap.set_volume_policies(
            volume_uuid,
            export_policy=export_policy,
            root_mode=root_mode,
            shows_snapshots=run.site.shows_snapshots,
        )


def ensure_junction(run: TemplateRun, *, volume_uuid: str, junction_path: str) -> None:
    """Mount a volume at this junction path."""
    if run.ontap.get_volume(volume_uuid).junction_path != junction_path:
        run.ontap.mount_volume(
            volume_uuid,
            junction_path=junction_path,
        )
