"""What must be true of one workspace that has settled, and of everything at the end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from P4 import P4
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine.models import Operation, Step
from provisioner.lib.names import tag_in
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.chaos.edits import Desk, text_of
from tests.chaos.patience import from_database
from tests.chaos.witness import OntapWitness, Perforce

W = Workspace.State
DISCARDED = "work_discarded"
OTHER_CLIENTS = {"chaos-admin", "chaos-submitter"}
_ENDED = {
    W.TRASHED: WorkspaceOperation.RETIRE,
    W.RETIRED: WorkspaceOperation.PURGE,
}
SPLITS = (WorkspaceOperation.SPLIT, WorkspaceOperation.STOP_SPLIT)
IN_FLIGHT = (Step.State.QUEUED, Step.State.RUNNING, Step.State.RETRYING)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One broken promise: stuck, orphans, lost, touched, ended, or harness for ours."""

    kind: str
    what: str


def orphan(what: str) -> Fault:
    return Fault(kind="orphans", what=what)


def _lost(what: str) -> Fault:
    return Fault(kind="lost", what=what)


class Judge:
    """Compares rows with what the servers and the namespace have."""

    def __init__(self, *, site: Site, ontap: OntapWitness, p4: Perforce) -> None:
        self.site = site
        self.ontap = ontap
        self.p4 = p4

    # --- one workspace

    def check_at(self, workspace: Workspace, desk: Desk | None) -> list[Fault]:
        """Check a workspace that stands still."""
        volumes = self.ontap.volumes(tag=tag_in(workspace.volume_comment))
        found = self._placement(workspace, volumes)
        if desk is not None:
            found += self._edits(workspace, volumes, desk)
        found += self._nobody_asked(workspace)
        if workspace.state == W.READY and volumes:
            found += self._independence(workspace, volumes[0])
        if workspace.state in (W.READY, W.TRASHED, W.RETIRED):
            found += self._operations(workspace)
        if workspace.state == W.FAILED and not workspace.status_message:
            found.append(Fault(kind="stuck", what="FAILED without a reason"))
        return found

    def _independence(
        self, workspace: Workspace, volume: dict[str, Any]
    ) -> list[Fault]:
        """Check that a clone is one in its row and in ONTAP, once a split is over.

        What a split has done when it fails, the next measurement of its site notes.
        """
        split = from_database(
            lambda: workspace.operations.filter(kind__in=SPLITS).order_by("-pk").first()
        )
        is_clone = bool(volume.get("clone", {}).get("is_flexclone"))
        if split is None or is_clone == (workspace.split_at is None):
            return []
        if split.state != Operation.State.SUCCEEDED and not is_clone:
            return []
        said = f"{split.kind} {split.state}, and ONTAP says it is a clone: {is_clone}"
        return [orphan(said)]

    def _operations(self, workspace: Workspace) -> list[Fault]:
        """Check that what was accepted has ended, and that what failed says why."""
        operations = from_database(lambda: list(workspace.operations.all()))
        running = [o for o in operations if o.state == Operation.State.RUNNING]
        failed = [o for o in operations if o.state == Operation.State.FAILED]
        return [
            *(
                Fault(kind="stuck", what=f"{o} runs, and nothing moves")
                for o in running
            ),
            *(
                Fault(kind="stuck", what=f"{o} failed without a reason")
                for o in failed
                if not o.status_message
            ),
        ]

    def check_lease(self, workspace: Workspace, reason: str, verb: str) -> list[Fault]:
        """Check that it is kept for a reason without an end, or has a lease again."""
        is_kept = (workspace.keep_reason, workspace.expires_at) == (reason, None)
        if is_kept == (verb == "keep"):
            return []
        return [_lost(f"{verb}: kept for {workspace.keep_reason!r}")]

    def _nobody_asked(self, workspace: Workspace | None = None) -> list[Fault]:
        """Check that a person asked for each retirement and each purge.

        No lease ends in a run, and no stay in the trash: who ends one here is early.
        """
        endings = (WorkspaceOperation.RETIRE, WorkspaceOperation.PURGE)
        asked = Operation.objects.filter(kind__in=endings)
        if workspace is not None:
            asked = asked.filter(subject__workspace=workspace.pk)
        unasked = asked.filter(requested_by__username=SYSTEM_USERNAME)
        found = [
            _lost(f"{operation} of {operation.subject}, which nobody asked for")
            for operation in from_database(lambda: list(unasked.select_related()))
        ]
        if workspace is not None and workspace.state in _ENDED:
            wanted = _ENDED[W(workspace.state)]
            if not from_database(asked.filter(kind=wanted).exists):
                found.append(_lost(f"{workspace.state} without a {wanted}"))
        return found

    def _placement(
        self, workspace: Workspace, volumes: list[dict[str, Any]]
    ) -> list[Fault]:
        """Check volume, junction, export policy, client and directory against state."""
        state, found = workspace.state, []
        has_client = bool(self._clients(workspace.client_name or "-none-"))
        is_there = os.path.lexists(workspace.path)
        if len(volumes) > 1:
            found.append(orphan(f"{len(volumes)} volumes with one tag"))
        seen = {
            "volumes": len(volumes),
            "junction": volumes[0].get("nas", {}).get("path", "") if volumes else "",
            "policy": volumes[0]["nas"]["export_policy"]["name"] if volumes else "",
            "client": has_client,
            "path": is_there,
        }
        wanted: dict[str, Any] = {
            W.READY: {
                "volumes": 1,
                "junction": workspace.junction_path,
                "policy": self.site.export_policy,
                "client": bool(workspace.client_name),
                "path": True,
            },
            W.TRASHED: {
                "volumes": 1,
                "junction": "",
                "policy": self.site.frozen_policy,
                "client": False,
                "path": False,
            },
            W.RETIRED: {
                "volumes": 0,
                "junction": "",
                "policy": "",
                "client": False,
                "path": False,
            },
        }.get(W(state), seen)
        for key, value in wanted.items():
            if seen[key] != value:
                found.append(orphan(f"{state}: {key} is {seen[key]!r}, not {value!r}"))
        return found

    def _clients(self, pattern: str) -> set[str]:
        return self.p4.insist(
            lambda p4: {row["client"] for row in p4.run("clients", "-e", pattern)}
        )

    def _edits(
        self, workspace: Workspace, volumes: list[dict[str, Any]], desk: Desk
    ) -> list[Fault]:
        """Check that each edit is in the workspace, the trash or the rescue."""
        root = workspace.path if workspace.state == W.READY else None
        if root is None and volumes:
            root = self.ontap.tree_of(volumes[0]["uuid"])
        must_be_in_tree = workspace.state in (W.READY, W.TRASHED)
        settled = from_database(
            lambda: list(
                Event.objects.filter(
                    workspace=workspace, kind__in=("work_rescued", DISCARDED)
                )
                .order_by("pk")
                .values_list("kind", flat=True)
            )
        )
        was_discarded = settled[-1:] == [DISCARDED]
        shelves = desk.shelved_contents()
        archives = desk.archived_contents(Path(self.site.rescue_root), workspace)
        found = []
        for edit in desk.edits:
            in_tree = bool(
                root and edit.path and edit.token in text_of(root / edit.path)
            )
            if edit.kind == "deleted":
                in_tree = bool(root) and not os.path.lexists(root / edit.path)  # type: ignore[operator]
            token = edit.path if edit.kind == "deleted" else edit.token
            is_safe = in_tree or token in shelves or token in archives
            if edit.path and must_be_in_tree and not in_tree:
                found.append(
                    _lost(f"{workspace.state}: {edit.kind} is not in the tree")
                )
            elif not is_safe and not (
                # A shelf that was discarded is not made again by an undo.
                was_discarded or (edit.kind == "shelved" and DISCARDED in settled)
            ):
                found.append(_lost(f"{workspace.state}: {edit.kind} is nowhere"))
        if workspace.state == W.READY and DISCARDED not in settled:
            found += self._opened(workspace, desk)
        return found

    def _opened(self, workspace: Workspace, desk: Desk) -> list[Fault]:
        """Check that what was opened is so, or that its owner was told otherwise."""
        restore = from_database(
            lambda: workspace.operations.filter(kind=WorkspaceOperation.RESTORE).first()
        )
        told = str((restore and restore.findings) or "")
        opened = desk.opened()
        return [
            _lost(
                f"READY: {edit.kind} is opened for {opened.get(edit.path, 'nothing')}, "
                f"not for {edit.action}, and nobody was told"
            )
            for edit in desk.edits
            if edit.action
            and opened.get(edit.path) != edit.action
            and edit.path not in told
        ]

    # --- everything

    def check_template(self, template: Template) -> list[Fault]:
        """Check the published snapshots of a template that stands still."""
        volumes = self.ontap.volumes(tag=tag_in(template.volume_comment))
        if len(volumes) != 1:
            return [orphan(f"template {template}: {len(volumes)} volumes")]
        there = self.ontap.snapshots(volumes[0]["uuid"])
        rows = from_database(
            lambda: set(
                Snapshot.objects.filter(template=template, deleted_at=None).values_list(
                    "name", flat=True
                )
            )
        )
        return [
            orphan(f"template {template}: snapshot {name} {where}")
            for names, where in (
                (there - rows, "in ONTAP and in no row"),
                (rows - there, "in a row and not in ONTAP"),
            )
            for name in sorted(names)
        ]

    def check_everything(self) -> list[Fault]:
        """Compare rows and servers in both directions, now that nothing moves."""
        found = self.check_site()
        mounted = from_database(
            lambda: [
                *begun_templates(),
                *Workspace.objects.filter(state=W.READY).select_related("template"),
            ]
        )
        probe = f"cloneyard-probe-{from_database(lambda: self.site.perforce_server)}"
        found += _differences(
            "client",
            there={
                name
                for name in self._clients("*") - {*OTHER_CLIENTS, probe}
                if not name.startswith("import-")
            },
            wanted={s.client_name for s in mounted if s.client_name},
        )
        found += self._nobody_asked()
        return found + self._at_rest() + self._half_rescues() + self._changes()

    def check_site(self) -> list[Fault]:
        """Compare rows with the volumes and the namespace of the site."""
        here = {"site": self.site}
        workspaces = from_database(
            lambda: list(
                Workspace.objects.filter(**here)
                .exclude(state=W.RETIRED)
                .select_related("site", "template")
            )
        )
        templates = from_database(
            lambda: list(begun_templates().filter(**here).select_related("site"))
        )
        mirrors = from_database(
            lambda: list(Mirror.objects.filter(**here).select_related("template"))
        )
        copies = from_database(lambda: list(WorkspaceCopy.objects.filter(**here)))
        mounted: list[Workspace | Template] = [
            *templates,
            *(w for w in workspaces if w.state == W.READY),
        ]
        volumes = self.ontap.all_volumes()
        ours = [v for v in volumes if v.get("comment", "").startswith("cloneyard:")]
        root = Path(self.site.mount_root)
        found = _differences(
            "volume",
            there={v["comment"] for v in ours},
            wanted={
                *(one.volume_comment for one in workspaces),
                *(one.volume_comment for one in templates),
                *(one.volume_comment for one in mirrors),
                *(one.volume_comment for one in copies),
            },
        )
        found += _differences(
            "junction",
            there={p for v in ours if (p := v.get("nas", {}).get("path"))},
            wanted={s.junction_path for s in mounted},
        )
        found += _differences(
            "directory below the mount root",
            there={f"/{path.name}" for path in root.iterdir()},
            wanted={s.junction_path for s in mounted},
        )
        for template in templates:
            found += self.check_template(template)
        return found

    def _changes(self) -> list[Fault]:
        """Check that only shelves of rescues outlive their clients."""

        def ask(p4: P4) -> list[Fault]:
            clients = {row["client"] for row in p4.run("clients")}
            shelved = {row["change"] for row in p4.run("changes", "-s", "shelved")}
            return [
                orphan(f"pending change {row['change']} of {row['client']}")
                for row in p4.run("changes", "-s", "pending")
                if row["client"] not in clients
                and (row["change"] not in shelved or "-transfer-" in row["client"])
            ]

        return self.p4.insist(ask)

    def _half_rescues(self) -> list[Fault]:
        return [
            orphan(f"unfinished rescue {path}")
            for path in Path(self.site.rescue_root).glob("*/.*")
        ]

    def _at_rest(self) -> list[Fault]:
        """Check that no row waits for anything."""

        def ask() -> list[Fault]:
            running = Operation.objects.filter(state=Operation.State.RUNNING)
            steps = Step.objects.filter(state__in=IN_FLIGHT)
            jobs = ProcrastinateJob.objects.filter(
                status__in=("todo", "doing"), task_name="run_step"
            )
            return [
                Fault(kind="stuck", what=f"{len(rows)} {name} at the end: {rows[:3]}")
                for name, rows in (
                    ("operations running", [str(o) for o in running]),
                    ("steps in flight", [f"{s.operation_id} {s}" for s in steps]),
                    ("jobs", [str(j.pk) for j in jobs]),
                )
                if rows
            ]

        return from_database(ask)


def begun_templates() -> QuerySet[Template]:
    """Return the templates that anything was built for: others have a row alone.

    Few trials leave some of the templates that travel to nobody.
    """
    begun = Operation.objects.filter(subject=OuterRef("subject"))
    return Template.objects.filter(Exists(begun))


def _differences(name: str, *, there: set[str], wanted: set[str]) -> list[Fault]:
    return [orphan(f"{name} {one} without a row") for one in sorted(there - wanted)] + [
        orphan(f"a row without its {name} {one}") for one in sorted(wanted - there)
    ]
