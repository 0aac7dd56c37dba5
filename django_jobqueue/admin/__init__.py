"""The queue in Django's admin: jobs, queues, workers, a dashboard. No rules of its own: it calls the moves.

``display``, ``filters``, ``changelist`` and ``actions`` are the parts; ``jobs``, ``queues`` and ``workers``
put them together, one model each.
"""

from django.contrib import admin

from ..models import Dashboard, Job, Queue, Worker
from .dashboard import DashboardAdmin
from .jobs import JobAdmin
from .queues import QueueAdmin
from .workers import WorkerAdmin

__all__ = ["DashboardAdmin", "JobAdmin", "QueueAdmin", "WorkerAdmin"]

admin.site.register(Dashboard, DashboardAdmin)
admin.site.register(Job, JobAdmin)
admin.site.register(Queue, QueueAdmin)
admin.site.register(Worker, WorkerAdmin)
