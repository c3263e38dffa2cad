"""The only reader of the environment: docs/configuration.md lists every name.

Each secret can also be given as a file: NAME_FILE holds its path. A missing or
malformed value stops the process with a sentence.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import django_stubs_ext
import environ
from django.core.exceptions import ImproperlyConfigured

from provisioner.gateways.directory.configuration import BadConfiguration, Directory
from provisioner.lib.database_urls import BadDatabaseUrl, database_of
from provisioner.lib.environment import Environment, mail_of
from provisioner.lib.pooling import PooledConnection
from provisioner.logging import LEVELS, logging_config

# Generic classes of Django take their type in brackets at run time, too.
django_stubs_ext.monkeypatch()

env = Environment()

BASE_DIR = Path(__file__).resolve().parent.parent
IS_CHECKOUT = (BASE_DIR / "manage.py").exists()
# Templates, static files and documents: in a wheel they lie inside the package.
FILES_DIR = BASE_DIR if IS_CHECKOUT else Path(__file__).with_name("files")
_var_dir = str(BASE_DIR / "var") if IS_CHECKOUT else "/var/lib/cloneyard"
VAR_DIR = Path(env.text("VAR_DIR", default=_var_dir)).resolve()

DEBUG = env.bool("DEBUG", default=False)
SHORTEST_SECRET_KEY = 32
CENTURY = 36_500  # days: a date that is later than that may have no year


def _secret(name: str, default: str = "") -> str:
    """Return a secret; an editor's newline at the end of its file is not part of it."""
    return str(env.str(name, default=default)).rstrip("\n")


def _generated_secret_key() -> str:
    """Return a key that survives restarts of an installation nobody configured."""
    path = VAR_DIR / "secret_key"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(50))
        return path.read_text()
    except OSError as error:
        raise ImproperlyConfigured(
            f"No SECRET_KEY is set, and none can be kept in VAR_DIR: {error.filename}: "
            f"{error.strerror}."
        ) from error


SECRET_KEY = _secret("SECRET_KEY") or _generated_secret_key()
if len(SECRET_KEY) < SHORTEST_SECRET_KEY:
    raise ImproperlyConfigured(
        f"SECRET_KEY has {len(SECRET_KEY)} characters and needs "
        f"{SHORTEST_SECRET_KEY}: `openssl rand -base64 48` makes one."
    )
ALLOWED_HOSTS = env.hosts(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"], patterns=True
)
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
BEHIND_TLS_PROXY = env.bool("BEHIND_TLS_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS_PROXY else None
)
# Plain HTTP on loopback is how the demo is seen; a public address sets HTTPS=true.
HTTPS = env.bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# Perforce brokers whose word is taken for where their callers are (docs/flex.md).
TRUSTED_BROKERS = env.networks("TRUSTED_BROKERS")
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "procrastinate.contrib.django",
    "django_structlog",
    "django_htmx",
    "csp",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "provisioner.web",
    "provisioner.help",
    "provisioner.audit_log",
    "provisioner.accounts",
    "provisioner.maintenance",
    "provisioner.identities",
    "provisioner.single_sign_on",
    "provisioner.sites",
    "provisioner.engine",
    "provisioner.perforce_sign_in",
    "provisioner.routing",
    "provisioner.catalog",
    "provisioner.workspaces",
    "provisioner.mirrors",
    "provisioner.copies",
    "provisioner.sandboxes",
    "provisioner.recipes",
    "provisioner.drills",
    "provisioner.qualification",
    "provisioner.workspace_snapshots",
    "provisioner.rescues",
    "provisioner.leases",
    "provisioner.limits",
    "provisioner.storage",
    "provisioner.moves",
    "provisioner.efficiency",
    "provisioner.recovery",
    "provisioner.cloning",
    "provisioner.insight",
    "provisioner.advice",
    "provisioner.probes",
    "provisioner.server_log",
    "provisioner.transfer",
    "provisioner.bisect",
    "provisioner.drift",
    "provisioner.notify",
    "provisioner.pools",
    "provisioner.workspace_requests",
    "provisioner.people",
    "provisioner.directory",
    "provisioner.dashboard",
    "provisioner.metrics",
    "provisioner.retention",
    "provisioner.demo",
]

