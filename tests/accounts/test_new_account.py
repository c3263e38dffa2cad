"""An administrator makes an account in one form."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from provisioner.accounts.models import User

pytestmark = pytest.mark.django_db

FORM = {
    "username": "erin",
    "usable_password": "true",
    "password1": "a long pass phrase",
    "password2": "a long pass phrase",
    "p4_user": "erin.p4",
    "uid": "20042",
    "gid": "20000",
}


def test_a_new_account_has_uid_and_gid_at_once(admin_client: Client) -> None:
    page = admin_client.get(reverse("admin:accounts_user_add")).content.decode()
    assert all(f'name="{name}"' in page for name in ("p4_user", "uid", "gid", "team"))

    response = admin_client.post(reverse("admin:accounts_user_add"), FORM)

    assert response.status_code == 302
    erin = User.objects.get(username="erin")
    assert (erin.uid, erin.gid, erin.perforce_name) == (20042, 20000, "erin.p4")


@pytest.mark.parametrize("field", ["uid", "gid"])
def test_root_is_refused_at_the_field(admin_client: Client, field: str) -> None:
    response = admin_client.post(
        reverse("admin:accounts_user_add"), {**FORM, field: "0"}
    )

    assert response.status_code == 200
    assert response.context["adminform"].form.errors
    assert not User.objects.filter(username="erin").exists()
