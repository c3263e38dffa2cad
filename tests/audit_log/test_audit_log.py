"""The audit log: who, what, why, from where; and that nobody can change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import authenticate
from django.db import connection, models, transaction
from django.db.migrations import RunSQL
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.utils import IntegrityError
from django.test import Client

from provisioner.accounts import origin
from provisioner.accounts.models import Team, User
from provisioner.accounts.tokens import token_create, token_revoke
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.dashboard import receivers
from provisioner.engine.models import Operation, Step
from provisioner.leases.models import LeasePolicy
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.factories import PASSWORD, SiteFactory
from tests.support.requests import workspace_create

SECRET = "hunter2-of-the-depot"


@pytest.fixture
def event(template: Template) -> Event:
    record_event(template, kind="told", message="Told.")
    return Event.objects.get(kind="told")


# --- append-only


@pytest.mark.parametrize(
    "attempt",
    [
        lambda event: Event.objects.filter(pk=event.pk).update(message="Other."),
        lambda event: Event.objects.filter(pk=event.pk).delete(),
        lambda event: event.delete(),
        lambda event: event.save(),
        lambda event: Event.objects.filter(pk=-1).delete(),
        lambda event: execute("DELETE FROM audit_log_event"),
        lambda event: execute("UPDATE audit_log_event SET at = now()"),
        lambda event: execute(
            "INSERT INTO audit_log_event (id, at, kind, message) "
            "SELECT id, at, kind, message FROM audit_log_event "
            "ON CONFLICT (id, at) DO UPDATE SET message = ''"
        ),
        lambda event: execute(
            "SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL cloneyard.allow_truncate = off; "
            "TRUNCATE audit_log_event CASCADE"
        ),
        lambda event: execute(
            "SET LOCAL session_replication_role = replica; DELETE FROM audit_log_event"
        ),
    ],
)
def test_the_database_refuses_to_change_the_audit_log(
    event: Event, attempt: Callable[[Event], Any]
) -> None:
    before = list(Event.objects.values())

    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        attempt(event)

    assert list(Event.objects.values()) == before


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.django_db(transaction=True)
def test_only_where_it_is_allowed_a_database_is_emptied(event: Event) -> None:
    execute("TRUNCATE audit_log_event CASCADE")  # as between tests

    assert not Event.objects.exists()


def changes_of_the_trigger() -> dict[str, RunSQL]:
    """Return who brought it, and who does in a new database."""
    return {
        name: operation
        for (_, name), migration in MigrationLoader(None).disk_migrations.items()
        for operation in migration.operations
        if isinstance(operation, RunSQL) and "append_only" in str(operation.sql)
    }


@pytest.mark.django_db(transaction=True)
def test_the_migration_can_be_undone_and_done_again(event: Event) -> None:
    changes = changes_of_the_trigger()
    assert len(changes) == 1
    for change in changes.values():
        undo_and_do_again(change)

        with pytest.raises(IntegrityError), transaction.atomic():
            Event.objects.all().delete()


def undo_and_do_again(change: RunSQL) -> None:
    unchanged = ProjectState()
    with connection.cursor() as cursor, connection.schema_editor() as editor:
        change.database_backwards("audit_log", editor, unchanged, unchanged)
        cursor.execute("UPDATE audit_log_event SET message = 'Other.'")
        change.database_forwards("audit_log", editor, unchanged, unchanged)


def test_what_has_a_story_is_never_deleted_with_something_else() -> None:
    kept = (Workspace, Template, Snapshot, Operation, Step, Event)
    for model in kept:
        for field in model._meta.get_fields():
            if isinstance(field, models.ForeignKey):
                on_delete = field.remote_field.on_delete
                assert on_delete in (models.PROTECT, models.SET_NULL), field
    # Nothing that points at a workspace or an operation lets it go away, either.
    for other in apps.get_app_config("workspaces").get_models():
        for field in other._meta.get_fields():
            if isinstance(field, models.ForeignKey) and field.related_model in (
                *(Operation, Step, Event),
            ):
                assert field.remote_field.on_delete is models.PROTECT, field


# --- who, from where, about what


def test_names_outlive_renames(template: Template, alice: User) -> None:
    record_event(template, kind="told", message="Told.", actor=alice)
    Template.objects.filter(pk=template.pk).update(name="other")
    User.objects.filter(pk=alice.pk).update(username="alicia")

    event = Event.objects.get(kind="told")

    assert (event.subject_kind, event.subject_id) == ("template", template.pk)
    assert (event.subject, event.actor_name) == ("main", "alice")


def test_without_a_request_the_program_is_named(event: Event) -> None:
    assert event.via
    assert (event.actor, event.ip, event.user_agent) == (None, None, "")


def test_an_origin_ends_where_it_began(template: Template, alice: User) -> None:
    here = origin.Origin(via="token 1a2b", actor=alice, ip="192.0.2.7")
    with origin.coming_from(here), origin.coming_by("worker, job 7"):
        record_event(template, kind="inside", message="Told.")
    record_event(template, kind="outside", message="Told.")

    inside = Event.objects.get(kind="inside")
    assert (inside.actor, inside.via) == (alice, "worker, job 7")
    assert inside.ip == "192.0.2.7"
    assert Event.objects.get(kind="outside").actor is None


def test_an_event_of_a_page_has_its_session_and_address(
    client: Client, alice: User, snapshot: Snapshot
) -> None:
    client.force_login(alice)
    client.post(
        f"/templates/{snapshot.template_id}/get/",
        {"name": "hers"},
        headers={"user-agent": "Firefox\n" + "x" * 500},
        REMOTE_ADDR="192.0.2.7",
    )

    event = Event.objects.get(kind="workspace_requested")
    assert (event.actor, event.ip) == (alice, "192.0.2.7")
    assert event.via.startswith("session ")
    assert client.session.session_key is not None
    assert client.session.session_key not in event.via
    assert event.user_agent == ("Firefox?" + "x" * 500)[:120]
    assert (event.subject_kind, event.subject) == ("workspace", "hers")


@pytest.mark.parametrize(
    ("is_behind_proxy", "seen"), [(False, "192.0.2.7"), (True, "198.51.100.4")]
)
def test_only_our_own_proxy_is_believed(
    is_behind_proxy: bool, seen: str, client: Client, alice: User, settings: Any
) -> None:
    settings.BEHIND_TLS_PROXY = is_behind_proxy
    client.post(
        "/login/",
        {"username": "alice", "password": PASSWORD},
        headers={"X-Forwarded-For": "203.0.113.9, 198.51.100.4"},
        REMOTE_ADDR="192.0.2.7",
    )

    assert Event.objects.get(kind="signed_in").ip == seen


@pytest.mark.parametrize("address", ["", "unix:", "fe80::1%eth0", "::ffff:192.0.2.1"])
def test_an_address_that_is_none_is_left_out(
    address: str, client: Client, db: None
) -> None:
    assert client.get("/login/", REMOTE_ADDR=address).status_code == 200


# --- signing in and tokens


def test_signing_in_and_out_and_failing_to(client: Client, alice: User) -> None:
    client.post("/login/", {"username": "alice", "password": SECRET})
    client.post("/login/", {"username": "alice", "password": PASSWORD})
    client.post("/logout/")

    told = list(
        Event.objects.filter(kind__startswith="sign")
        .order_by("pk")
        .values_list("kind", "subject", "actor_name")
    )
    assert told == [
        ("sign_in_failed", "alice", ""),
        ("signed_in", "alice", "alice"),
        ("signed_out", "alice", "alice"),
    ]


@pytest.mark.django_db
def test_what_was_typed_as_a_name_may_be_a_password(client: Client) -> None:
    client.post("/login/", {"username": SECRET, "password": ""})
    client.post("/login/", {"username": SECRET, "password": SECRET})
    client.post("/login/", {"username": "nul\0", "password": SECRET})

    [event] = Event.objects.filter(kind="sign_in_failed")
    assert event.subject == ""
    assert SECRET not in repr(Event.objects.values())


def test_many_failures_do_not_fill_the_database(alice: User) -> None:
    for _ in range(receivers.FAILURES_A_MINUTE + 3):
        assert authenticate(username="alice", password=SECRET) is None

    failures = Event.objects.filter(kind="sign_in_failed")
    assert failures.count() == receivers.FAILURES_A_MINUTE


def test_events_of_tokens_have_no_secret(alice: User) -> None:
    token, secret = token_create(by=alice, name="ci")
    token_revoke(token)

    made, revoked = Event.objects.filter(kind__startswith="token_").order_by("pk")
    assert (made.kind, made.subject) == ("token_made", "alice")
    assert (revoked.kind, revoked.data["prefix"]) == ("token_revoked", token.token_key)
    assert secret not in repr(Event.objects.values())


def test_an_event_of_the_api_names_its_token(
    client: Client, alice: User, snapshot: Snapshot
) -> None:
    token, secret = token_create(by=alice)
    client.post(
        "/api/v1/workspaces",
        {"template": snapshot.template.name, "name": "hers"},
        content_type="application/json",
        headers={"authorization": f"Bearer {secret}", "user-agent": "curl/8"},
    )

    event = Event.objects.get(kind="workspace_requested")
    assert (event.actor, event.user_agent) == (alice, "curl/8")
    assert event.via == f"token {token.token_key}"


# --- rows that are kept by hand


def test_changes_at_the_admin_site_are_recorded(client: Client, admin: User) -> None:
    client.force_login(admin)
    team = Team.objects.create(name="engine")
    client.post(
        f"/admin/accounts/user/{admin.pk}/password/",
        {"password1": SECRET, "password2": SECRET, "usable_password": "true"},
    )

    event = Event.objects.get(kind="account_changed", actor=admin)
    assert event.data == {"password": None}
    assert event.via.startswith("session ")
    assert Event.objects.get(kind="team_made").subject == team.name
    assert SECRET not in repr(Event.objects.values())


@pytest.mark.django_db
def test_a_change_is_recorded_with_what_was_before() -> None:
    site: Site = SiteFactory.create(name="munich", free_percent=5)
    site.free_percent, site.export_clients = 10, ["10.0.0.0/24"]
    site.save()
    site.save()

    [event] = Event.objects.filter(kind="site_changed")
    assert event.subject == "munich"
    assert event.data == {
        "free_percent": {"before": 5, "after": 10},
        "export_clients": {"before": ["127.0.0.1"], "after": ["10.0.0.0/24"]},
    }


def test_policies_and_quotas_are_recorded(alice: User, template: Template) -> None:
    policy = LeasePolicy.objects.create(template=template, purpose="development")
    policy.default_seconds = 3600
    policy.save(update_fields=["default_seconds"])
    alice.max_workspaces = 5
    alice.save()
    policy.delete()

    kinds = Event.objects.filter(subject_kind__in=("policy", "account")).values_list(
        "kind", flat=True
    )
    assert set(kinds) >= {"policy_made", "policy_changed", "policy_deleted"}
    quota = Event.objects.filter(kind="account_changed", subject="alice").first()
    assert quota is not None
    assert quota.data == {"max_workspaces": {"before": None, "after": 5}}


def test_rights_are_recorded(admin: User, alice: User) -> None:
    from django.contrib.auth.models import Group

    alice.groups.add(Group.objects.create(name="operators"))

    event = Event.objects.filter(kind="account_changed", subject="alice").first()
    assert event is not None
    assert event.data == {"groups": {"add": ["operators"]}}


# --- workspaces


def test_moves_of_a_workspace_are_recorded(alice: User, snapshot: Snapshot) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template, name="hers")
    set_workspace_state(workspace, Workspace.State.FAILED, code="full", message="Full.")

    event = workspace.events.get(kind="workspace_failed")
    assert (event.message, event.subject, event.actor) == ("Full.", "hers", None)