MIDDLEWARE = [
    "provisioner.dashboard.middleware.ProbeMiddleware",
    "provisioner.web.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Adds some random bytes, so that lengths say nothing of secrets (BREACH).
    "django.middleware.gzip.GZipMiddleware",
    "provisioner.web.middleware.PersonalMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "provisioner.web.middleware.HarmlessMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "provisioner.web.middleware.OriginMiddleware",
    "provisioner.web.middleware.ZoneMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "provisioner.web.middleware.DownloadsMiddleware",
]

ROOT_URLCONF = "provisioner.urls"
WSGI_APPLICATION = "provisioner.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FILES_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database

DATABASE_URL = _secret("DATABASE_URL")
# A new connection has to read the catalog again, so they are kept; one that is dead
# is noticed before it is used.
_connection: dict[str, Any] = {"CONN_MAX_AGE": 3600, "CONN_HEALTH_CHECKS": True}
# A host that vanished sends no reset: a query would wait for it for hours.
# Source: libpq, "Parameter Key Words"; a URL may say otherwise.
_options: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds
    # What workers ask all the time is prepared from its second time on.
    "prepare_threshold": 1,
}
if DATABASE_URL:
    try:
        _named = database_of(DATABASE_URL)
    except BadDatabaseUrl as error:
        raise ImproperlyConfigured(str(error)) from error
    _options |= _named["OPTIONS"]
if _pool_size := env.int("DATABASE_POOL", default=0, most=1000):
    # Opened ahead: in a rush each thread would wait for a connection of its own.
    _connection["CONN_MAX_AGE"] = 0
    _options["pool"] = {
        "min_size": _pool_size,
        "max_size": _pool_size,
        "connection_class": PooledConnection,
        "timeout": 5,
        # Pauses between attempts double: once the database is back, nobody waits long.
        "reconnect_timeout": 5,
    }
if DATABASE_URL:
    DATABASES = {"default": {**_named, **_connection, "OPTIONS": _options}}
