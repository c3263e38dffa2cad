"""Lists of tokens, templates, findings, webhooks, pools and bisections: each searches,
sorts, is sent as a table, and acts on many with a permission for each."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Model
from django.test import Client

from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.bisect.actions import bisection_start
from provisioner.bisect.models import Bisection
from provisioner.catalog import freshness
from provisioner.catalog.actions.refresh import (
    refresh_policy_save,
    template_refresh_pause,
)
from provisioner.catalog.models import Snapshot, Template
from provisioner.drift.models import Finding
from provisioner.leases.actions.policies import lease_policy_save
from provisioner.leases.models import LeasePolicy
from provisioner.notify.actions.webhooks import webhook_test
from provisioner.notify.models import Webhook, WebhookDelivery
from provisioner.pools.models import Pool
from provisioner.workspaces.models import Workspace
from tests.support.browsers import confirm, post, table
from tests.support.factories import TemplateFactory
from tests.support.findings import finding_about
from tests.support.warm_pools import filled


@pytest.fixture
def rows(alice: User, admin: User, ready: Workspace, snapshot: Snapshot) -> list[Model]:
    """One of everything that is listed, most of it alice's."""
    template = snapshot.template
    token_create(by=alice, name="nightly")
    token_create(by=admin, name="other")
    return [
        finding_about(ready, subject="cy_left_over"),
        Webhook.objects.create(
            owner=alice, url="https://hooks.example/", events=["template.built"]
        ),
        Pool.objects.create(
            template=template, site=template.site, purpose="ci", owner=alice, size=2
        ),
        bisection_start(by=alice, template=template, good=1, bad=9),
    ]


LISTS = [
    # address, what finds it, what it is named by in forms, what is done, what is said
    ("/tokens/everybody/", "nightly", ApiToken, "revoke", "Requests of alice with it"),
    ("/templates/", "main", Template, "build", "It is built at the newest change."),
    ("/refreshes/", "main", Template, "pause", "Built on request only"),
    ("/drift/", "left_over", Finding, "resolve", "Delete the volume cy_left_over"),
    ("/webhooks/", "hooks", Webhook, "off", "It receives no events until"),
    ("/pools/", "alice", Pool, "delete", "Its 0 members are retired"),
    ("/bisections/", "alice", Bisection, "stop", "No further change is tested"),
]


@pytest.mark.parametrize(("address", "word", "model", "do", "said"), LISTS)
def test_every_list_finds_sorts_downloads_and_acts_on_many(
    address: str,
    word: str,
    model: type[Model],
    do: str,
    said: str,
    rows: list[Model],
    as_admin: Client,
    as_carol: Client,
    django_assert_max_num_queries: Any,
) -> None:
    with django_assert_max_num_queries(20):
        page = as_admin.get(f"{address}?q={word}").text
    assert f'name="do" value="{do}"' in page
    assert len(table(as_admin, f"{address}?as=csv&q={word}")) == 1
    assert not table(as_admin, f"{address}?as=csv&q=nowhere")
    assert "matches.</p>" in as_admin.get(f"{address}?q=nowhere").text
    row = model._default_manager.order_by("pk").last()
    if isinstance(row, ApiToken):
        row = ApiToken.objects.get(name=word)
    key = row.token_key if isinstance(row, ApiToken) else row.pk  # type: ignore[union-attr]  # there is one

    preview = post(as_admin, address, do=do, chosen=[key])
    assert said in preview.content.decode()
    assert model._default_manager.filter(pk=row.pk).exists()  # type: ignore[union-attr]  # there is one
    done = confirm(as_admin, preview, address)

    assert done["Location"] == address
    assert ": 1 " in as_admin.get(address).text
    theirs = post(as_carol, address, do=do, chosen=[key], step="sure")
    assert theirs.status_code in (403, 422), "carol may not, and is not offered it"


def test_who_made_a_token_revokes_it_among_their_own(
    rows: list[Model], as_alice: Client, alice: User
) -> None:
    mine, theirs = ApiToken.objects.get(user=alice), ApiToken.objects.get(name="other")
    page = as_alice.get("/tokens/").text
    assert f'name="chosen" value="{mine.token_key}"' in page
    assert mine.digest not in page

    both = [mine.token_key, theirs.token_key, "\0"]
    preview = post(as_alice, "/tokens/", do="revoke", chosen=both)
    assert "Revoke 1 token?" in preview.content.decode()
    confirm(as_alice, preview, "/tokens/")

    assert list(ApiToken.objects.all()) == [theirs]


