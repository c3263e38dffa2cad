"""An exchange as it may leave the installation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from provisioner.gateways.tracing.exchanges import (
    Exchange,
    OntapExchange,
    PerforceExchange,
)
from provisioner.gateways.tracing.pseudonyms import Pseudonyms
from provisioner.gateways.tracing.vocabulary import WORDS

# Parameters whose values are names of fields, which ONTAP defines.
_OF_FIELDS = frozenset({"fields", "order_by", "query_fields"})
_FIELD_NAMES = re.compile(r"[a-z0-9_.,*! -]+")
# Fields of Perforce's records whose digits are numbers, not names.
_NUMBERS = frozenset(
    {
        *(
            "change",
            "Change",
            "submittedChange",
            "oldChange",
            "otherChange",
            "headChange",
        ),
        *("rev", "haveRev", "headRev", "workRev", "srev", "erev", "level", "id"),
        *("startFromRev", "endFromRev", "startToRev", "endToRev"),
        *("fileSize", "fileCount", "totalFileCount", "totalFileSize"),
        *("time", "headTime", "headModTime", "Update", "Access"),
    }
)
# Commands whose input or output is a secret or content: nothing of either is kept.
_SILENT = frozenset({"login", "passwd", "print", "diff", "diff2", "annotate", "grep"})
# Commands that show fields which an administrator of the server may have named.
_WITH_OWN_FIELDS = frozenset({"jobs"})
# What stands before the name of an attribute, which people make up: attr-NAME.
_OF_ATTRIBUTES = frozenset({"attr", "openattr", "attrProp", "openattrProp"})
_FLAG = re.compile(r"-[A-Za-z]{1,4}")
_PLAIN_NUMBER = re.compile(r"(?<=[@#])\d+\Z|^\d+\Z")
_CHANGE_IN_TEXT = re.compile(r"(?m)(\b[Cc]hange:?\s)(\d+)\b")
_KINDS = frozenset({"application/json", "application/hal+json", "text/html"})


def masked(exchange: Exchange, names: Pseudonyms) -> Exchange:
    """Return an exchange without names, secrets and content of the installation."""
    if isinstance(exchange, OntapExchange):
        return _masked_ontap(exchange, names)
    return _masked_perforce(exchange, names)


def _masked_ontap(exchange: OntapExchange, names: Pseudonyms) -> OntapExchange:
    path, _, query = exchange.path.partition("?")
    asked = {**dict(parse_qsl(query)), **exchange.query}
    return replace(
        exchange,
        path=_masked_path(path, names),
        query={name: _parameter(name, asked[name], names) for name in asked},
        sent=names.of(exchange.sent),
        content_type=exchange.content_type if exchange.content_type in _KINDS else "",
        body=_body(exchange.body, names),
    )


def _masked_path(path: str, names: Pseudonyms) -> str:
    """Return a path of the API; numbers in it are ids, and stay."""
    return "/".join(
        part if part.isdecimal() else names.text(part) for part in path.split("/")
    )


def _parameter(name: str, value: Any, names: Pseudonyms) -> Any:
    if name in _OF_FIELDS and _FIELD_NAMES.fullmatch(str(value)):
        return value
    if str(value).isdecimal() and name in ("max_records", "return_timeout"):
        return value
    return names.of(value)


def _body(value: Any, names: Pseudonyms) -> Any:
    """Return an answer with links without parameters, and codes of errors as they are.

    Words of messages go, too: they name what they are about.
    """
    if isinstance(value, list):
        return [_body(item, names) for item in value]
    if not isinstance(value, Mapping):
        return names.of(value)
    body = {}
    for name, item in value.items():
        if name == "href" and isinstance(item, str):
            body[name] = _masked_path(item.partition("?")[0], names)
        elif name == "code" and str(item).isdecimal():
            body[name] = item
        else:
            body[name] = _body(item, names)
    return body


def _masked_perforce(exchange: PerforceExchange, names: Pseudonyms) -> PerforceExchange:
    command = exchange.command
    is_silent = command[0] in _SILENT
    has_own_fields = command[0] in _WITH_OWN_FIELDS or "-o" in command
    return replace(
        exchange,
        user=names.text(exchange.user),
        client=names.text(exchange.client),
        host=names.text(exchange.host),
        command=(command[0], *(_argument(word, names) for word in command[1:])),
        form="" if is_silent else _said(exchange.form, names),
        records=[
            _record(record, names, has_own_fields=has_own_fields)
            for record in ([] if is_silent else exchange.records)
        ],
        texts=[_said(text, names) for text in ([] if is_silent else exchange.texts)],
    )


def _argument(word: str, names: Pseudonyms) -> str:
    """Return an argument; options, changes and revisions stay."""
    if _FLAG.fullmatch(word):
        return word
    number = _PLAIN_NUMBER.search(word)
    if number is None:
        return names.text(word)
    return names.text(word[: number.start()]) + number.group()


def _said(text: str, names: Pseudonyms) -> str:
    """Return a form or a line of an answer, in which numbers of changes stay."""
    said, at = "", 0
    for found in _CHANGE_IN_TEXT.finditer(text):
        said += names.text(text[at : found.start(2)]) + found.group(2)
        at = found.end()
    return said + names.text(text[at:])


def _record(
    record: Mapping[str, Any], names: Pseudonyms, *, has_own_fields: bool
) -> dict[str, Any]:
    return {
        _field(name, names, is_public=not has_own_fields): _value(name, value, names)
        for name, value in record.items()
    }


def _field(name: str, names: Pseudonyms, *, is_public: bool) -> str:
    """Return the name of a field: a public one with its index, or a pseudonym."""
    kind, dash, rest = name.partition("-")
    if kind in _OF_ATTRIBUTES and dash:
        return f"{kind}-{names.word(rest)}"
    base = name.rstrip("0123456789,")
    if base in WORDS or (is_public and base.isalpha()):
        return name
    return names.word(name)


def _value(name: str, value: Any, names: Pseudonyms) -> Any:
    if isinstance(value, str) and value.isdecimal() and name in _NUMBERS:
        return value
    return names.of(value)