else:
    DATABASES = {
        "default": {
            "ENGINE": "provisioner.embedded_postgres",
            "DATA_DIR": VAR_DIR / "postgres",
            "NAME": env.text("DATABASE_NAME", default="postgres"),
            "OPTIONS": _options,
            **_connection,
        }
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- accounts

AUTH_USER_MODEL = "accounts.User"
SESSION_ENGINE = "provisioner.accounts.sessions"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "workspace-list"
LOGOUT_REDIRECT_URL = "login"

# --- single sign-on by OpenID Connect; the names with RP are mozilla-django-oidc's
OIDC_ISSUER = env.address(
    "OIDC_ISSUER", default="", such_as="https://login.example.com/realms/main"
)
OIDC_NAME = env.str("OIDC_NAME", default="") or urlsplit(OIDC_ISSUER).hostname or ""
OIDC_RP_CLIENT_ID = env.str("OIDC_CLIENT_ID", default="")
OIDC_RP_CLIENT_SECRET = _secret("OIDC_CLIENT_SECRET")
OIDC_RP_SCOPES = env.text("OIDC_SCOPES", default="openid profile email")
OIDC_RP_SIGN_ALGO = "RS256"
OIDC_USE_PKCE = True
OIDC_AUTHENTICATION_CALLBACK_URL = "single-sign-on-callback"
OIDC_USERNAME_CLAIM = env.text("OIDC_USERNAME_CLAIM", default="preferred_username")
_domain = env.text("OIDC_USERNAME_DOMAIN", default="")
OIDC_USERNAME_DOMAIN = _domain.removeprefix("@")
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", default="groups")
OIDC_ADMINISTRATORS = env.list("OIDC_ADMINISTRATORS", default=[])
OIDC_UID_CLAIM = env.text("OIDC_UID_CLAIM", default="uidNumber")
OIDC_GID_CLAIM = env.text("OIDC_GID_CLAIM", default="gidNumber")
OIDC_LOWEST_UID = env.int("OIDC_LOWEST_UID", default=1000, least=1)
OIDC_ADOPTS_ACCOUNTS = env.bool("OIDC_ADOPTS_ACCOUNTS", default=False)
# Whoever uses pages signs in more often: a session lasts for two weeks.
OIDC_ABSENT_DAYS = env.int("OIDC_ABSENT_DAYS", default=90, most=3650)
if 0 < OIDC_ABSENT_DAYS < 15:
    raise ImproperlyConfigured(
        "OIDC_ABSENT_DAYS has to be 0 or 15 and more, since a session lasts for 14 "
        f"days, and is {OIDC_ABSENT_DAYS}."
    )
AUTHENTICATION_BACKENDS = ["provisioner.identities.backends.LocalPasswords"]
if OIDC_ISSUER:
    if not OIDC_ISSUER.startswith(
        ("https://", "http://localhost:", "http://127.0.0.1:")
    ):
        raise ImproperlyConfigured("OIDC_ISSUER has to begin with https://.")
    if not OIDC_RP_CLIENT_ID or not OIDC_RP_CLIENT_SECRET:
        raise ImproperlyConfigured(
            "OIDC_ISSUER needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET."
        )
    if "openid" not in OIDC_RP_SCOPES.split():
        raise ImproperlyConfigured(
            "OIDC_SCOPES has to be words with openid among them, separated by spaces, "
            f"and is “{OIDC_RP_SCOPES}”."
        )
    AUTHENTICATION_BACKENDS.append("provisioner.single_sign_on.backends.SingleSignOn")

# --- sign-in by LDAP and Active Directory

_ldap = {
    "urls": env.list("LDAP_URLS", default=[]),
    "kind": env.str("LDAP_KIND", default="openldap"),
    "name": env.str("LDAP_NAME", default=""),
    "start_tls": env.bool("LDAP_START_TLS", default=True),
    "ca_file": env.certificates("LDAP_CA_FILE"),
    "bind_dn": env.str("LDAP_BIND_DN", default=""),
    "bind_password": _secret("LDAP_BIND_PASSWORD"),
    "direct_bind": env.str("LDAP_DIRECT_BIND", default=""),
    "user_base": env.str("LDAP_USER_BASE", default=""),
    "user_filter": env.str("LDAP_USER_FILTER", default=""),
    "id_attribute": env.str("LDAP_ID_ATTRIBUTE", default=""),
    "username_attribute": env.str("LDAP_USERNAME_ATTRIBUTE", default=""),
    "group_base": env.str("LDAP_GROUP_BASE", default=""),
    "groups": env.str("LDAP_GROUPS", default=""),
    "follows_nested": env.bool("LDAP_NESTED_GROUPS", default=True),
    "id_base": env.int("LDAP_ID_BASE", default=0),
    "timeout_seconds": env.int("LDAP_TIMEOUT_SECONDS", default=5, least=1),
}
# Distinguished names have commas in them.
_administrators: str = env.str("LDAP_ADMINISTRATORS", default="")
LDAP_ADMINISTRATORS = [
    name.strip() for name in _administrators.split(";") if name.strip()
]
LDAP_LOWEST_UID = env.int("LDAP_LOWEST_UID", default=1000, least=1)
LDAP_ADOPTS_ACCOUNTS = env.bool("LDAP_ADOPTS_ACCOUNTS", default=False)
# How many accounts a nightly sync closes or takes a role from before it asks.
LDAP_MOST_CLOSED = env.int("LDAP_MOST_CLOSED", default=10)
DIRECTORY: Directory | None = None
if _ldap["urls"]:
    try:
        DIRECTORY = Directory.of(**_ldap)
    except BadConfiguration as error:
        raise ImproperlyConfigured(str(error)) from error
    AUTHENTICATION_BACKENDS.append("provisioner.directory.backends.DirectoryPasswords")

# --- sign-in by Perforce

P4_SIGN_IN_SERVER = env.str("P4_SIGN_IN_SERVER", default="")
P4_SIGN_IN_ADMINISTRATORS = env.list("P4_SIGN_IN_ADMINISTRATORS", default=[])
P4_SIGN_IN_LOWEST_UID = env.int("P4_SIGN_IN_LOWEST_UID", default=1000, least=1)
P4_SIGN_IN_ADOPTS_ACCOUNTS = env.bool("P4_SIGN_IN_ADOPTS_ACCOUNTS", default=False)
if P4_SIGN_IN_SERVER:
    AUTHENTICATION_BACKENDS.append(
        "provisioner.perforce_sign_in.backends.PerforcePasswords"
    )

# --- pages

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
# In which zone people read times who chose none, and whose browser said none. Rows,
# logs, the audit log and the API have UTC, whatever this is.
DISPLAY_TIME_ZONE = env.zone("DISPLAY_TIME_ZONE", default="UTC")

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [FILES_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "provisioner.web.stylesheet.StylesheetStorage"
    },
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    },
}

