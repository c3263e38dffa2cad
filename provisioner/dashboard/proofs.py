"""The contents of a workspace, and how they were verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from provisioner.dashboard.overviews import WorkspaceOverview
from provisioner.web.templatetags.cloneyard import ago, count, size
from provisioner.workspaces.models import Workspace

NOT_COMPARED = "The files were not compared with the depot individually"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One fact. `icon` shows how far it is verified; `lines` are details, folded."""

    icon: str
    title: str
    text: str = ""
    summary: str = ""
    lines: tuple[str, ...] = ()


def proofs_of(overview: WorkspaceOverview) -> list[Proof]:
    """Return facts about a workspace's contents, with their proofs."""
    workspace = overview.workspace
    return [
        _snapshot(workspace),
        *_server(workspace),
        *_have_list(overview),
        _owner(workspace),
        *_files(workspace),
        *_remarks(workspace),
        *_start(workspace),
    ]


def _snapshot(workspace: Workspace) -> Proof:
    snapshot = workspace.snapshot
    text = format_html(
        'Change <span class="change">{}</span> of {} with its build results: '
        "<code>{}</code>, built {}. Its {} were compared with the depot before.",
        *(snapshot.change, workspace.template.name, snapshot.name),
        ago(snapshot.created_at),
        count(snapshot.have_count, "versioned file", "versioned files"),
    )
    return Proof(icon="snapshot", title="Snapshot", text=text)


def _server(workspace: Workspace) -> Iterator[Proof]:
    if workspace.site_because:
        yield Proof(icon="info", title="Site", text=workspace.site_because)
    if workspace.routed_because:
        text = f"{workspace.perforce_server}. {workspace.routed_because}"
        yield Proof(icon="info", title="Perforce server", text=text)


def _have_list(overview: WorkspaceOverview) -> Iterator[Proof]:
    if not overview.workspace.client_name:
        return
    have = overview.have
    if not have:
        text = "Not compared yet: the client is not flushed."
        yield Proof(icon="waiting", title="Have list", text=text)
        return
    digest = have.have_digest
    text = format_html(
        'Equals that of the snapshot: {}, digest <code title="{}">{}</code>.',
        *(count(have.have_count, "file", "files"), digest, digest[:12]),
    )
    yield Proof(icon="done", title="Have list", text=text)


def _owner(workspace: Workspace) -> Proof:
    ownership = workspace.ownership
    if not ownership:
        text = f"Not verified yet: to be uid {workspace.uid}, gid {workspace.gid}."
        return Proof(icon="waiting", title="Owner", text=text)
    icon = "warning" if ownership.get("by") == "caller" else "done"
    return Proof(icon=icon, title="Owner", text=ownership["sentence"])


def _files(workspace: Workspace) -> Iterator[Proof]:
    if not workspace.client_name:
        return
    found = workspace.reconcile
    if found is None:
        when = " yet." if workspace.wants_reconcile else ": that was not requested."
        yield Proof(icon="skipped", title="Files", text=NOT_COMPARED + when)
    elif not found["count"]:
        text = format_html("<code>p4 reconcile -n</code> found no difference.")
        yield Proof(icon="done", title="Files", text=text)
    else:
        yield Proof(
            icon="warning",
            title="Files",
            text=format_html(
                "<code>p4 reconcile -n</code> found {}.",
                count(found["count"], "file that differs", "files that differ"),
            ),
            summary="Show them",
            lines=tuple(
                format_html(
                    '<span class="aside">{}</span> <code>{}</code>',
                    *(one["action"], one["path"]),
                )
                for one in found["findings"]
            ),
        )


def activity_of(overview: WorkspaceOverview) -> SafeString | str:
    """Return the last activity in a workspace, "" if it was never read."""
    workspace = overview.workspace
    if not workspace.client_name or workspace.activity_seen_at is None:
        return ""
    done = "Nothing was changed, shelved or submitted yet."
    if overview.work:
        last = format_html_join(
            ", ", "{} {}", [(what, ago(at)) for what, at in overview.work]
        )
        done = format_html("Last {}.", last)
    return format_html(
        '{} <span class="aside">Checked {}.</span>',
        *(done, ago(workspace.activity_seen_at)),
    )


def space_of(workspace: Workspace) -> SafeString:
    """Return a sentence about a workspace's volume and its measured space."""
    said: list[str] = [
        format_html(
            "Volume <code>{}</code>, {}.", workspace.volume_name, workspace.site
        )
    ]
    if workspace.unique_bytes is not None:
        rest = (
            "It is independent of its snapshot."
            if workspace.is_independent
            else "The rest is shared with its snapshot."
        )
        said.append(
            format_html("{} of its own. {}", size(workspace.unique_bytes), rest)
        )
    if workspace.fullness is not None:
        said.append(f"It is {workspace.fullness.sentence}")
    if workspace.unique_bytes is not None and workspace.max_inodes:
        used = f"{workspace.used_inodes:,} of {workspace.max_inodes:,}"
        said.append(f"{used} inodes are in use.")
    if workspace.measured_at:
        said.append(
            format_html(
                '<span class="aside">Measured {}.</span>', ago(workspace.measured_at)
            )
        )
    return _joined(said)


def _remarks(workspace: Workspace) -> Iterator[Proof]:
    remarks = workspace.snapshot.remarks
    if remarks:
        summary = f"{count(len(remarks), 'remark', 'remarks')} about the snapshot"
        yield Proof(icon="info", title="Remarks", summary=summary, lines=tuple(remarks))


def _start(workspace: Workspace) -> Iterator[Proof]:
    if workspace.is_warm:
        parts = "path and client are" if workspace.client_name else "path is"
        text = format_html(
            "{} It was created {}, so its {} named <code>{}</code>.",
            *(workspace.start_sentence, ago(workspace.made_ahead_at)),
            *(parts, workspace.made_as),
        )
        yield Proof(icon="done", title="Warm", text=text)
    elif workspace.cold_reason and workspace.pool_id:
        yield Proof(icon="info", title="Cold", text=workspace.start_sentence)


def _joined(sentences: list[str]) -> SafeString:
    return format_html_join(" ", "{}", [(each,) for each in sentences])
