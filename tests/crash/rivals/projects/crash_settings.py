"""The benchmark's settings of each rival; where jobs of a lost worker come back after a time, it is short."""

import os

from django_settings import *  # noqa: F403
from django_settings import INSTALLED_APPS

match os.environ["RIVAL"]:
    case "django-q2":
        # A job is given out again after `retry` seconds, which has to be more than `timeout`.
        Q_CLUSTER = {
            "name": "crash",
            "orm": "default",
            "workers": 2,
            "bulk": 10,
            "timeout": 8,
            "retry": 10,
            "save_limit": 0,
            "ack_failures": True,
            "max_attempts": 20,
        }
    case "django_jobqueue":
        INSTALLED_APPS += ["django_jobqueue", "ours"]
        JOBQUEUE = {"LEASE": 5.0, "MAX_ATTEMPTS": 20}
