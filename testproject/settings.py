"""Settings of the small real site beside the package: the demo's and the tests'.

DATABASE_URL chooses the database: `postgresql://user:password@host:port/name`,
`postgresql:///name?host=/socket/folder` or `sqlite:////absolute/file`.
Without it: a SQLite file in this folder.
"""

from os import environ
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

BASE_DIR = Path(__file__).resolve().parent


def database(url: str, suffix: str = "") -> dict[str, Any]:
    """Answer with the DATABASES entry of a URL, `suffix` added to the name."""
    parts = urlsplit(url)
    name = Path(unquote(parts.path[1:]))
    name = name.with_stem(name.stem + suffix)
    entry = {
        "NAME": str(name),
        # Django's own prefix, but a file on SQLite too: worker processes can't see a database in memory.
        "TEST": {"NAME": str(name.with_name(f"test_{name.name}"))},
    }
    return entry | (sqlite() if parts.scheme == "sqlite" else postgresql(parts))


def sqlite() -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def postgresql(parts: SplitResult) -> dict[str, Any]:
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": options.pop("host", parts.hostname or ""),  # ?host= is how libpq writes a socket folder
        "PORT": parts.port or "",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "OPTIONS": options,
    }


DATABASE_URL = environ.get("DATABASE_URL") or f"sqlite:///{BASE_DIR / 'db.sqlite3'}"
DATABASES = {"default": database(DATABASE_URL), "other": database(DATABASE_URL, "_other")}
DEFAULT_AUTO_FIELD = environ.get("JOBQUEUE_TEST_DEFAULT_AUTO_FIELD", "django.db.models.BigAutoField")

USE_TZ = environ.get("JOBQUEUE_TEST_USE_TZ", "1") == "1"
TIME_ZONE = environ.get("JOBQUEUE_TEST_TIME_ZONE", "UTC")

DEBUG = environ.get("JOBQUEUE_TEST_DEBUG", "1") == "1"
SECRET_KEY = "a site to try things on, never to be served to others"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rangefilter",
    "django_jobqueue",
    "testproject.exploration",
    "testproject.search",
    "testproject.reports",
    "testproject.outbox",
    "testproject.readingroom",
    *environ.get("JOBQUEUE_TEST_APPS", "").split(),  # what the tests' workers run
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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
ROOT_URLCONF = "testproject.urls"
STATIC_URL = "static/"
MEDIA_ROOT = BASE_DIR / "media"

OUTBOX_TIMEOUT = 5  # seconds that a webhook may take to answer

TASKS = {"default": {"BACKEND": "django_jobqueue.backend.JobQueueBackend"}}
JOBQUEUE: dict[str, Any] = {}
# The one atomic handler, report:generate, is over in some milliseconds.
SILENCED_SYSTEM_CHECKS = ["jobqueue.W007"]
