"""Asking for a run: what is refused before anything happens, and what pages say."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, InvalidRequest, NotAllowed
from provisioner.qualification import refusals
from provisioner.qualification.actions.running import run_retry, run_start
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.reports import (
    compared,
    comparisons_of,
    phase_lines,
    published_beside,
    unlike,
)
from provisioner.qualification.summaries import LogFigures
from provisioner.sandboxes.models import Sandbox
from provisioner.server_log.parsing import LogParser
from tests.support.browsers import browser_of
from tests.support.factories import (
    QualificationRunFactory,
    SandboxFactory,
    SiteFactory,
    SnapshotFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db


def test_what_may_have_people_or_is_not_ready_is_refused_by_name() -> None:
    admin = UserFactory.create(is_staff=True)
    site = SiteFactory.create()
    server = site.perforce_server
    failed = SandboxFactory.create(
        site=site, state=Sandbox.State.FAILED, status_code="port_in_use"
    )
    ready = SandboxFactory.create(site=site)

    def code(profile: str = "browse", **given: Any) -> str:
        with pytest.raises(ActionRefused) as refused:
            run_start(by=admin, profile=profile, **given)
        return refused.value.code

    assert code(server=server) == "server_not_scratch"
    assert code(sandbox=failed) == "sandbox_not_ready"
    assert code(sandbox=ready, hosts=2) == "sandbox_out_of_reach"
    assert code(sandbox=ready, profile="deltas", hosts=2) == "one_host_alone"
    server.is_scratch = True
    server.save()
    assert code(server=server, is_cold=True) == "cold_needs_a_sandbox"
    assert code(server=server, profile="rim") == "profile_needs_a_sandbox"
    run_start(by=admin, profile="browse", server=server)
    assert code(server=server) == "already_measured"
    [run] = QualificationRun.objects.all()
    assert run.operations.count() == 1


def test_nonsense_is_refused_at_its_field() -> None:
    admin = UserFactory.create(is_staff=True)
    sandbox = SandboxFactory.create(owner=admin)

    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("profile", {"profile": "guess"}),
        ("files", {"files": 0}),
        ("repeats", {"repeats": 101}),
        ("server", {"server": sandbox.perforce_server}),
    )
    for field, given in wrong:
        asked = {"profile": "browse", "sandbox": sandbox, **given}
        with pytest.raises(InvalidRequest) as refused:
            run_start(by=admin, **asked)
        assert refused.value.field == field
    assert not QualificationRun.objects.exists()


def test_a_sandbox_is_measured_by_its_owner_and_a_server_by_administrators() -> None:
    sandbox = SandboxFactory.create()
    server = sandbox.perforce_server
    server.is_scratch = True
    server.save()

    with pytest.raises(NotAllowed):
        run_start(by=sandbox.owner, profile="browse", server=server)
    with pytest.raises(NotAllowed):
        run_start(by=UserFactory.create(), profile="browse", sandbox=sandbox)
    run = run_start(by=sandbox.owner, profile="browse", sandbox=sandbox)

    assert (run.children, run.rounds, run.files) == (32, 1024, 70_000)
    with pytest.raises(refusals.RunNotFailed):
        run_retry(by=sandbox.owner, run=run)


def test_two_runs_are_compared_by_their_repeats() -> None:
    first, second = (
        QualificationRunFactory.create(repeats=5, files=files)
        for files in (70_000, 700)
    )
    for run, rate, seconds in ((first, 10_000, 7.0), (second, 20_000, 7.0)):
        for repeat in range(1, 6):
            run.figures.create(
                repeat=repeat, code="commit_rate", value=rate + 10 * repeat
            )
            run.figures.create(repeat=repeat, code="elapsed", value=seconds + repeat)

    by_code = {line.figure.code: line for line in compared(first, second)}

    assert by_code["commit_rate"].comparison.outcome == "better"
    assert by_code["commit_rate"].share_text == "99.7 %"
    assert by_code["elapsed"].comparison.outcome == "not decided"
    assert unlike(first, second) == ["files: 70,000 and 700."]
    beside = [line for line in published_beside(first) if line.run_text]
    assert ("15,024 files/s to 21,387 files/s", "10,030 files/s") in [
        (line.published_text, line.run_text) for line in beside
    ]


def test_pages_and_csv_tell_a_run() -> None:
    run = QualificationRunFactory.create()
    run.figures.create(repeat=1, code="commit_rate", value=15_000)
    browser = browser_of(run.owner)

    detail = browser.get(reverse("qualification-detail", args=[run.pk]))
    report = browser.get(reverse("qualification-report", args=[run.pk]))
    csv = browser.get(reverse("qualification-csv", args=[run.pk]))
    asked = {"first": run.pk, "second": run.pk + 1}
    compare = browser.get(reverse("qualification-compare"), asked)

    assert "15,000 files/s" in detail.text
    assert "reference01: 25,200,000 files" in report.text
    lines = b"".join(csv).decode().splitlines()
    assert lines[1] == f"{run.pk},branchsubmit,1,commit_rate,files/s,15000"
    assert compare.status_code == 409
    assert "There is no run with this number." in compare.text


def test_a_run_is_not_tried_again_at_a_sandbox_that_is_retired() -> None:
    now = clocks.database_now()
    run = QualificationRunFactory.create(
        state=QualificationRun.State.FAILED, status_code="log_was_cut", ended_at=now
    )
    retry = reverse("qualification-retry", args=[run.pk])
    detail = reverse("qualification-detail", args=[run.pk])
    browser = browser_of(run.owner)
    assert retry in browser.get(detail).text

    Sandbox.objects.update(state=Sandbox.State.RETIRED, retired_at=now)

    page = browser.get(detail).text
    assert retry not in page
    assert "is retired: measure another one." in page


def test_runs_that_were_measured_alike_are_one_click_away() -> None:
    admin = UserFactory.create(is_staff=True)
    before, other, after = (
        QualificationRunFactory.create(
            sandbox__owner=admin,
            sandbox__name=name,
            files=files,
            release=f"P4D/LINUX26X86_64/{release}/1 (2026/01/01)",
        )
        for name, files, release in (
            ("before", 70_000, "2023.1"),
            ("small", 700, "2024.2"),
            ("after", 70_000, "2024.2"),
        )
    )
    QualificationRunFactory.create(sandbox__owner=admin, profile="sync")
    sandbox = after.sandbox
    assert sandbox is not None
    address = f"{reverse('qualification-compare')}?first={before.pk}&amp;second="

    found = comparisons_of(admin, after)
    run_page = browser_of(admin).get(reverse("qualification-detail", args=[after.pk]))
    sandbox_page = browser_of(admin).get(reverse("sandbox-detail", args=[sandbox.pk]))

    assert [(each.run, each.is_alike) for each in found] == [
        (before, True),
        (other, False),
    ]
    for page in (run_page, sandbox_page):
        assert f"{address}{after.pk}" in page.text
        assert "p4d 2023.1" in page.text


def test_a_link_to_the_form_says_what_is_measured() -> None:
    sandbox = SandboxFactory.create()

    page = browser_of(sandbox.owner).get(
        reverse("qualification-create"), {"sandbox": sandbox.name, "profile": "rim"}
    )

    assert f'<option value="{sandbox.name}" selected>' in page.text
    assert '<option value="rim" selected>' in page.text


def test_workspaces_are_requested_by_administrators_of_a_complete_account() -> None:
    snapshot = SnapshotFactory.create()
    template, admin = snapshot.template, UserFactory.create(is_staff=True)
    sandbox = SandboxFactory.create(owner=admin)

    def refused(by: User = admin, **given: Any) -> ActionRefused:
        asked = {"profile": "workspaces", "template": template, **given}
        with pytest.raises(ActionRefused) as caught:
            run_start(by=by, **asked)
        return caught.value

    assert isinstance(refused(by=UserFactory.create()), NotAllowed)
    assert refused(template=None).field == "template"
    assert refused(profile="browse").field == "template"
    assert refused(sandbox=sandbox).field == "server"
    assert refused(children=7).field == "children"
    assert refused(is_cold=True).code == "cold_needs_a_sandbox"
    assert refused(by=UserFactory.create(is_staff=True, uid=None, gid=None)).code == (
        "account_incomplete"
    )
    run = run_start(by=admin, profile="workspaces", template=template)
    assert (run.children, run.repeats, run.state) == (50, 3, "waiting")
    assert refused().code == "already_measured"


def test_phases_of_workspaces_are_told_with_number_median_and_p95() -> None:
    admin, template = (
        UserFactory.create(is_staff=True),
        SnapshotFactory.create().template,
    )
    run = run_start(by=admin, profile="workspaces", template=template, repeats=1)
    for number, seconds in enumerate((1.0, 2.0, 3.0, 6.0), start=1):
        run.times.create(
            at_once=10, repeat=1, number=number, phase="flush", seconds=seconds
        )
    [line] = phase_lines(run)

    page = browser_of(admin).get(reverse("qualification-detail", args=[run.pk]))
    progress = browser_of(admin).get(
        reverse("qualification-progress", args=[run.pk]), headers={"HX-Request": "true"}
    )

    assert [text for _, text in line.cells] == [
        "3.000 s",
        "2.500 s",
        "5.550 s",
        "6.000 s",
    ]
    assert line.number == "4"
    assert "5.550 s" in page.text
    assert "1 at once, repeat 1 of 1: 0 of 1 ready, 0 there." in progress.text


LOG = """
Perforce server info:
\t2026/11/28 10:00:00 pid 7 p4@cyq1h1r1a1-0 10.0.0.1 [cloneyard] 'user-integrate -v'

