"""DATABASE_URL with one host, and with several."""

from __future__ import annotations

import pytest

from provisioner.lib.database_urls import BadDatabaseUrl, database_of, hosts_of


def test_a_server_that_takes_changes_is_wanted_and_a_dead_host_passed_over() -> None:
    database = database_of("postgresql://u:p%40@a:5433,b:5434/cloneyard")

    assert (database["HOST"], database["PORT"]) == ("a,b", "5433,5434")
    assert (database["USER"], database["PASSWORD"]) == ("u", "p@")
    assert database["OPTIONS"]["target_session_attrs"] == "read-write"
    assert database["OPTIONS"]["connect_timeout"] == 3
    assert hosts_of(database) == ["a", "b"]


def test_what_the_url_says_is_kept() -> None:
    url = "postgresql://a,b/cloneyard?target_session_attrs=primary&connect_timeout=7"

    options = database_of(url)["OPTIONS"]

    assert options == {"target_session_attrs": "primary", "connect_timeout": 7}


def test_hosts_may_be_a_parameter_as_sockets_are() -> None:
    database = database_of("postgresql:///cloneyard?host=/run/a,/run/b")

    assert hosts_of(database) == ["/run/a", "/run/b"]


def test_one_host_has_time_to_answer() -> None:
    database = database_of("postgresql://a/cloneyard")

    assert hosts_of(database) == ["a"]
    assert "connect_timeout" not in database["OPTIONS"]


def test_a_port_of_one_host_among_several_is_refused() -> None:
    """libpq would use it for all of them."""
    with pytest.raises(BadDatabaseUrl, match="one for each, or none"):
        database_of("postgresql://a:5433,b/cloneyard")
