"""The state: transactions, and what older labs left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from provisioner.lab.ontap.records import Snapshot, Svm
from provisioner.lab.ontap.store import Store

SVM = Svm("u1", name="svm_dev", root_volume_uuid="r")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "state")
    yield opened
    opened.close()


def test_rows_come_back(store: Store) -> None:
    store.save(SVM)
    store.save(replace(SVM, uuid="u2", name="other"))
    assert store.find(Svm, "u1") == SVM
    assert store.select(Svm, name="svm_dev") == [SVM]
    assert store.count(Svm) == 2
    store.save(replace(SVM, name="renamed"))
    assert store.select(Svm, name="svm_dev") == []
    store.remove(SVM)
    store.remove(SVM)
    assert store.find(Svm, "u1") is None
    assert store.find(Svm, None) is None
    with pytest.raises(LookupError):
        store.get(Svm, "u1")


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    def fail_half_way() -> None:
        with store.transaction():
            store.save(SVM)
            with store.transaction():
                store.remember("x", 1)
            raise ValueError

    with pytest.raises(ValueError):
        fail_half_way()
    assert store.find(Svm, "u1") is None
    assert store.setting("x") is None


def test_a_row_that_was_found_follows_what_is_saved(store: Store) -> None:
    store.save(SVM)
    assert store.find(Svm, "u1") == SVM
    renamed = replace(SVM, name="renamed")

    store.save(renamed)

    assert store.find(Svm, "u1") == renamed
    store.remove(renamed)
    assert store.find(Svm, "u1") is None


def test_a_row_that_was_found_in_a_transaction_goes_back_with_it(store: Store) -> None:
    store.save(SVM)

    def rename_and_fail() -> None:
        with store.transaction():
            store.save(replace(SVM, name="renamed"))
            assert store.get(Svm, "u1").name == "renamed"
            raise ValueError

    with pytest.raises(ValueError):
        rename_and_fail()

    assert store.find(Svm, "u1") == SVM


def test_numbers_are_given_once(store: Store) -> None:
    assert [store.next_number("n", start=5) for _ in range(3)] == [5, 6, 7]


def test_tables_of_an_older_lab_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "state"
    old = sqlite3.connect(path)
    old.execute("CREATE TABLE snapshot (key PRIMARY KEY, name, document TEXT)")
    old.execute(
        "INSERT INTO snapshot VALUES ('s', 'n', '"
        '{"uuid": "s", "volume_uuid": "v", "name": "n", "create_time": "t", '
        '"version_uuid": "x", "forgotten_field": 1}'
        "')"
    )
    old.commit()
    old.close()
    for _ in range(2):
        store = Store(path)
        (row,) = store.select(Snapshot, volume_uuid="v")
        assert (row.uuid, row.name, row.comment) == ("s", "n", None)
        store.close()
