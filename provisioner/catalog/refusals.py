"""Why something about templates, builds and snapshots is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NoSnapshot(ActionRefused):
    """The template “{template}” has no published snapshot yet. Build it first, or wait
    for its build to end."""

    code = "no_snapshot"


class NoGoodSnapshot(ActionRefused):
    """The template “{template}” has no snapshot that is {quality}. Choose one of those
    that it has, or wait for a build that is."""

    code = "no_good_snapshot"


class SnapshotGone(ActionRefused):
    """The snapshot “{snapshot}” of this template is not there any more. Choose a newer
    one."""

    code = "snapshot_gone"


class TemplateBusy(ActionRefused):
    """The template “{name}” is being built. Wait for that build to end."""

    code = "template_busy"


class NothingToStop(ActionRefused):
    """The template “{name}” is not being built, or its snapshot is being taken: there
    is nothing left to stop."""

    code = "nothing_to_stop"


class TemplateInvalid(ActionRefused):
    """This template cannot be used as it is."""

    code = "template_invalid"
    http_status = 400


class NothingToRefresh(ActionRefused):
    """The template “{template}” has no snapshot of its whole view of which parts could
    be brought up to date. Build all of it first."""

    code = "nothing_to_refresh"