# Of posted files none is kept, except where a view takes them in itself: anybody could
# fill the disk.
FILE_UPLOAD_HANDLERS = ["provisioner.web.files.NoFiles"]

# --- API

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "provisioner.accounts.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "provisioner.accounts.authentication.WithinScope",
        "provisioner.accounts.authentication.ForAdministrators",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["provisioner.accounts.token_throttling.TokenThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["provisioner.api.http.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "provisioner.api.operation_ids.Operations",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "provisioner.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Cloneyard",
    "DESCRIPTION": (
        "Built Perforce workspaces in seconds, from NetApp FlexClones.\n\n"
        "Get a token with `POST /api/v1/tokens`, then send it with each request: "
        "`Authorization: Bearer TOKEN`. What takes a while is answered with 202; look "
        "again, or let `?wait=SECONDS` hold the answer. With an `Idempotency-Key` a "
        'request is safe to repeat. Errors are `{"detail", "code", "request_id"}`: a '
        "sentence for people, a word for programs that does not change, and the id by "
        "which the logs know the request, which you may name in `X-Request-ID`."
    ),
    "VERSION": "v1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    # The schema says nothing about anybody: generators of clients read it freely.
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "provisioner.api.schema_names.name_by_use",
    ],
    "ENUM_NAME_OVERRIDES": {
        "WorkspaceState": "provisioner.workspaces.models.Workspace.State",
        "WorkspacePurpose": "provisioner.workspaces.models.Workspace.Purpose",
        "RoutedPurpose": "provisioner.routing.kinds.Purpose",
        "CeilingPurpose": "provisioner.sites.models.Ceiling.Purpose",
        "SandboxState": "provisioner.sandboxes.models.Sandbox.State",
        "QualificationState": "provisioner.qualification.models.QualificationRun.State",
        "SandboxPurpose": "provisioner.sandboxes.models.Sandbox.Purpose",
        "TemplateState": "provisioner.catalog.models.Template.State",
        "OperationState": "provisioner.engine.models.Operation.State",
        "OperationKind": "provisioner.engine.kinds.choices",
        "StepState": "provisioner.engine.models.Step.State",
        "FindingKind": "provisioner.drift.models.Finding.Kind",
        "FindingAction": "provisioner.drift.models.Finding.Action",
        "LineEnd": "provisioner.catalog.models.LineEnd",
        "OpenTo": "provisioner.sites.models.OpenTo",
        "SnapshotQuality": "provisioner.catalog.models.Quality",
        "WantedQuality": "provisioner.catalog.models.Template.WantedQuality",
        "ConnectionPlace": "provisioner.sites.models.ConnectionTest.Place",
        "ConnectionOutcome": "provisioner.sites.models.ConnectionCheck.Outcome",
        "ErrorCode": "provisioner.api.errors.CODES",
    },
}
API_TOKEN_DAYS = env.int("API_TOKEN_DAYS", default=90, least=1, most=CENTURY)
# How often each token may ask, for anything and for workspaces.
API_REQUESTS_PER_MINUTE = env.int("API_REQUESTS_PER_MINUTE", default=1200, least=1)
API_WORKSPACES_PER_MINUTE = env.int("API_WORKSPACES_PER_MINUTE", default=120, least=1)
# How many answers a process holds for `?wait=` and downloads, and how many of them for
# one person. The web server has more threads than that, for everything else.
API_WAITS_PER_PROCESS = env.int("API_WAITS_PER_PROCESS", default=8)
API_WAITS_PER_PERSON = env.int("API_WAITS_PER_PERSON", default=4)
# Where the web server listens, and where for probes alone: those have own threads.
WEB_BIND = env.str("WEB_BIND", default="127.0.0.1:8000")
HEALTH_BIND = env.str("HEALTH_BIND", default="")
# Our own token model takes the place of knox's; its migrations would still create
# a table that nothing uses and that refers to our users.
KNOX_TOKEN_MODEL = "accounts.ApiToken"  # noqa: S105 - the name of a model
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {
    "TOKEN_TTL": dt.timedelta(days=API_TOKEN_DAYS),
    "AUTH_HEADER_PREFIX": "Bearer",
}

