"""The benchmark's site: database and admin as in the test project, and no app but the queue."""

from testproject.settings import *  # noqa: F403
from testproject.settings import INSTALLED_APPS as _OF_TESTPROJECT

DEBUG = False
INSTALLED_APPS = [
    *(name for name in _OF_TESTPROJECT if not name.startswith(("testproject.", "tests."))),
    "tests.benchmarks.app.apps.BenchmarkConfig",
]
ROOT_URLCONF = "tests.benchmarks.app.urls"
USE_TZ = True
TIME_ZONE = "UTC"