Perforce server info:
\t2026/11/28 10:00:01 pid 7 compute end 1.50s

Perforce server info:
\t2026/11/28 10:00:04 pid 7 completed 4.20s 1+1us 0+0io 0+0net 1k 0pf

Perforce server info:
\t2026/11/28 10:00:05 pid 8 p4@cyq1h1r1a1-0 10.0.0.1 [cloneyard] 'dm-CommitSubmit'

Perforce server info:
\t2026/11/28 10:00:08 pid 8 completed 3.00s 1+1us 0+0io 0+0net 1k 0pf

Perforce server info:
\t2026/11/28 10:00:05 pid 8 p4@cyq1h1r1a1-0 10.0.0.1 [cloneyard] 'dm-CommitSubmit'
--- lapse 3.00s
--- meta/commit(W)
---   total lock wait+held read/write 0ms+0ms/250ms+2000ms
--- db.integed
---   total lock wait+held read/write 0ms+0ms/0ms+1990ms
---   max lock wait+held read/write 0ms+0ms/0ms+1990ms

Perforce server info:
\t2026/11/28 10:00:05 pid 9 p4@cyq11h1r1a1-0 10.0.0.1 [cloneyard] 'dm-CommitSubmit'

"""


def test_a_commit_is_told_by_locks_that_the_log_names() -> None:
    parser, told = LogParser(), LogFigures()
    told.take(parser.feed(LOG.encode()), tokens=["cyq1h1r1a1"])
    told.take(parser.finish(), tokens=["cyq1h1r1a1"])

    commit = told.commit("cyq1h1r1a1")

    assert commit is not None
    assert (commit.commit, commit.is_by_locks, commit.compute) == (2.0, True, 1.5)
    assert commit.exiting == pytest.approx(0.75)
    assert told.commit("cyq1h1r2a1") is None
