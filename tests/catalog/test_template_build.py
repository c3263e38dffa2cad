"""Building a template on the lab: what is published, and what never is."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import (
    template_build_stop,
    template_update,
)
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.catalog.steps.commands import Built
from provisioner.catalog.steps.contents import Synced, ensure_clean, ensure_synced
from provisioner.catalog.steps.publishing import ensure_verified
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.settled_tree import changes_named
from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import find_result
from provisioner.engine.retries import FIRST_RETRY_SECONDS
from provisioner.gateways import registry
from provisioner.gateways.errors import Busy
from provisioner.gateways.hosts.build import note_of
from provisioner.gateways.hosts.file_digests import (
    MOST_FILES,
    FileDigest,
    differing_files,
)
from provisioner.gateways.hosts.tree_lock import TreeLock
from provisioner.gateways.hosts.writers import find_writers
from provisioner.gateways.ontap.types import VolumeSpec
from provisioner.gateways.perforce.specs import parse_client_spec
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.entries import entries_below
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.lab_builds import AS_ROOT, build
from tests.support.projects import Project
from tests.support.requests import workspace_create
from tests.support.tree_locks import beating

pytestmark = pytest.mark.django_db(transaction=True)


def build_well(template: Template, *, change: int | None = None) -> Snapshot:
    operation = build(template, change=change)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    snapshot = default_snapshot(template)
    assert snapshot is not None
    return snapshot


def step_of(operation: Operation, name: str) -> Step:
    return operation.steps.get(name=name)


def ontap_snapshots(template: Template) -> list[str]:
    ontap = registry.ontap(template.site)
    volume = ontap.find_volume(template.volume_name)
    return (
        []
        if volume is None
        else sorted(snapshot.name for snapshot in ontap.list_snapshots(volume.uuid))
    )


def assert_failed(template: Template, operation: Operation, *, code: str) -> str:
    """Assert that nothing was published and the reason is told; return it."""
    assert operation.state == Operation.State.FAILED, operation.state
    assert operation.status_code == code, operation.status_message
    assert (template.state, template.status_code) == (Template.State.FAILED, code)
    unsettled = (Step.State.WAITING, Step.State.QUEUED, Step.State.RETRYING)
    assert not operation.steps.filter(state__in=unsettled).exists()
    assert not template.snapshots.filter(name__endswith=f".b{operation.pk}").exists()
    assert not [n for n in ontap_snapshots(template) if n.endswith(f".b{operation.pk}")]
    assert operation.status_message == template.status_message
    return operation.status_message


# --- what is published


def test_a_build_publishes_a_snapshot_with_its_pin(
    published_template: Template, lab: Lab
) -> None:
    perforce = registry.perforce(published_template.site.perforce_server)

    snapshot = published_template.snapshots.get()

    assert default_snapshot(published_template) == snapshot
    newest = perforce.changes.latest((f"//depot/tree/...@{snapshot.change}",))
    assert snapshot.change == newest
    pinned = parse_client_spec(snapshot.client_spec)
    assert pinned.name == published_template.client_name
    assert pinned.root == str(published_template.path)
    have = perforce.files.have_list(published_template.client_name)
    assert (snapshot.have_count, snapshot.have_digest) == (have.count, have.digest)
    listed = lab.as_admin(client=published_template.client_name).run("have")
    assert snapshot.have_count == len(listed) > 20
    sample = [FileDigest(**each) for each in snapshot.sample]
    assert 1 < len(sample) <= MOST_FILES
    assert differing_files(published_template.path, sample) == []
    assert ontap_snapshots(published_template) == [snapshot.name]
    assert (published_template.path / "out" / "all").read_text().startswith("line of")


def test_the_volume_is_thin_and_holds_no_snapshots_but_ours(
    published_template: Template,
) -> None:
    ontap = registry.ontap(published_template.site)

    volume = ontap.find_volume(published_template.volume_name)

    assert volume is not None
    assert volume.guarantee == "none"
    assert volume.snapshot_reserve_percent == 0
    assert volume.snapshot_policy == "none"
    assert volume.export_policy == published_template.site.templates_policy
    assert volume.root_mode == "700"
    assert volume.junction_path == published_template.junction_path
    assert volume.comment == published_template.volume_comment
    published_template.refresh_from_db()
    assert published_template.volume_uuid == volume.uuid


def test_exactly_the_chosen_change_is_built(
    project: Project, make_template: Callable[..., Template]
) -> None:
    first = project.submit(kept="one\n", removed="here\n")
    project.submit(kept="two\n", removed=None, added="new\n")
    template = make_template(project)

    snapshot = build_well(template, change=first)

    assert snapshot.change == first
    assert (template.path / "kept.txt").read_text() == "one\n"
    assert (template.path / "removed.txt").exists()
    assert not (template.path / "added.txt").exists()


def test_a_second_build_is_incremental_and_leaves_workspaces_as_they_are(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(same="same\n", edited="old\n", deleted="old\n")
    template = make_template(project, build_command="cat *.txt > all.out")
    first = build_well(template)
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=template))
    untouched = (template.path / "same.txt").stat()
    project.submit(edited="new\n", deleted=None, added="new\n")

    operation = build(template)

    second = default_snapshot(template)
    assert second is not None
    assert second != first
    assert second.change > first.change
    assert second.ontap_uuid != first.ontap_uuid
    assert ontap_snapshots(template) == sorted([first.name, second.name])
    assert step_of(operation, "sync").progress["done"] == 3
    assert (template.path / "same.txt").stat().st_mtime_ns == untouched.st_mtime_ns
    assert (template.path / "same.txt").stat().st_ino == untouched.st_ino
    assert not (template.path / "deleted.txt").exists()
    assert (workspace.path / "edited.txt").read_text() == "old\n"
    assert (workspace.path / "deleted.txt").exists()
    assert not (workspace.path / "added.txt").exists()
    have = registry.perforce(template.site.perforce_server).files.have_list(
        workspace.client_name
    )
    assert (have.count, have.digest) == (first.have_count, first.have_digest)


def test_a_narrower_view_counts_from_the_next_build_on(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit_paths({"src/a.txt": "a\n", "art/b.txt": "b\n"})
    template = make_template(project)
    build_well(template)
    template_update(
        by=template.owner,
        template=template,
        view=f"//depot/{project.name}/src/... //any/src/...",
    )

    snapshot = build_well(template)

    assert snapshot.have_count == 1
    assert not (template.path / "art" / "b.txt").exists()


def test_progress_of_the_sync_is_recorded(built_template: Template) -> None:
    sync = step_of(built_template.operations.get(), "sync")
    files = built_template.snapshots.get().have_count

    assert sync.progress["unit"] == "files"
    assert sync.progress["done"] == sync.progress["total"] == files
    assert "files and" in sync.progress["text"]
    assert sync.progress["phase"] == "finishing"
    assert sync.progress["bytes"] == sync.progress["bytes_total"] > 0


@pytest.mark.skipif(not AS_ROOT, reason="only root can give files to another uid")
def test_files_of_the_template_belong_to_its_uid(published_template: Template) -> None:
    owners = {
        (path.lstat().st_uid, path.lstat().st_gid)
        for path in (published_template.path, *entries_below(published_template.path))
    }

    assert owners == {(20000, 20000)}


# --- what is asked for and cannot be


def test_a_change_that_is_not_there_is_refused(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(project)

    operation = build(template, change=10**6)

    message = assert_failed(template, operation, code="change_not_submitted")
    assert "1000000 is not a submitted change" in message


def test_a_pending_change_is_refused(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    change = project.p4.fetch_change()
    change["Description"] = "pending"
    pending = int(project.p4.save_change(change)[0].split()[1])
    template = make_template(project)

    operation = build(template, change=pending)

    assert_failed(template, operation, code="change_not_submitted")


def test_a_change_before_the_first_of_the_view_is_refused(
    project: Project, make_template: Callable[..., Template]
) -> None:
    before = project.submit(file="text\n")
    project.name += "/later"
    project.submit_paths({"later/file.txt": "text\n"})
    template = make_template(project)

    operation = build(template, change=before)

    message = assert_failed(template, operation, code="view_is_empty")
    assert str(before) in message


def test_a_view_whose_files_are_all_deleted_is_refused(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    project.submit(file=None)
    template = make_template(project)

    assert_failed(template, build(template), code="view_is_empty")


def test_a_view_of_an_empty_path_is_refused(
    project: Project, make_template: Callable[..., Template]
) -> None:
    template = make_template(project)

    message = assert_failed(template, build(template), code="view_is_empty")

    assert "Nothing was ever submitted" in message


def test_a_view_of_an_unknown_depot_is_reported(
    project: Project, make_template: Callable[..., Template]
) -> None:
    template = make_template(project)
    Template.objects.filter(pk=template.pk).update(view="//nowhere/... //any/...")

    operation = build(template)

    assert operation.state == Operation.State.FAILED
    assert "nowhere" in operation.status_message


# --- builds that fail


def test_a_failing_build_publishes_nothing_and_tells_its_first_error(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(project)
    good = build_well(template)
    template_update(
        by=template.owner,
        template=template,
        build_command="echo compiling; echo 'BOOM: no such thing' >&2; "
        "for n in 1 2 3 4 5 6 7 8 9; do echo going on $n; done; "
        "echo 'make: *** [all] Error 3'; exit 3",
        error_patterns="^boom:",
    )

    operation = build(template)

    message = assert_failed(template, operation, code="build_failed")
    assert "exit code 3" in message
    assert "First error, line 2 of the log:\ncompiling\nBOOM: no such" in message
    assert step_of(operation, "build").exit_code == 3
    log = step_of(operation, "build").log_path.read_text()
    assert log.startswith("compiling\nBOOM: no such thing\ngoing on 1\n")
    assert default_snapshot(template) == good
    assert ontap_snapshots(template) == [good.name]


def test_a_set_uid_file_of_a_build_gives_nobody_away(
    project: Project, make_template: Callable[..., Template]
) -> None:
    """Whoever reads a clone and runs the copy in it would be its owner."""
    project.submit(file="text\n")
    template = make_template(
        project,
        build_command="mkdir -p bin && cp /bin/true bin/tool && chmod 6755 bin/tool",
    )

    snapshot = build_well(template)

    assert (template.path / "bin/tool").stat().st_mode & 0o7777 == 0o755
    [remark] = [line for line in snapshot.remarks if "bin/tool" in line]
    assert "set-uid and set-gid" in remark


def test_a_clone_that_the_api_gives_has_no_set_uid_file_of_its_template(
    project: Project, make_template: Callable[..., Template], admin: User
) -> None:
    """An administrator has it built, and a developer asks for a workspace of it."""
    project.submit(file="text\n")
    command = "mkdir -p bin && cp /bin/true bin/tool && chmod 6755 bin/tool"
    template = make_template(project, build_command=command)
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    as_admin, as_alice = api_of(admin), api_of(alice)

    asked = as_admin.post(f"/api/v1/templates/{template.pk}/build")
    assert asked.status_code == 202, asked.json()
    settle(template)
    asked = as_alice.post("/api/v1/workspaces", {"template": template.name})
    workspace = settle(Workspace.objects.get(pk=asked.json()["id"]))

    told = as_alice.get(f"/api/v1/workspaces/{workspace.pk}").json()
    assert told["state"] == "ready", told["status_message"]
    tool = Path(told["path"]) / "bin" / "tool"
    assert tool.stat().st_mode & 0o7777 == 0o755


def test_a_template_can_be_built_again_after_a_failure(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(project, build_command="false")
    build(template)
    template_update(by=template.owner, template=template, build_command="true")

    build_well(template)

    template.refresh_from_db()
    assert (template.state, template.status_code) == (Template.State.READY, "")


def test_a_build_that_takes_too_long_is_stopped_with_its_children(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(
        project,
        build_command="sleep 300 & echo $! > child.pid; echo begun; sleep 300",
        build_timeout_seconds=1,
    )
    began = time.monotonic()

    operation = build(template)

    assert_failed(template, operation, code="build_timed_out")
    assert time.monotonic() - began < 60
    assert step_of(operation, "build").log_path.read_text() == "begun\n"
    child = Path("/proc", (template.path / "child.pid").read_text().strip(), "cmdline")
    assert not child.exists() or b"sleep" not in child.read_bytes()


def test_a_build_that_an_administrator_stops_ends_and_publishes_nothing(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(project, build_command="echo begun; sleep 300")
    began = time.monotonic()

    def stop_once_it_has_begun() -> None:
        running = Step.objects.filter(name="build", state=Step.State.RUNNING)
        while not running.exclude(progress={}).exists():
            assert time.monotonic() - began < 60
            time.sleep(0.05)
        template_build_stop(by=template.owner, template=template)
        connection.close()

    with ThreadPoolExecutor() as threads:
        stopped = threads.submit(stop_once_it_has_begun)
        operation = build(template)
        stopped.result()

    assert operation.state == Operation.State.CANCELED, operation.status_message
    assert step_of(operation, "build").state == Step.State.SKIPPED
    template.refresh_from_db()
    assert (template.state, template.status_code) == ("failed", "canceled")
    assert ontap_snapshots(template) == []
    template_update(by=template.owner, template=template, build_command="true")
    build_well(template)


def test_a_build_runs_unprivileged_and_with_a_clean_environment(
    project: Project,
    make_template: Callable[..., Template],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("P4PASSWD", "secret-of-the-worker")
    change = project.submit(file="text\n")
    template = make_template(
        project,
        build_command="id -u > uid.out; id -G > groups.out; env > env.out",
        build_environment={"FLAVOR": "debug"},
    )

    build_well(template)

    uid = 20000 if AS_ROOT else os.geteuid()
    assert (template.path / "uid.out").read_text().strip() == str(uid)
    if AS_ROOT:
        assert (template.path / "groups.out").read_text().strip() == "20000"
    lines = (template.path / "env.out").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines)
    assert environment["FLAVOR"] == "debug"
    assert environment["CLONEYARD_CHANGE"] == str(change)
    assert "secret-of-the-worker" not in environment.values()
    assert not [name for name in environment if name.startswith(("P4", "DJANGO"))]


def test_a_build_that_touches_versioned_files_is_refused(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(written="text\n", removed="text\n", other="text\n")
    command = "chmod u+w written.txt && echo more >> written.txt && rm -f removed.txt"
    template = make_template(project, build_command=command)

    operation = build(template)

    message = assert_failed(template, operation, code="build_changed_versioned_files")
    assert "written.txt" in message
    assert "removed.txt" in message
    assert "other.txt" not in message


@pytest.mark.skipif(not AS_ROOT, reason="it takes namespaces, which may be refused")
def test_a_template_may_keep_its_commands_from_the_network(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(
        project,
        commands_have_network=False,
        build_command="cat /proc/net/dev | grep -c : > interfaces.out",
    )

    build_well(template)

    assert (template.path / "interfaces.out").read_text() == "1\n"


DAEMON = (
    "setsid sh -c 'while :; do echo x >> grows; mkdir -p d; rmdir d; done' & "
    "until [ -s grows ]; do sleep 0.01; done"
)


def test_a_daemon_that_a_build_leaves_writes_no_more(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(project, build_command=DAEMON)

    build_well(template)

    grown = (template.path / "grows").stat()
    assert list(find_writers(template.path.resolve())) == []
    assert (template.path / "grows").stat().st_size == grown.st_size


def test_who_writes_to_a_tree_that_is_verified_is_named(
    project: Project, make_template: Callable[..., Template]
) -> None:
    project.submit(file="text\n")
    template = make_template(project)
    build_well(template)
    stray = template.path / "stray.out"

    with (
        stray.open("wb") as file,
        subprocess.Popen(["sleep", "300"], stdout=file) as writer,
    ):
        operation = build(template)
        writer.kill()

    message = assert_failed(template, operation, code="template_still_written")
    assert f"process {writer.pid} (sleep, uid {os.geteuid()})" in message
    assert "writes stray.out" in message
    build_well(template)


def test_what_vanishes_while_a_tree_is_verified_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(StepRefused, match=r"out/tmp vanished\.") as refused,
        changes_named(tmp_path),
    ):
        os.scandir(tmp_path / "out" / "tmp")

    assert refused.value.code == "template_still_written"
    with pytest.raises(PermissionError), changes_named(tmp_path):
        raise PermissionError(13, "no", str(tmp_path))


def test_opened_files_on_the_templates_client_are_refused(
    project: Project, make_template: Callable[..., Template], lab: Lab
) -> None:
    project.submit(file="text\n")
    template = make_template(project)
    build_well(template)
    p4 = lab.as_admin(client=template.client_name)
    p4.run("edit", f"//depot/{project.name}/file.txt")

    operation = build(template)

    message = assert_failed(template, operation, code="template_has_opened_files")
    assert f"//depot/{project.name}/file.txt" in message
    p4.run("revert", "//...")
    p4.disconnect()
    build_well(template)


def test_what_would_surprise_an_owner_is_kept_on_the_snapshot(
    project: Project, make_template: Callable[..., Template]
) -> None:
    (project.root / "link").symlink_to("/etc/hostname")
    project.p4.run("add", str(project.root / "link"))
    project.submit_paths({"Readme": "one\n", "README": "two\n"})
    template = make_template(project, build_command="echo P4CLIENT=mine > .p4config")

    snapshot = build_well(template)

    said = "\n".join(snapshot.remarks)
    assert len(snapshot.remarks) == 3, said
    assert ".p4config names a client" in said
    assert "link links to /etc/hostname" in said
    assert "differ only in case" in said


# --- each step again, half way, and without an answer


def test_a_step_that_was_done_already_changes_nothing(
    built_template: Template,
) -> None:
    operation = built_template.operations.get()
    ontap = registry.ontap(built_template.site)
    perforce = registry.perforce(built_template.site.perforce_server)

    def everything() -> tuple[object, ...]:
        volume = ontap.find_volume(built_template.volume_name)
        assert volume is not None
        client = perforce.clients.find(built_template.client_name)
        assert client is not None
        return (
            (volume.uuid, volume.junction_path, volume.export_policy, volume.comment),
            ontap.list_snapshots(volume.uuid),
            list(Snapshot.objects.values()),
            (client.view, client.root, client.options, client.description),
            perforce.files.have_list(built_template.client_name),
            (built_template.path / "out" / "all").read_text(),
        )

    before = everything()
    for spec in workflow.specs_of(operation):
        step = step_of(operation, spec.name)
        result = perform_again(step)
        assert everything() == before, spec.name
        if not isinstance(result, Synced | Built):  # those tell how long they took
            assert result == (result and find_result(operation, type(result))), (
                spec.name
            )


FAILURES_OF_ONTAP = {
    "volume": {"method": "POST", "path": "/api/storage/volumes*"},
    "mount": {"method": "PATCH", "path": "/api/storage/volumes/*"},
    "snapshot": {"method": "POST", "path": "/api/storage/volumes/*/snapshots*"},
}


def test_the_next_build_goes_on_after_an_ontap_job_that_failed(
    lab_template: Template, lab: Lab, jobs_emptied: None
) -> None:
    for name, request in FAILURES_OF_ONTAP.items():
        lab.break_ontap(
            {
                **request,
                "job_code": "917536",
                "job_message": "The disk shelf caught fire.",
            }
        )

        operation = build(lab_template)

        message = assert_failed(lab_template, operation, code="ontap_refused")
        assert "The disk shelf caught fire." in message
        assert step_of(operation, name).state == Step.State.FAILED
    lab.break_ontap()
    build_well(lab_template)
    assert len(ontap_snapshots(lab_template)) == 1


def test_the_next_build_goes_on_after_an_error_of_perforce(
    lab_template: Template, lab: Lab, jobs_emptied: None, settings: Settings
) -> None:
    settings.STEP_GIVE_UP_SECONDS = FIRST_RETRY_SECONDS
    for command in ("client", "sync", "reconcile", "have"):
        lab.break_perforce({"command": command, "error": "out of coffee"})

        operation = build(lab_template)

        assert operation.state == Operation.State.FAILED, command
        assert operation.status_code.startswith("perforce_")
        assert "out of coffee" in operation.status_message
        assert not lab_template.snapshots.exists()
    lab.break_perforce()
    build_well(lab_template)


@pytest.mark.integration
def test_what_a_killed_build_left_running_is_stopped_before_the_next_sync(
    lab_template: Template,
    lab: Lab,
    jobs_emptied: None,
    settings: Settings,
) -> None:
    build_well(lab_template)
    settings.STEP_GIVE_UP_SECONDS = FIRST_RETRY_SECONDS
    lab.break_perforce({"command": "sync", "error": "out of coffee"})
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as left:
        began = Path(f"/proc/{left.pid}/stat").read_text().rpartition(")")[2]
        note = note_of(lab_template.path, notes=Path(settings.LOG_DIR))
        note.write_text(f"{left.pid} {began.split()[19]}")

        operation = build(lab_template)

        assert step_of(operation, "sync").state == Step.State.FAILED
        assert left.wait(timeout=60) == -signal.SIGTERM
    lab.break_perforce()


def test_lost_replies_change_nothing(
    lab_template: Template, lab: Lab, jobs_emptied: None
) -> None:
    lost = {"drop": True, "when": "after", "times": 1}
    lab.break_ontap(*({**request, **lost} for request in FAILURES_OF_ONTAP.values()))
    lab.break_perforce(
        {"command": "client", "drop": "after", "times": 1},
        {"command": "sync", "drop": "after", "times": 1},
    )

    snapshot = build_well(lab_template)

    operation = lab_template.operations.get()
    retried = operation.steps.filter(attempt__gt=1).values_list("name", flat=True)
    assert {*FAILURES_OF_ONTAP, "client", "sync"} <= {*retried}
    assert ontap_snapshots(lab_template) == [snapshot.name]
    volumes = registry.ontap(lab_template.site).list_volumes(
        comment_prefix=lab_template.volume_comment
    )
    assert len(volumes) == 1
    have = registry.perforce(lab_template.site.perforce_server).files.have_list(
        lab_template.client_name
    )
    assert (snapshot.have_count, snapshot.have_digest) == (have.count, have.digest)


def test_what_a_lost_reply_was_about_may_come_while_it_is_asked_for_again(
    lab_template: Template, lab: Lab, jobs_emptied: None
) -> None:
    rules: list[dict[str, object]] = []
    for name in ("volume", "snapshot"):
        takes_long = {
            **FAILURES_OF_ONTAP[name],
            "job_hang_seconds": 2 * FIRST_RETRY_SECONDS,
            "times": 1,
        }
        rules += [{**takes_long, "drop": True, "when": "after"}, takes_long]
    lab.break_ontap(*rules)

    snapshot = build_well(lab_template)

    assert ontap_snapshots(lab_template) == [snapshot.name]


# --- what is somebody else's


def test_a_strangers_volume_of_our_name_is_left_alone(
    lab_template: Template, jobs_emptied: None
) -> None:
    ontap = registry.ontap(lab_template.site)
    stranger = ontap.create_volume(
        VolumeSpec(
            name=lab_template.volume_name,
            aggregate=lab_template.site.aggregate,
            size_bytes=20 * 2**20,
            comment="somebody else's",
            export_policy="default",
            uid=1,
            gid=1,
        )
    )

    operation = build(lab_template)

    message = assert_failed(lab_template, operation, code="volume_name_taken")
    assert lab_template.volume_name in message
    assert ontap.get_volume(stranger.uuid) == stranger
    ontap.delete_volume(stranger.uuid, force=True)


def test_a_strangers_client_of_our_name_is_left_alone(
    lab_template: Template, jobs_emptied: None
) -> None:
    perforce = registry.perforce(lab_template.site.perforce_server)
    stranger = ClientSpec(
        name=lab_template.client_name,
        owner=lab_template.site.perforce_server.p4user,
        root="/somewhere/else",
        description="somebody else's",
        view=(f"//depot/tree/... //{lab_template.client_name}/...",),
    )
    perforce.clients.save(stranger)

    operation = build(lab_template)

    assert_failed(lab_template, operation, code="client_name_taken")
    found = perforce.clients.find(stranger.name)
    assert found is not None
    assert (found.root, found.description) == (stranger.root, stranger.description)
    perforce.clients.delete(stranger.name)


def test_a_tree_is_left_alone_while_another_host_runs_a_command_in_it(
    lab_template: Template, jobs_emptied: None
) -> None:
    """A host that is cut off from the database goes on with its build."""
    run = TemplateRun(step_of(build(lab_template), "sync"))
    template = run.template
    (template.path / "object").write_text("being written")
    versioned = template.path / "Makefile"
    versioned.chmod(0o644)
    versioned.write_text("being written")
    there = TreeLock(template.path, place="h2", stale_seconds=9)

    for ensure in (ensure_clean, ensure_synced, ensure_verified):
        with (
            there.held() as lock,
            beating(lock),
            pytest.raises(Busy, match="A command still runs in"),
        ):
            ensure(run)

        assert versioned.read_text() == "being written"
        assert (template.path / "object").exists()
