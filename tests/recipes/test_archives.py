"""Verified archives: what is lost or damaged is found, counted and listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from provisioner.audit_log.models import Event
from provisioner.demo import depot
from provisioner.engine import states
from provisioner.engine.models import Step
from provisioner.engine.starting import start_operation
from provisioner.gateways.perforce.types import DamagedRevision
from provisioner.recipes.actions import verification_plan_save
from provisioner.recipes.models import (
    MOST_LISTED,
    DamagedFile,
    Verification,
    VerifiedDepot,
)
from provisioner.recipes.queries import servers_with_damage
from provisioner.recipes.steps.archives import FoundDamage
from provisioner.sandboxes.actions.keeping import sandbox_retry
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.steps.run import SandboxRun
from provisioner.sites.models import PerforceServer
from tests.support.factories import SandboxFactory
from tests.support.jobs import settle
from tests.support.lab_perforce import shelved
from tests.support.sandboxes import SandboxScene

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.integration]


def damage(scene: SandboxScene, name: str, content: str | None) -> None:
    """Replace the content of a file in the original's archives, or lose it."""
    p4 = scene.connected(scene.server.p4port)
    [found] = p4.run("fstat", "-Ol", f"//depot/{name}")
    p4.disconnect()
    places = scene.site.path_of("/prod_depot") / "content"
    path: Path = places / found["digest"][:2] / found["digest"]
    path.unlink()
    if content is not None:
        path.write_text(content)
        path.chmod(0o644)


def verify(scene: SandboxScene, name: str = "try") -> Sandbox:
    return settle(scene.create(name=name, purpose=Sandbox.Purpose.VERIFY))


def test_what_is_lost_or_damaged_is_found_and_outlives_the_sandbox(
    sandbox_scene: SandboxScene, client: Client
) -> None:
    scene = sandbox_scene
    scene.submit(scene.server.p4port, text="three\n", name="three.txt")
    p4 = scene.connected(scene.server.p4port)
    p4.save_depot({"Depot": "old", "Type": "unload", "Map": "old/..."})
    p4.disconnect()
    damage(scene, "one.txt", None)
    damage(scene, "two.txt", "other\n")

    sandbox = verify(scene)

    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    assert scene.left() == []
    found = DamagedFile.objects.order_by("path").values_list(
        "path", "revision", "change", "status"
    )
    assert list(found) == [
        ("//depot/one.txt", 1, 1, "missing"),
        ("//depot/two.txt", 1, 2, "bad"),
    ]
    depots = {each.name: each for each in VerifiedDepot.objects.all()}
    assert (depots["depot"].bad, depots["depot"].missing) == (1, 1)
    assert depots["depot"].seconds is not None
    assert "unload" in depots["old"].left_out
    verification = Verification.objects.get()
    assert verification.ended_at is not None
    assert servers_with_damage() == 1
    said = Event.objects.get(kind="archives_verified").message
    assert "1 damaged revisions, 1 lost" in said

    client.force_login(scene.by)
    where = f"/verifications/{verification.pk}/"
    page = client.get(where).text
    assert "//depot/one.txt" in page
    answer = client.get(f"{where}?as=csv")
    body = answer.getvalue().decode()
    assert "//depot/two.txt" in body
    assert "1 damaged, 1 lost" in client.get(f"/sandboxes/{sandbox.pk}/").text
    assert "1 damaged, 1 lost" in client.get(f"/perforce/{scene.server.pk}/").text


def test_shelved_files_are_read_where_the_plan_says_so(
    sandbox_scene: SandboxScene, client: Client
) -> None:
    scene = sandbox_scene
    p4 = scene.connected(scene.server.p4port)
    root = scene.scratch / "shelving"
    root.mkdir()
    form = p4.fetch_client("shelving")
    form["Root"], form["View"] = str(root), ["//depot/... //shelving/..."]
    p4.save_client(form)
    p4.client, p4.cwd = "shelving", str(root)
    p4.run("sync", "-q")
    two = root / "two.txt"
    two.chmod(0o644)
    two.write_text("on a shelf\n")
    change = int(shelved(p4, two))
    [found] = p4.run("verify", "-S", "//depot/...")
    p4.disconnect()
    places = scene.site.path_of("/prod_depot") / "content"
    (places / found["digest"][:2] / found["digest"]).unlink()
    assert verify(scene, "without").state == Sandbox.State.RETIRED
    assert (DamagedFile.objects.count(), servers_with_damage()) == (0, 0)
    verification_plan_save(
        by=scene.by,
        server=scene.server,
        host=scene.host,
        version=scene.version,
        has_shelved=True,
    )

    sandbox = verify(scene)

    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    lost = DamagedFile.objects.get()
    assert str(lost) == f"//depot/two.txt@={change}"
    row = VerifiedDepot.objects.get(verification__sandbox=sandbox, name="depot")
    assert (row.bad, row.missing, row.shelved_bad, row.shelved_missing) == (0, 0, 0, 1)
    assert servers_with_damage() == 1
    said = Event.objects.filter(kind="archives_verified").latest("pk").message
    assert "0 lost. Of shelved files 0 are damaged, 1 lost." in said
    client.force_login(scene.by)
    page = client.get(f"/verifications/{row.verification_id}/?kind=shelved").text
    assert "//depot/two.txt" in page
    page = client.get(f"/verifications/{row.verification_id}/?kind=revisions").text
    assert "//depot/two.txt" not in page
    assert (
        "of shelved files 0 damaged, 1 lost"
        in client.get(f"/sandboxes/{sandbox.pk}/").text
    )


