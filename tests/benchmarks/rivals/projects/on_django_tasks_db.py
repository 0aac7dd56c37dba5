"""django-tasks-db: its worker takes one task at a time and has no other setting for throughput."""

from django.core.management import call_command
from tasks_api import enqueue, prepare

# isort: split
# Models can be imported once tasks_api has set Django up.
from django_tasks_db.models import DBTaskResult

__all__ = ["enqueue", "prepare", "unfinished", "worker"]


def unfinished() -> int:
    return DBTaskResult.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("db_worker", verbosity=0, startup_delay=False, reload=False)