# --- remote systems: secrets by site and by Perforce server, rows hold the rest

# Where these secrets may be sent to; empty: wherever an administrator says.
SECRET_HOSTS = [host.strip("[]") for host in env.hosts("SECRET_HOSTS")]
if P4_SIGN_IN_SERVER and not SECRET_HOSTS:
    raise ImproperlyConfigured(
        "P4_SIGN_IN_SERVER needs SECRET_HOSTS with the host of that server: otherwise "
        "whoever edits its address says who people are."
    )
ONTAP_PASSWORD = _secret("ONTAP_PASSWORD")
P4PASSWD = _secret("P4PASSWD")


def site_secret(name: str, *, key: str) -> str:
    """Return the secret of one site or server, else the one that all share.

    Site "munich-1" looks for ONTAP_PASSWORD_MUNICH_1, then ONTAP_PASSWORD.
    """
    return next(filter(None, map(_secret, site_secret_names(name, key=key))), "")


def site_secret_names(name: str, *, key: str) -> tuple[str, str]:
    """Return the variables that the secret of one site or server may come from."""
    suffix = key.upper().replace("-", "_")
    return f"{name}_{suffix}", name


def site_secret_source(name: str, *, key: str) -> str:
    """Return which variable the secret comes from now, "" where none has it.

    Raises: OSError (a *_FILE that cannot be read).
    """
    for variable in site_secret_names(name, key=key):
        if _secret(variable):
            file = f"{variable}_FILE"
            return file if env.str(file, default="") else variable
    return ""


_SECRETS = (
    *("SECRET_KEY", "DATABASE_URL", "EMAIL_URL", "ONTAP_PASSWORD", "P4PASSWD"),
    *("OIDC_CLIENT_SECRET", "LDAP_BIND_PASSWORD", "OTEL_EXPORTER_OTLP_HEADERS"),
)
# Files that hold secrets: commands of templates and bisections do not see them.
SECRET_FILES = [
    path
    for name, path in environ.Env.ENVIRON.items()
    if name.startswith(_SECRETS) and name.endswith("_FILE")
]

SITE_SECRET = site_secret
SITE_SECRET_NAMES = site_secret_names
SITE_SECRET_SOURCE = site_secret_source

# --- work

