"""Save columns and views of lists."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts.models import User
from provisioner.lib.refusals import InvalidRequest
from provisioner.web.models import SavedView

MOST_VIEWS = 50


def columns_choose(*, by: User, listing: str, path: str, hidden: Iterable[str]) -> None:
    """Save which columns of a list a person hides.

    Raises: InvalidRequest.
    """
    row = SavedView(person=by, listing=listing, path=path, hidden=sorted(set(hidden)))
    _check(row)
    SavedView.objects.update_or_create(
        person=by,
        listing=listing,
        name="",
        defaults={"hidden": row.hidden, "path": path},
    )


def view_save(
    *,
    by: User,
    listing: str,
    path: str,
    name: str,
    query: str,
    hidden: Iterable[str],
) -> SavedView:
    """Save the current view of a list under a name.

    Raises: InvalidRequest.
    """
    name = " ".join(name.split())
    if not name:
        raise InvalidRequest("Give the view a name.")
    row = SavedView(
        person=by,
        listing=listing,
        path=path,
        name=name,
        query=query,
        hidden=sorted(set(hidden)),
    )
    _check(row)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        mine = SavedView.objects.filter(person=by, listing=listing)
        if mine.filter(name=name).exists():
            raise InvalidRequest(
                f"You have a view “{name}” of this list already. Choose another name."
            )
        if mine.count() >= MOST_VIEWS:
            raise InvalidRequest(f"Keep up to {MOST_VIEWS} views of a list.")
        row.save()
    return row


def view_delete(*, by: User, pk: int) -> SavedView | None:
    """Delete one of a person's own views; return it, or None."""
    row = SavedView.objects.exclude(name="").filter(person=by, pk=pk).first()
    if row is not None:
        SavedView.objects.filter(pk=pk).delete()
    return row


def _check(row: SavedView) -> None:
    try:
        row.full_clean(exclude=["person"], validate_unique=False)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest(f"{field}: {messages[0]}") from error
