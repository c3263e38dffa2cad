"""What a database raises that is not there."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

# It ended, cut the connection, or broke a tie between two who waited for each other.
DATABASE_WENT_AWAY = (OperationalError, InterfaceError)