def test_shelved_files_of_a_depot_are_read_again_after_an_interruption(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    verification_plan_save(
        by=scene.by,
        server=scene.server,
        host=scene.host,
        version=scene.version,
        has_shelved=True,
    )
    sandbox = scene.create(purpose=Sandbox.Purpose.VERIFY)
    half = VerifiedDepot.objects.create(
        verification=Verification.objects.create(sandbox=sandbox),
        name="depot",
        kind="local",
        bad=1,
        seconds=1.0,
        shelved_bad=7,
    )
    for path, revision in (("//depot/one", 1), ("//depot/stale", None)):
        DamagedFile.objects.create(
            depot=half, path=path, revision=revision, change=1, status="bad"
        )

    settle(sandbox)

    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    half.refresh_from_db()
    assert (half.bad, half.seconds, half.shelved_bad) == (1, 1.0, 0)
    assert half.shelved_seconds is not None
    assert [str(each) for each in DamagedFile.objects.all()] == ["//depot/one#1"]


@pytest.mark.parametrize("was_done", [True, False])
def test_depots_that_were_done_are_kept_and_others_done_again(
    sandbox_scene: SandboxScene, was_done: bool
) -> None:
    scene = sandbox_scene
    damage(scene, "one.txt", None)
    damage(scene, "two.txt", None)
    sandbox = scene.create(purpose=Sandbox.Purpose.VERIFY)
    half = VerifiedDepot.objects.create(
        verification=Verification.objects.create(sandbox=sandbox),
        name="depot",
        kind="local",
        bad=9,
        seconds=1.0 if was_done else None,
    )
    DamagedFile.objects.create(
        depot=half, path="//depot/stale", revision=1, change=1, status="bad"
    )

    settle(sandbox)

    assert sandbox.state == Sandbox.State.RETIRED, sandbox.status_message
    row = VerifiedDepot.objects.get()
    assert (row.bad, row.missing) == ((9, 0) if was_done else (0, 2))
    listed = set(DamagedFile.objects.values_list("path", "status"))
    found = {("//depot/one.txt", "missing"), ("//depot/two.txt", "missing")}
    assert listed == ({("//depot/stale", "bad")} if was_done else found)


def test_of_many_damaged_revisions_all_are_counted_and_the_first_listed() -> None:
    sandbox = SandboxFactory.create()
    operation = start_operation(
        SandboxOperation.CREATE, about=sandbox, by=sandbox.owner
    )
    [step, *_] = operation.steps.all()
    states.start_step(step)
    run = SandboxRun(Step.objects.select_related("operation__subject").get(pk=step.pk))
    depot = VerifiedDepot.objects.create(
        verification=Verification.objects.create(sandbox=sandbox),
        name="depot",
        kind="local",
    )
    found = FoundDamage(run, depot)
    for number in range(1, MOST_LISTED + 2):
        found.take(
            DamagedRevision(
                path="//depot/a",
                revision=number,
                change=number,
                action="edit",
                type="text",
                status="BAD",
            )
        )
    found.write()

    depot.refresh_from_db()
    assert (depot.bad, depot.missing) == (MOST_LISTED + 1, 0)
    assert depot.listed == DamagedFile.objects.count() == MOST_LISTED


def test_an_account_that_may_not_is_refused_by_name(
    sandbox_scene: SandboxScene,
) -> None:
    scene = sandbox_scene
    p4 = scene.connected(scene.server.p4port)
    depot.create_p4_user(p4, user="reader", password="secret-of-reader")
    p4.disconnect()
    rows = PerforceServer.objects.filter(pk=scene.server.pk)
    rows.update(p4user="reader")

    sandbox = verify(scene)

    assert sandbox.state == Sandbox.State.FAILED
    assert sandbox.status_code == "sandbox_login_failed", sandbox.status_message
    assert "password in Perforce's own database" in sandbox.status_message
    rows.update(p4user="cloneyard")
    sandbox_retry(by=scene.by, sandbox=sandbox)
    assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
    assert servers_with_damage() == 0
