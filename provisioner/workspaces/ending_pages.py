"""The steps of retiring and of purging a workspace, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.html import format_html

from provisioner.lib.times import duration_text
from provisioner.web.templatetags.cloneyard import ago, size
from provisioner.workspaces.events import asks_what_goes_along
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.unsubmitted import UnsubmittedWork

State = Workspace.State

_OVER = {
    State.RETIRED: "It is already retired.",
    State.RETIRING: "It is already being retired.",
    State.TRASHED: "It is already in the trash.",
    State.PURGING: "It is already being purged.",
}


def why_not_retired(workspace: Workspace) -> str:
    """Return why a workspace cannot be retired, "" if it can."""
    return _OVER.get(State(workspace.state), "")


def why_not_purged(workspace: Workspace) -> str:
    """Return why a workspace cannot be purged, "" if it can."""
    if workspace.state == State.TRASHED:
        return ""
    return f"It is not in the trash: {workspace.get_state_display().lower()}."


def retire_steps(
    work: UnsubmittedWork, *, has_choice: bool, trash_seconds: int
) -> Iterator[str]:
    """Yield what retiring a workspace does, one sentence per step.

    With a choice, its unsubmitted work was found before.
    """
    workspace = work.workspace
    if workspace.state == State.PROVISIONING:
        yield "Provisioning stops."
    if workspace.client_name:
        if not has_choice:
            again = " again" if work.checked_at else ""
            yield (
                f"Unsubmitted work is checked for{again}. If there is any, nothing is "
                "touched and you get the list."
            )
        yield format_html(
            "The Perforce client <code>{}</code> is deleted. Its spec is kept.",
            workspace.client_name,
        )
    yield from _going_along(workspace)
    if trash_seconds and workspace.ready_at:
        yield format_html(
            "The clone at <code>{}</code> moves to the trash for {}. "
            "Until then you can restore it with its client.",
            *(workspace.path, duration_text(trash_seconds)),
        )
        return
    yield format_html(
        "The files in <code>{}</code> are deleted with their clone.", workspace.path
    )
    if not workspace.client_name:
        yield "Nothing is rescued: a build-only workspace has no client."


def _going_along(workspace: Workspace) -> list[str]:
    """Return sentences of other features on what ends with the workspace."""
    answers = asks_what_goes_along.send(None, workspace=workspace)
    return [sentence for _, sentence in answers if sentence]


def purge_steps(workspace: Workspace) -> Iterator[str]:
    """Yield what purging a workspace does, one sentence per step."""
    yield format_html(
        "The clone <code>{}</code> is deleted with everything in it. "
        "It cannot be restored after that.",
        workspace.volume_name,
    )
    if workspace.unique_bytes is None:
        yield "Its own space is freed. It has not been measured yet."
    else:
        yield format_html(
            "Frees {}, the space it does not share with its template, as measured {}.",
            *(size(workspace.unique_bytes), ago(workspace.measured_at)),
        )
    yield from _going_along(workspace)
    if workspace.rescues.with_work().exists():
        yield "Rescued work stays where it is."