def test_a_refresh_is_paused_and_resumed_with_its_policy_as_it_was(
    admin: User, as_admin: Client, as_alice: Client
) -> None:
    one, other = (
        TemplateFactory.create(name="one"),
        TemplateFactory.create(name="other"),
    )
    refresh_policy_save(by=admin, template=one, mode="cron", cron="0 3 * * *")
    template_refresh_pause(by=admin, template=other, is_paused=True)

    sent = {"do": "pause", "chosen": [one.pk, other.pk]}
    preview = post(as_admin, "/templates/", **sent)
    text = preview.content.decode()
    assert "Built at 0 3 * * * (UTC) if something was submitted before. Paused." in text
    assert "The refresh of “other” is paused already." in text
    confirm(as_admin, preview, "/templates/")

    policy = freshness.policy_of(one)
    assert (policy.is_paused, policy.cron) == (True, "0 3 * * *")
    template_refresh_pause(by=admin, template=one, is_paused=False)
    assert freshness.policy_of(one).sentence.endswith("submitted before.")
    assert "chosen" not in as_alice.get("/templates/").text


def test_what_was_sent_to_a_webhook_is_found_and_sent_again(
    rows: list[Model], as_alice: Client, as_carol: Client, alice: User
) -> None:
    webhook = Webhook.objects.get()
    address = f"/webhooks/{webhook.pk}/"
    one = webhook_test(by=alice, webhook=webhook)
    settled = {"state": WebhookDelivery.State.GIVEN_UP, "next_try_at": None}
    WebhookDelivery.objects.update(error="No answer.", **settled)
    webhook_test(by=alice, webhook=webhook)

    [found] = table(as_alice, f"{address}?as=csv&q=answer&sort=-event")
    assert found["message_id"] == str(one.message_id)
    preview = post(as_alice, address, do="again", chosen=[one.pk])
    assert "It is sent to hooks.example again." in preview.content.decode()
    assert webhook.deliveries.count() == 2
    confirm(as_alice, preview, address)

    assert webhook.deliveries.count() == 3
    assert as_carol.get(address).status_code == 404
    sent = {"do": "again", "chosen": [one.pk], "step": "sure"}
    assert post(as_carol, address, **sent).status_code == 404


def test_policies_of_templates_are_removed_after_a_preview(
    admin: User, as_admin: Client, snapshot: Snapshot
) -> None:
    address = "/lease-policies/"
    for purpose, template in (("ci", snapshot.template), ("ci", None)):
        lease_policy_save(
            by=admin,
            template=template,
            purpose=purpose,
            default_seconds=3600,
            maximum_seconds=None,
            trash_seconds=0,
            warn_seconds=[],
        )
    [row] = table(as_admin, f"{address}?as=csv&q=main")
    assert (row["purpose"], row["default_seconds"]) == ("ci", "3600")
    own, general = (
        LeasePolicy.objects.get(template__isnull=is_general)
        for is_general in (False, True)
    )

    both = [own.pk, general.pk]
    preview = post(as_admin, address, do="remove", chosen=both)
    assert "Remove 1 policy?" in preview.content.decode()
    assert "No workspace is affected." in preview.content.decode()
    confirm(as_admin, preview, address)

    assert list(LeasePolicy.objects.all()) == [general]


def test_sites_and_members_of_a_pool_are_searched_and_downloaded(
    rows: list[Model], as_admin: Client, as_alice: Client, snapshot: Snapshot
) -> None:
    site, pool = snapshot.template.site, Pool.objects.get()
    [row] = table(as_admin, f"/sites/?as=csv&q={site.name}&sort=-templates")
    assert (row["name"], row["templates"]) == (site.name, "1")
    assert not table(as_admin, "/sites/?as=csv&q=nowhere")
    assert "No site matches." in as_admin.get("/sites/?q=nowhere").text
    [member] = filled(pool)[:1]

    [row] = table(as_admin, f"/pools/{pool.pk}/?as=csv&q={member.name}")

    assert row["change"] == str(snapshot.change)
    assert not table(as_admin, f"/pools/{pool.pk}/?as=csv&q=nowhere")
    assert as_alice.get("/sites/").status_code == 403
    assert as_alice.get(f"/pools/{pool.pk}/?as=csv").status_code == 403
