"""People, rows, and the lab's servers: what most tests start from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice

import hypothesis
import pytest
from django.conf import settings
from django.test import Client, TransactionTestCase

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.gateways.perforce.connection import permit_files
from tests.support.api_clients import (
    api_as_admin,
    api_as_alice,
    api_as_carol,
    api_as_nobody,
)
from tests.support.browsers import (
    as_admin,
    as_alice,
    as_carol,
    as_newcomer,
    as_nobody,
)
from tests.support.clock import clock
from tests.support.collection import keep_what_is_compiled, pytest_collection
from tests.support.command_line import command_line
from tests.support.copies import copy_scene
from tests.support.databases import _migrated, django_db_setup
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory
from tests.support.homes import home_scene
from tests.support.jobs import run_jobs_once
from tests.support.lab import (
    built_template,
    control,
    lab,
    lab_site,
    lab_template,
    published,
    published_template,
)
from tests.support.mirrored_labs import mirrored_labs, two_clusters
from tests.support.mirrors import connectable, mirror_scene
from tests.support.newer_snapshots import alice_at_work, others
from tests.support.projects import make_template, project
from tests.support.sandboxes import admin_user_row, sandbox_scene
from tests.support.truncation import MAY_TRUNCATE_THE_AUDIT_LOG, empty_tables
from tests.support.work import at_work, lab_workspace
from tests.support.workspaces import build, failed, ready, refused, retired, workspace

# Tests play everybody, also people who work in their clients.
permit_files()

__all__ = [
    "_migrated",
    "admin_user_row",
    "alice_at_work",
    "api_as_admin",
    "api_as_alice",
    "api_as_carol",
    "api_as_nobody",
    "as_admin",
    "as_alice",
    "as_carol",
    "as_newcomer",
    "as_nobody",
    "at_work",
    "build",
    "built_template",
    "clock",
    "command_line",
    "connectable",
    "control",
    "copy_scene",
    "django_db_setup",
    "failed",
    "home_scene",
    "lab",
    "lab_site",
    "lab_template",
    "lab_workspace",
    "make_template",
    "mirror_scene",
    "mirrored_labs",
    "others",
    "project",
    "published",
    "published_template",
    "pytest_collection",
    "ready",
    "refused",
    "retired",
    "sandbox_scene",
    "two_clusters",
    "workspace",
]

keep_what_is_compiled()

# Playwright keeps an event loop in the test's thread; the ORM there is still sync.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

# No test looks for its rows after a crash of the whole database server.
MAY_LOSE_ITS_ROWS = "-c synchronous_commit=off"

# Files whose tests take minutes together, the longest first.
OF_MINUTES = (
    "chaos/test_chaos.py",
    "e2e/test_every_page.py",
    "e2e/test_journeys.py",
    "engine/test_killed_worker.py",
    "engine/test_fencing.py",
    "workspaces/test_trash.py",
    "drift/test_volumes.py",
    "test_rights.py",
    "contract/test_api_schema.py",
    "drift/test_adopting.py",
    "catalog/test_template_build.py",
    "catalog/test_template_room.py",
    "rescues/test_downloads.py",
    "routing/test_routed_in_lab.py",
    "lab/ontap/test_restart.py",
    "mirrors/test_homes.py",
    "workspaces/test_retire.py",
    "e2e/test_desks.py",
    "transfer/test_transfer.py",
    "drift/test_drill.py",
    "web/test_list_queries.py",
    "e2e/test_examples.py",
    "e2e/test_setup.py",
)

# How fast the machine is says nothing about what is tested, and what one change breaks
# is not for the next one to find by chance: every run tries the same examples.
hypothesis.settings.register_profile(
    "any_machine",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# Others each time, for whoever searches: make test ARGS=--hypothesis-profile=search
hypothesis.settings.register_profile(
    "search",
    hypothesis.settings.get_profile("any_machine"),
    derandomize=False,
)
hypothesis.settings.load_profile("any_machine")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many tests run at a time: most wait for the lab some of their time.

    Each worker collects all tests and starts a lab, which takes it 15 s of a processor.
    """
    return 5 * (os.cpu_count() or 1) // 2


