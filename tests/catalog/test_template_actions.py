"""What an administrator may ask for: templates, their builds, and sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog import checks
from provisioner.catalog.actions.templates import (
    template_build,
    template_build_stop,
    template_create,
    template_update,
)
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.catalog.refusals import NothingToStop, TemplateBusy, TemplateInvalid
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.lib.refusals import (
    ActionRefused,
    InvalidRequest,
    NameTaken,
    NotAllowed,
    StepCutShort,
)
from provisioner.sites.actions.sites import site_save
from provisioner.sites.models import PerforceServer, Site
from tests.support.factories import PerforceServerFactory, SiteFactory, UserFactory

VIEW = "//depot/main/... //any/..."


@pytest.fixture
def site(db: None) -> Site:
    return SiteFactory.create(name="here")


def rows() -> tuple[object, ...]:
    """Return everything that an action may write."""
    tables = (Site, PerforceServer, Template, Operation, Step, Event, ProcrastinateJob)
    return tuple(list(table.objects.order_by("pk").values()) for table in tables)


def refuse(
    kind: type[ActionRefused], action: Callable[[], object], *, match: str
) -> None:
    """Assert that an action is refused with this reason and leaves nothing behind."""
    before = rows()
    with pytest.raises(kind, match=match):
        action()
    assert rows() == before


# --- rights


@pytest.mark.parametrize(
    "fields",
    [{}, {"is_service": True}, {"is_staff": True, "is_active": False}],
    ids=["person", "machine", "administrator who left"],
)
def test_only_an_administrator_may(fields: dict[str, bool], template: Template) -> None:
    user, site = UserFactory.create(**fields), template.site

    def change_site() -> None:
        site.title = "mine now"
        site_save(by=user, site=site)

    for action in (
        lambda: template_create(by=user, site=site, name="new", view=VIEW),
        lambda: template_update(by=user, template=template, description="mine now"),
        lambda: template_build(by=user, template=template),
        lambda: template_build_stop(by=user, template=template),
        change_site,
    ):
        refuse(NotAllowed, action, match="Ask the owner or an administrator")


# --- templates


def test_a_defined_template_has_its_event_and_no_build(admin: User, site: Site) -> None:
    template = template_create(by=admin, site=site, name="main", view=VIEW)

    assert (template.state, template.owner) == (Template.State.NEW, admin)
    event = template.events.get()
    assert (event.kind, event.actor) == ("template_defined", admin)
    assert not template.operations.exists()
    assert {job.task_name for job in ProcrastinateJob.objects.all()} == {checks.CHECK}


def test_a_template_can_follow_a_stream(admin: User, site: Site) -> None:
    template = template_create(by=admin, site=site, name="main", stream="//s/main")

    assert template.view_lines == ()


INVALID = [
    ({"view": "//... //any/..."}, "whole|every depot"),
    ({"view": "//*/main/... //any/*/..."}, "every depot"),
    ({"view": "-//depot/main/... //any/..."}, "maps no file"),
    ({"view": "//depot/main/..."}, "needs a depot path and a client path"),
    ({"view": "//depot/my docs/... //any/..."}, "double quotes"),
    ({"view": "//depot/a/... //one/...\n//depot/b/... //two/..."}, "same client"),
    ({"view": "//depot/main/... //any/*"}, "wildcards"),
    ({"view": "//depot/main/...@7 //any/..."}, "revision"),
    ({"view": "", "stream": ""}, "view lines or a stream"),
    ({"view": VIEW, "stream": "//s/main"}, "view lines or a stream"),
    ({"view": "", "stream": "//s/main#head"}, "is not the path of a stream"),
    ({"view": "", "stream": "//s/main\nView:"}, "is not the path of a stream"),
    ({"view": "", "stream": "//s/..."}, "is not the path of a stream"),
    ({"view": "", "stream": "main"}, "is not the path of a stream"),
    ({"view": VIEW, "client_options": "noallwrite"}, "either noclobber or clobber"),
    (
        {
            "view": VIEW,
            "client_options": "noallwrite noclobber nocompress locked nomodtime "
            "normdir",
        },
        "locked client",
    ),
    ({"view": VIEW, "client_options": "sparkling"}, "not a client option"),
    ({"view": VIEW, "submit_options": "sometimes"}, "submit options"),
    ({"view": VIEW, "line_end": "dos"}, "not a line ending"),
]


@pytest.mark.parametrize(("fields", "reason"), INVALID)
def test_a_definition_that_hurts_is_refused_with_its_reason(
    fields: dict[str, Any], reason: str, admin: User, site: Site, template: Template
) -> None:
    refuse(
        TemplateInvalid,
        lambda: template_create(by=admin, site=site, name="new", **fields),
        match=reason,
    )
    refuse(
        TemplateInvalid,
        lambda: template_update(by=admin, template=template, **fields),
        match=reason,
    )


MALFORMED = [
    ({"build_timeout_seconds": 0}, "build_timeout_seconds"),
    ({"volume_size_bytes": 1}, "volume_size_bytes"),
    ({"snapshots_to_keep": 0}, "snapshots_to_keep"),
    ({"description": "x" * 501}, "description"),
    ({"build_environment": ["A=1"]}, "build_environment"),
    ({"build_environment": {"A": 1}}, "build_environment"),
    ({"build_environment": {"A=B": "1"}}, "A=B"),
    ({"build_environment": {"": "1"}}, "build_environment"),
    ({"build_environment": {"A": "nul\0"}}, "build_environment"),
    ({"bisection_environment": {"A": 1}}, "bisection_environment"),
    ({"build_command": "nul\0"}, "build_command"),
    ({"error_patterns": "fine\n(unclosed"}, r"error_patterns: “\(unclosed” is no"),
]


@pytest.mark.parametrize(("fields", "reason"), MALFORMED)
def test_a_malformed_field_is_refused_by_its_name(
    fields: dict[str, Any], reason: str, admin: User, site: Site, template: Template
) -> None:
    refuse(
        ActionRefused,
        lambda: template_create(by=admin, site=site, name="new", view=VIEW, **fields),
        match=reason,
    )
    refuse(
        ActionRefused,
        lambda: template_update(by=admin, template=template, **fields),
        match=reason,
    )


@pytest.mark.parametrize("name", ["", "Main", "a_b", "-a", "a" * 41, "a\n"])
def test_what_is_not_a_name_is_refused(name: str, admin: User, site: Site) -> None:
    refuse(
        InvalidRequest,
        lambda: template_create(by=admin, site=site, name=name, view=VIEW),
        match="is not a name",
    )


def test_a_taken_name_is_refused(admin: User, template: Template) -> None:
    refuse(
        NameTaken,
        lambda: template_create(
            by=admin, site=template.site, name=template.name, view=VIEW
        ),
        match=template.name,
    )


def test_the_same_name_at_another_site_is_another_template(
    admin: User, template: Template, site: Site
) -> None:
    other = template_create(by=admin, site=site, name=template.name, view=VIEW)

    assert other.volume_name != template.volume_name


def test_an_update_counts_and_tells_what_it_changed(
    admin: User, template: Template
) -> None:
    template_update(
        by=admin, template=template, build_command="make", description="new"
    )

    template.refresh_from_db()
    assert (template.build_command, template.description) == ("make", "new")
    event = template.events.get(kind="template_changed")
    assert event.message == "Changed build_command, description."
    assert event.actor == admin


@pytest.mark.parametrize("field", ["name", "site", "tag", "state", "owner"])
def test_what_a_template_is_known_by_cannot_be_changed(
    field: str, admin: User, template: Template
) -> None:
    refuse(
        InvalidRequest,
        lambda: template_update(by=admin, template=template, **{field: "other"}),
        match=field,
    )


def test_a_template_that_is_being_built_is_left_alone(
    admin: User, template: Template
) -> None:
    template_build(by=admin, template=template)

    refuse(
        TemplateBusy,
        lambda: template_build(by=admin, template=template),
        match=template.name,
    )
    refuse(
        TemplateBusy,
        lambda: template_update(by=admin, template=template, description="late"),
        match=template.name,
    )


@pytest.mark.parametrize("change", [0, -1, 2**63])
def test_what_is_not_a_change_is_refused(
    change: int, admin: User, template: Template
) -> None:
    refuse(
        InvalidRequest,
        lambda: template_build(by=admin, template=template, change=change),
        match="change",
    )


def test_a_stopped_build_leaves_what_was_published_on_offer(
    admin: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    build = template_build(by=admin, template=template)
    at_work = build.steps.get(name="volume")
    engine_states.start_step(at_work)

    template_build_stop(by=admin, template=template)

    build.refresh_from_db()
    template.refresh_from_db()
    assert (build.state, template.state) == ("canceled", Template.State.READY)
    event = template.events.latest("pk")
    assert (event.actor, event.message) == (admin, build.status_message)
    assert default_snapshot(template) == snapshot
    refuse(
        NothingToStop,
        lambda: template_build_stop(by=admin, template=template),
        match=template.name,
    )
    # The step at work hears of it, and nothing is built beside it.
    refuse(
        TemplateBusy,
        lambda: template_build(by=admin, template=template),
        match=template.name,
    )
    with pytest.raises(StepCutShort):
        engine_states.record_progress(at_work, {"text": "synced one more"})
    engine_states.skip_step(at_work)
    assert template_build(by=admin, template=template).pk > build.pk


def test_a_build_that_is_publishing_is_not_stopped(
    admin: User, template: Template
) -> None:
    build = template_build(by=admin, template=template)
    publishing = build.steps.get(name="snapshot")
    engine_states.queue_step(publishing, job_id=1)
    engine_states.start_step(publishing)

    refuse(
        NothingToStop,
        lambda: template_build_stop(by=admin, template=template),
        match="its snapshot is being taken",
    )


def test_a_build_is_queued_with_what_was_asked_for(
    admin: User, template: Template
) -> None:
    operation = template_build(by=admin, template=template, change=7)

    template.refresh_from_db()
    assert template.state == Template.State.BUILDING
    assert operation.parameters == {"change": 7}
    assert operation.requested_by == admin
    queued = operation.steps.filter(state=Step.State.QUEUED)
    assert set(queued.values_list("name", flat=True)) == {"client"}
    assert "change 7" in template.events.get(kind="template_building").message


# --- sites


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("nocto", "two hosts may use the same workspace"),
        ("vers=3,local_lock=all", "two hosts may use the same workspace"),
        ("rw,sparkling", "sparkling"),
    ],
)
def test_mount_options_that_hurt_are_refused(
    options: str, reason: str, admin: User, site: Site
) -> None:
    site.mount_options = options

    refuse(InvalidRequest, lambda: site_save(by=admin, site=site), match=reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"template_uid": 0}, "template_uid"),
        ({"template_gid": 0}, "template_gid"),
        ({"name": "Not a Name"}, "name"),
        ({"ontap_host": ""}, "ontap_host"),
        ({"mount_root": "relative/path"}, "mount_root"),
        ({"mount_root": "/"}, "mount_root"),
        ({"reown": "magic"}, "reown"),
    ],
)
def test_a_site_with_a_bad_field_is_refused(
    fields: dict[str, Any], reason: str, admin: User, site: Site
) -> None:
    for field, value in fields.items():
        setattr(site, field, value)

    refuse(InvalidRequest, lambda: site_save(by=admin, site=site), match=reason)


def test_a_taken_site_name_is_refused(admin: User, site: Site) -> None:
    other = SiteFactory.build(
        name=site.name, perforce_server=PerforceServerFactory.create()
    )

    refuse(InvalidRequest, lambda: site_save(by=admin, site=other), match="name")


def test_a_good_site_is_saved(admin: User, site: Site) -> None:
    site.mount_options = "vers=3,hard,nconnect=8"
    site.title = "Munich"

    site_save(by=admin, site=site)

    site.refresh_from_db()
    assert (site.title, site.mount_options) == ("Munich", "vers=3,hard,nconnect=8")