# Tasks beside those in provisioner/engine/tasks.py.
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = "sweeps"
# Builds and tests that a worker runs at a time; 0: none.
WORKER_COMMANDS = env.int("WORKER_COMMANDS", default=4, most=10_000)
# Commands of bisections that it runs beside those, for whoever asks; 0: none.
WORKER_BISECTIONS = env.int("WORKER_BISECTIONS", default=2, most=10_000)
# A file that is touched while calls for jobs are heard; "": none.
WORKER_ALIVE_FILE = env.str("WORKER_ALIVE_FILE", default="")
# How often a worker says that it lives, and after how long a silence its jobs are
# given to another. The second is also how long a kill -9 can delay a step.
WORKER_HEARTBEAT_SECONDS = env.float(
    "WORKER_HEARTBEAT_SECONDS", default=2.0, least=0.05
)
WORKER_STALLED_SECONDS = env.float("WORKER_STALLED_SECONDS", default=10.0, most=86_400)
if WORKER_STALLED_SECONDS <= WORKER_HEARTBEAT_SECONDS:
    raise ImproperlyConfigured(
        f"WORKER_STALLED_SECONDS ({WORKER_STALLED_SECONDS:g}) has to be more than "
        f"WORKER_HEARTBEAT_SECONDS ({WORKER_HEARTBEAT_SECONDS:g}): a worker would be "
        "taken for dead between two heartbeats."
    )
# A process that was stopped within a transaction would keep its locks for as long as
# its host stands, and nobody could go on in its place.
DATABASES["default"]["OPTIONS"]["options"] = (
    f"-c idle_in_transaction_session_timeout={round(1000 * WORKER_STALLED_SECONDS)} "
    # It finds its rows by a key: a plan for these very values would be the same one.
    "-c plan_cache_mode=force_generic_plan " + _options.get("options", "")
).rstrip()
WORKER_CONCURRENCY = env.int("WORKER_CONCURRENCY", default=16, least=1, most=10_000)
# How long after a sweep first saw that a stay in the trash is over a later one empties
# it.
PURGE_CONFIRM_SECONDS = env.float("PURGE_CONFIRM_SECONDS", default=120.0)
# How long a step is retried after transient failures before it fails.
STEP_GIVE_UP_SECONDS = env.float("STEP_GIVE_UP_SECONDS", default=1800.0)

# Within which time a requested workspace should be ready: alerts go by it.
READY_OBJECTIVE_SECONDS = env.float("READY_OBJECTIVE_SECONDS", default=60.0, least=1)

# After how many days without a sign of life a workspace looks abandoned.
ABANDONED_AFTER_DAYS = env.int(
    "ABANDONED_AFTER_DAYS", default=28, least=1, most=CENTURY
)

# How many days each command of a Perforce server's log is kept; sums stay.
SERVER_LOG_DAYS = env.int("SERVER_LOG_DAYS", default=30, least=1, most=CENTURY)
# How many days the audit log is kept, and how many what is over: operations with their
# steps and logs, notifications, findings, deleted snapshots, expired tokens, failed
# jobs. 0: for ever.
AUDIT_LOG_DAYS = env.int("AUDIT_LOG_DAYS", default=0, most=CENTURY)
HISTORY_DAYS = env.int("HISTORY_DAYS", default=400, most=CENTURY)
# How large a log may be that somebody uploads, as it is sent and uncompressed: a day
# of a busy server, which takes some minutes to read, in one transaction.
SERVER_LOG_UPLOAD_MB = env.int("SERVER_LOG_UPLOAD_MB", default=8192, least=1)

# --- commands of templates and bisections

