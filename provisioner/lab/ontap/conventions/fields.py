"""The fields of a record that an answer has.

A record is described flat: values by dotted name. A value may be a function that is
only called if the field is requested; None means unset (the field is left out, as by
ONTAP).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from provisioner.lab.ontap.conventions.query import Scalar
from provisioner.lab.ontap.errors import OntapError

Flat = Mapping[str, object]

_REMEMBERED = 256


@dataclass(frozen=True)
class FieldSet:
    """The fields that a resource knows.

    `keys` are in every answer. `standard` is what ``fields=*`` adds. `expensive` fields
    must be requested by name, by a parent's name or with ``**``. `trees` are documented
    fields, with all below them, that may be requested but have no value in the lab.
    """

    keys: tuple[str, ...]
    standard: tuple[str, ...] = ()
    expensive: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()

    def knows(self, name: str) -> bool:
        """Return whether `name` is a field, a parent of fields or inside one."""
        return name in self._parents or any(
            inside in self._documented for inside in (name, *_parents_of(name))
        )

    @functools.cached_property
    def _documented(self) -> frozenset[str]:
        return frozenset((*self.keys, *self.standard, *self.expensive, *self.trees))

    @functools.cached_property
    def _parents(self) -> frozenset[str]:
        known = (*self.keys, *self.standard, *self.expensive)
        return frozenset(parent for field in known for parent in _parents_of(field))


def _parents_of(name: str) -> Iterator[str]:
    """Yield ``a.b`` and ``a`` of ``a.b.c``."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


@dataclass(frozen=True)
class Wanted:
    """The fields that one request wants."""

    fields: FieldSet
    names: tuple[str, ...]

    @classmethod
    def parse(
        cls,
        parameter: str | None,
        *,
        fields: FieldSet,
        extra: Iterable[str] = (),
        whole: bool = False,
        ignores_unknown: bool = False,
    ) -> Wanted:
        """Parse a ``fields`` parameter, ignoring empty elements.

        `extra` are fields used as filters, which are returned as well. With `whole` a
        missing parameter means ``*``, as for an instance.
        """
        names = [name.strip() for name in (parameter or "").split(",")]
        names = [name for name in names if name]
        for name in names:
            is_known = name in ("*", "**") or fields.knows(name)
            if not is_known and not ignores_unknown:
                raise OntapError("262197", target="fields", field="fields", value=name)
        if whole and not names:
            names = ["*"]
        return cls(fields, (*names, *extra))

    def has(self, field: str) -> bool:
        """Return whether the answer has `field` if it is set."""
        known = self._decided.get(field)
        if known is None:
            known = self._decided[field] = self._decide(field)
        return known

    @functools.cached_property
    def _decided(self) -> dict[str, bool]:
        return _decided_of(self.fields, self.names)

    def _decide(self, field: str) -> bool:
        if field in self.fields.keys or "**" in self.names:
            return True
        if "*" in self.names and field not in self.fields.expensive:
            return True
        return any(
            field == name
            or field.startswith(name + ".")
            or name.startswith(field + ".")
            for name in self.names
        )

    def select(self, record: Flat) -> dict[str, object]:
        """Return the nested record with the wanted fields that are set."""
        result: dict[str, object] = {}
        decided = self._decided
        for field, value in record.items():
            if decided[field] if field in decided else self.has(field):
                settled = value() if callable(value) else value
                if settled is not None:
                    put(result, field, settled)
        return result


@functools.lru_cache(maxsize=_REMEMBERED)
def _decided_of(fields: FieldSet, names: tuple[str, ...]) -> dict[str, bool]:
    """Return what was decided for these, for each field of a record once it is asked.

    Every record of a long list asks, and request after request.
    """
    return {}


def put(target: dict[str, object], field: str, value: object) -> None:
    """Set a dotted field in a nested dictionary."""
    *parents, leaf = field.split(".")
    for parent in parents:
        inner = target.setdefault(parent, {})
        assert isinstance(inner, dict)
        target = inner
    target[leaf] = value


def values_of(record: Flat, field: str) -> list[Scalar]:
    """Return the values that a filter on `field` compares: none if it is unset."""
    if field in record:
        return list(_scalars(_settle(record[field]), ()))
    found: list[Scalar] = []
    for name, value in record.items():
        if field.startswith(name + "."):
            rest = field[len(name) + 1 :].split(".")
            found.extend(_scalars(_settle(value), rest))
        elif name.startswith(field + "."):
            found.extend(_scalars(_settle(value), ()))
    return found


def _settle(value: object | Callable[[], object]) -> object:
    return value() if callable(value) else value


def _scalars(value: object, path: Sequence[str]) -> Iterator[Scalar]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item, path)
    elif isinstance(value, dict):
        if path:
            yield from _scalars(value.get(path[0]), path[1:])
        else:
            for item in value.values():
                yield from _scalars(item, ())
    elif isinstance(value, str | int | float) and not path:
        yield value