@pytest.hookimpl(trylast=True)  # once those not asked for are out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the files of minutes out first: at the end all would wait for the last.

    xdist gives each of its workers an equal share of the tests, in this order.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, file in enumerate(OF_MINUTES):
        hands[number % workers] += [item for item in items if file in item.nodeid]
    dealt = {item for hand in hands for item in hand}
    others = iter([item for item in items if item not in dealt])
    left, ordered = len(items), list[pytest.Item]()
    for number, hand in enumerate(hands):
        share = left // (workers - number)
        left -= share
        ordered += [*hand, *islice(others, max(0, share - len(hand)))]
    items[:] = [*ordered, *others]


@pytest.fixture(autouse=True)
def _loopback_only(socket_disabled_beyond_loopback: None) -> None:
    """No test reaches beyond this machine."""


@pytest.fixture(scope="session")
def socket_disabled_beyond_loopback() -> Iterator[None]:
    import pytest_socket

    hosts = ["127.0.0.1", "127.0.0.2", "::1", "localhost"]
    pytest_socket.socket_allow_hosts(hosts, allow_unix_socket=True)
    yield
    pytest_socket._remove_restrictions()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """A worker's threads end with the test: they must not keep connections.

    A test may cut all of them: once the database is back, nobody waits long.
    """
    settings.DATABASES["default"]["CONN_MAX_AGE"] = 0
    options = settings.DATABASES["default"].setdefault("OPTIONS", {})
    options["pool"] = {
        "min_size": 1,
        "max_size": 60,
        "num_workers": 1,
        "reconnect_timeout": 2,
    }


@pytest.fixture(scope="session", autouse=True)
def _tables_emptied_fast(django_db_modify_db_settings: None) -> Iterator[None]:
    """A transactional test leaves rows: these go, and not all that Django would."""
    options = settings.DATABASES["default"].setdefault("OPTIONS", {})
    options["options"] = f"{MAY_TRUNCATE_THE_AUDIT_LOG} {MAY_LOSE_ITS_ROWS}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            TransactionTestCase, "_fixture_teardown", lambda _test: empty_tables()
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def _fast_passwords() -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def _trash_goes_at_the_first_check() -> None:
    """Purge at the first check, except in tests of the second one."""
    settings.PURGE_CONFIRM_SECONDS = 0.0


@pytest.fixture(scope="session", autouse=True)
def _static_files_where_they_are() -> None:
    """Nobody has to collect static files before a test, nor WhiteNoise to warn."""
    settings.STATIC_ROOT = settings.BASE_DIR / "static"
    settings.WHITENOISE_AUTOREFRESH = True
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        },
    }


@pytest.fixture
def alice(db: None) -> User:
    """Who owns things."""
    return UserFactory.create(username="alice")


@pytest.fixture
def carol(db: None) -> User:
    """A stranger."""
    return UserFactory.create(username="carol")


@pytest.fixture
def admin(db: None) -> User:
    """Who runs the place."""
    return UserFactory.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def ci(db: None) -> User:
    """A machine's account."""
    return UserFactory.create(username="ci", is_service=True)


@pytest.fixture
def template(db: None) -> Template:
    return TemplateFactory.create(name="main")


@pytest.fixture
def snapshot(template: Template) -> Snapshot:
    return SnapshotFactory.create(template=template)


@pytest.fixture
def signed_in(client: Client) -> Callable[[User], Client]:
    def sign_in(user: User) -> Client:
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def jobs_emptied(transactional_db: None) -> None:
    """Jobs are committed, and gone after the test with all that it wrote."""


@pytest.fixture
def run_jobs(jobs_emptied: None) -> Callable[[], None]:
    """Run every job that is queued, and those they queue, then return."""
    return run_jobs_once