# What each of them may take of a worker's host; 0 is as much as there is.
HALF_OF_MEMORY_MB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 21
SANDBOX_MEMORY_MB = env.int("SANDBOX_MEMORY_MB", default=HALF_OF_MEMORY_MB)
SANDBOX_CPUS = env.float("SANDBOX_CPUS", default=0.0, most=10_000)
SANDBOX_PROCESSES = env.int("SANDBOX_PROCESSES", default=4096, least=1, most=2**22)
SANDBOX_TMP_MB = env.int("SANDBOX_TMP_MB", default=2048, least=1)
# A directory of cgroup version 2 with memory, pids and cpu enabled for its children.
SANDBOX_CGROUP = env.path("SANDBOX_CGROUP")
# What they see of a namespace, or of temporary directories, that is hidden otherwise.
SANDBOX_VISIBLE = env.paths("SANDBOX_VISIBLE")
# What mounts one volume on a host, called with -o OPTIONS HOST:/PATH DIRECTORY.
MOUNT_COMMAND = env.command("MOUNT_COMMAND", default="mount -t nfs")
# How many bisections of one person may be running; more are refused.
BISECTIONS_PER_PERSON = env.int("BISECTIONS_PER_PERSON", default=3, least=1)
# How many steps with a command may be under way for one person; others wait.
BISECTION_COMMANDS_PER_PERSON = env.int(
    "BISECTION_COMMANDS_PER_PERSON", default=2, least=1
)
# How long the log of a step may get: what prints more is stopped.
STEP_LOG_MB = env.int("STEP_LOG_MB", default=256, least=1)

# --- mails

# Such as smtp+tls://user:password@mail.example.com:587; without it, none are sent.
globals().update(mail_of(_secret("EMAIL_URL", "dummymail://")))
EMAIL_TIMEOUT = 30
DEFAULT_FROM_EMAIL = env.mail_sender(
    "DEFAULT_FROM_EMAIL", default="cloneyard@localhost"
)
# Where people reach the pages: links in mails begin with it.
PUBLIC_URL = env.address("PUBLIC_URL", default="http://127.0.0.1:8000")

# --- webhooks

# Where messages may go besides the public Internet, such as 10.20.0.0/16, and then by
# plain http:// too; and who signs the certificates there, besides those known anyway.
WEBHOOK_ALLOWED_NETWORKS = env.networks("WEBHOOK_ALLOWED_NETWORKS")
WEBHOOK_CA_FILE = env.certificates("WEBHOOK_CA_FILE")

# Build logs, one file each: workers write them, pages read them, wherever they run.
LOG_DIR = env.directory("LOG_DIR", default=VAR_DIR / "logs")

# --- logs

# The id of a request, checked by our own middleware, is what it logs.
DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True
LOG_LEVEL = env.choice("LOG_LEVEL", default="INFO", among=LEVELS)
LOG_FORMAT = env.choice(
    "LOG_FORMAT", default="console" if DEBUG else "json", among=("json", "console")
)
LOGGING = logging_config(level=LOG_LEVEL, as_json=LOG_FORMAT == "json")
LOGGING_CONFIG = "provisioner.logging.configure"

# --- traces of requests by OpenTelemetry, which has named these

OTEL_EXPORTER_OTLP_ENDPOINT = env.address(
    "OTEL_EXPORTER_OTLP_ENDPOINT", default="", such_as="http://collector:4318"
)
OTLP_HEADERS: dict[str, str] = {}
OTEL_TRACES_SAMPLER_ARG = env.float("OTEL_TRACES_SAMPLER_ARG", default=1.0, most=1)
_otlp_headers = _secret("OTEL_EXPORTER_OTLP_HEADERS")
if OTEL_EXPORTER_OTLP_ENDPOINT:
    for _header in filter(None, _otlp_headers.split(",")):
        _name, _equals, _value = _header.partition("=")
        if not _equals or not _name.strip() or not _header.isprintable():
            raise ImproperlyConfigured(
                "OTEL_EXPORTER_OTLP_HEADERS has to be a list such as "
                "authorization=Bearer%20TOKEN,x-tenant=games."
            )
        OTLP_HEADERS[_name.strip().lower()] = unquote(_value.strip())
    INSTALLED_APPS.append("provisioner.telemetry")
    MIDDLEWARE.insert(
        MIDDLEWARE.index("django.middleware.gzip.GZipMiddleware"),
        "provisioner.telemetry.middleware.SpanMiddleware",
    )
