"""The odd texts where other systems say them: providers, directories, servers, files.

Each is read or refused in a sentence, in bounded time, and none can harm a row.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from provisioner.api.fields import IdOrName, Name, Text
from provisioner.directory.people import as_person
from provisioner.gateways.directory.configuration import Directory
from provisioner.gateways.directory.connection import Entry
from provisioner.gateways.directory.entries import ATTRIBUTES, is_called, person_of
from provisioner.gateways.directory.names import (
    bind_name,
    comparable,
    filter_for,
    first_value,
    lies_below,
    subject_in_filter,
)
from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.checkpoint_files import read_checkpoint
from provisioner.gateways.perforce.types import PerforcePerson
from provisioner.gateways.tracing.exchanges import OntapExchange, PerforceExchange
from provisioner.gateways.tracing.masking import masked
from provisioner.gateways.tracing.pseudonyms import Pseudonyms
from provisioner.identities.actions import account_name, is_address
from provisioner.identities.people import Person
from provisioner.identities.refusals import NameMissing
from provisioner.lib.storable import storable
from provisioner.perforce_sign_in import people as of_perforce
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.refusals import NotAServerLog
from provisioner.single_sign_on import actions as single_sign_on
from tests.support.directory_settings import GOOD
from tests.support.odd_texts import READ_WITHIN_SECONDS, TEXTS

DIRECTORIES = [
    Directory.of(kind, **{**GOOD, "id_base": 1000})
    for kind in ("openldap", "active-directory")
]
LOG = b"""
Perforce server info:
\t2026/11/29 10:00:00 pid 17 alice@ws 10.0.0.1 [p4/v92] 'user-sync WORD'

Perforce server info:
\t2026/11/29 10:00:01 pid 17 completed 1.0s
--- db.have
---   rows get+pos+scan put+del WORD
"""
RECORDS = b"@pv@ 9 @db.counters@ @%s@ %s \n@rv@ 1 @db.change@ %s @%s@\n"


def in_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def of_claims(text: str) -> list[Person]:
    """Each claim as this text, and as values of other types with it inside."""
    names = ("preferred_username", "email", "given_name", "family_name", "groups")
    values = (text, [text], {text: text}, [[text], {text: [text]}], None, -1, 1e300)
    return [
        single_sign_on.person_of(
            {
                **{"sub": "s", "uidNumber": value, "gidNumber": text},
                **{"email_verified": value, **dict.fromkeys(names, value)},
            }
        )
        for value in values
    ]


def of_entries(text: str) -> list[Person]:
    """Each attribute of an entry as this text, in UTF-8 and not."""
    people = []
    for directory in DIRECTORIES:
        for value in (in_bytes(text), in_bytes(text) + b"\xff"):
            names = (*ATTRIBUTES, directory.id_attribute, directory.username_attribute)
            entry = Entry(
                dn=text, values={name.lower(): [value, value] for name in names}
            )
            is_called(directory, entry, text)
            one = {**entry.values, directory.id_attribute.lower(): [value]}
            found = person_of(
                directory,
                Entry(dn=text, values=one),
                name=text,
                groups=frozenset({text}),
                now=timezone.now(),
            )
            assert found is not None or "\0" in text
            if found is not None:
                people.append(as_person(found, issuer=directory.issuer))
    return people


def of_users(text: str) -> list[Person]:
    said = PerforcePerson(user="u", email=text, full_name=text)
    return [of_perforce.as_person(said, groups=[text])]


def names_of_directories(text: str) -> None:
    for directory in DIRECTORIES:
        filtered = filter_for(directory.user_filter, text)
        assert filtered.count("(") == directory.user_filter.count("(")
        assert filtered.count("*") == directory.user_filter.count("*")
    if text:  # nobody is asked about without a name
        bind_name("uid={name},dc=example,dc=com", text)
    first_value(text)
    comparable(text)
    lies_below(text, "dc=example,dc=com")
    with suppress(ValueError):
        subject_in_filter("objectGUID", text)


def logs(text: str) -> None:
    data = in_bytes(text)
    for said in (data, LOG.replace(b"WORD", data), LOG.replace(b"info", data)):
        parser = LogParser()
        with suppress(NotAServerLog):
            for at in range(0, len(said), 97):
                parser.feed(said[at : at + 97])
            parser.finish()


def traces(text: str) -> None:
    """What goes into a trace, whose texts were somebody's."""
    names = Pseudonyms()
    record = {text: text, "depotFile": text, "list": [text]}
    for exchange in (
        OntapExchange(
            method="GET",
            path=text,
            query={text: text, "name": text},
            sent={text: {text: [text]}},
            body=record,
        ),
        PerforceExchange(
            user=text,
            client=text,
            host=text,
            command=("sync", text),
            form=text,
            records=[record],
            texts=[text],
        ),
    ):
        masked(exchange, names).as_json()


def fields(text: str) -> None:
    for field in (IdOrName(), Name(), Text(max_length=100)):
        for value in (text, [text], {text: text}):
            with suppress(ValidationError):
                field.run_validation(value)


SAID_OF_PEOPLE: dict[str, Callable[[str], list[Person]]] = {
    "claims": of_claims,
    "entries": of_entries,
    "users": of_users,
}
READERS: dict[str, Callable[[str], Any]] = {
    **SAID_OF_PEOPLE,
    "names of directories": names_of_directories,
    "logs": logs,
    "traces": traces,
    "fields of the API": fields,
}


@pytest.mark.parametrize("name", READERS)
def test_every_odd_word_of_others_is_read_or_refused(name: str) -> None:
    started = time.thread_time()  # however busy the machine is
    for text in TEXTS:
        READERS[name](text)
    assert time.thread_time() - started < READ_WITHIN_SECONDS


@pytest.mark.parametrize("name", SAID_OF_PEOPLE)
def test_what_is_said_of_people_can_be_stored(name: str) -> None:
    for text in TEXTS:
        for person in SAID_OF_PEOPLE[name](text):
            for word in {person.first_name, person.last_name, *person.groups}:
                assert "\0" not in word
                word.encode()
            assert "\0" not in person.subject
            if is_address(person.email):
                assert storable(person.email) == person.email
            with suppress(NameMissing):
                called = account_name(person, rules=of_perforce.perforce_rules())
                assert storable(called) == called


def test_odd_checkpoints_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.1.gz"
    started = time.thread_time()
    for text in TEXTS:
        data = in_bytes(text)
        packed = gzip.compress(RECORDS % (data, data, data, data), mtime=0)
        path.with_name("checkpoint.1.md5").write_bytes(data)
        for content in (data, packed, packed[:-5], packed + data):
            path.write_bytes(content)
            with suppress(Refused):
                read_checkpoint(path)
    assert time.thread_time() - started < READ_WITHIN_SECONDS
