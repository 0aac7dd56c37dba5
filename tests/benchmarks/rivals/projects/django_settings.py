"""The settings of every rival that is a Django app; only its apps and its own section differ."""

import os
from typing import Any

from connection import SQLITE, parameters

SECRET_KEY = "benchmark"
USE_TZ = True
LOGGING_CONFIG = None
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# The handlers' own work is none: a connection for every job would be all that is measured.
KEPT_OPEN = {"CONN_MAX_AGE": None}


def _database() -> dict[str, Any]:
    if SQLITE:
        # As any busy SQLite is set up; durable after each checkpoint, like the others measured on it.
        pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        options = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": SQLITE, "OPTIONS": options} | KEPT_OPEN
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    given = {names[name]: value for name, value in parameters().items() if name in names}
    return {"ENGINE": "django.db.backends.postgresql"} | given | KEPT_OPEN


DATABASES = {"default": _database()}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]

match os.environ["RIVAL"]:
    case "procrastinate":
        INSTALLED_APPS += ["procrastinate.contrib.django"]
        PROCRASTINATE_IMPORT_PATHS = ["on_procrastinate"]
    case "django-tasks-db":
        INSTALLED_APPS += ["django_tasks_db"]
        TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
    case "dj-queue":
        INSTALLED_APPS += ["dj_queue"]
        TASKS = {
            "default": {
                "BACKEND": "dj_queue.backend.DjQueueBackend",
                "OPTIONS": {"workers": [{"queues": "*", "threads": 8, "processes": 1}]},
            }
        }
    case "django-ox":
        INSTALLED_APPS += ["django_ox"]
        TASKS = {"default": {"BACKEND": "django_ox.backend.OxBackend"}}
    case "django-q2":
        INSTALLED_APPS += ["django_q"]
        # Fetched 50 at a time; a limit of saved results would be a count and a delete for each job.
        Q_CLUSTER = {
            "name": "benchmark",
            "orm": "default",
            "workers": 2,
            "bulk": 50,
            "queue_limit": 200,
            "save_limit": 0,
            "recycle": 100_000,
            "timeout": 300,
            "retry": 360,
            "scheduler": False,
            "log_level": "ERROR",
        }
    case "steady-queue":
        from datetime import timedelta

        from steady_queue.configuration import Configuration

        INSTALLED_APPS += ["steady_queue"]
        TASKS = {"default": {"BACKEND": "steady_queue.backend.SteadyQueueBackend"}}
        STEADY_QUEUE = Configuration.Options(
            workers=[
                Configuration.Worker(queues=["default"], threads=8, polling_interval=timedelta(seconds=0.1))
            ]
        )
