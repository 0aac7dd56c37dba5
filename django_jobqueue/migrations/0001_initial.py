"""The first form of the tables."""

import django.db.models.functions.text
import django.db.models.lookups
from django.db import migrations, models

import django_jobqueue.databases.clock
import django_jobqueue.managers.ids
import django_jobqueue.models.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "name",
                    models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name="name"),
                ),
                ("paused", models.BooleanField(db_default=False, default=False, verbose_name="paused")),
                ("updated_at", django_jobqueue.models.fields.InstantField(verbose_name="updated at")),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "db_table": "django_jobqueue_queue",
                "permissions": [("pause_queue", "Can pause and resume queues")],
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=django_jobqueue.managers.ids.new_job_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("job_type", models.CharField(max_length=200, verbose_name="type")),
                ("queue", models.CharField(default="default", max_length=100, verbose_name="queue")),
                (
                    "status",
                    models.SmallIntegerField(
                        choices=[(1, "pending"), (2, "running"), (3, "done"), (4, "dead"), (5, "cancelled")],
                        db_default=1,
                        default=1,
                        verbose_name="status",
                    ),
                ),
                ("priority", models.SmallIntegerField(db_default=0, default=0, verbose_name="priority")),
                (
                    "dedupe_key",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="dedupe key"),
                ),
                (
                    "lock_key",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="lock key"),
                ),
                ("attempts", models.SmallIntegerField(db_default=0, default=0, verbose_name="attempts")),
                ("max_attempts", models.SmallIntegerField(default=3, verbose_name="max attempts")),
                ("fence", models.IntegerField(db_default=0, default=0, verbose_name="fence")),
                ("crashes", models.SmallIntegerField(db_default=0, default=0, verbose_name="crashes")),
                ("snoozes", models.SmallIntegerField(db_default=0, default=0, verbose_name="snoozes")),
                ("releases", models.SmallIntegerField(db_default=0, default=0, verbose_name="releases")),
                (
                    "run_after",
                    django_jobqueue.models.fields.InstantField(
                        default=django_jobqueue.databases.clock.DatabaseNow, verbose_name="run after"
                    ),
                ),
                (
                    "expires_at",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="expires at"
                    ),
                ),
                (
                    "lease_until",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="lease until"
                    ),
                ),
                ("worker_id", models.CharField(blank=True, max_length=64, null=True, verbose_name="worker")),
                (
                    "claimed_at",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="claimed at"
                    ),
                ),
                (
                    "run_started_at",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="started at"
                    ),
                ),
                (
                    "finished_at",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="finished at"
                    ),
                ),
                (
                    "cancel_requested_at",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="cancel requested at"
                    ),
                ),
                (
                    "unknown_since",
                    django_jobqueue.models.fields.InstantField(
                        blank=True, null=True, verbose_name="type unknown since"
                    ),
                ),
                ("progress", models.FloatField(blank=True, null=True, verbose_name="progress")),
                (
                    "progress_note",
                    models.TextField(blank=True, db_default="", default="", verbose_name="progress note"),
                ),
                (
                    "error_fingerprint",
                    models.TextField(blank=True, db_default="", default="", verbose_name="error fingerprint"),
                ),
                (
                    "created_at",
                    django_jobqueue.models.fields.InstantField(
                        default=django_jobqueue.databases.clock.DatabaseNow, verbose_name="created at"
                    ),
                ),
                (
                    "updated_at",
                    django_jobqueue.models.fields.InstantField(
                        default=django_jobqueue.databases.clock.DatabaseNow, verbose_name="updated at"
                    ),
                ),
                (
                    "last_error",
                    models.TextField(blank=True, db_default="", default="", verbose_name="last error"),
                ),
                ("payload", models.JSONField(default=dict, verbose_name="payload")),
                ("result", models.JSONField(blank=True, null=True, verbose_name="result")),
                ("context", models.JSONField(blank=True, default=dict, verbose_name="context")),
                (
                    "errors",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        verbose_name="errors",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "db_table": "django_jobqueue_job",
                "permissions": [
                    ("retry_job", "Can retry jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("run_job_now", "Can run pending jobs now"),
                ],
                "default_permissions": ("view", "delete"),
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("queue"), descending=True),
                        models.OrderBy(models.F("priority"), descending=True),
                        models.F("run_after"),
                        models.F("id"),
                        condition=models.Q(("status", 1)),
                        name="jobqueue_job_claim",
                    ),
                    models.Index(
                        models.F("expires_at"),
                        condition=models.Q(models.Q(("status", 1)), ("expires_at__isnull", False)),
                        name="jobqueue_job_expiry",
                    ),
                    models.Index(
                        models.F("worker_id"), condition=models.Q(("status", 2)), name="jobqueue_job_worker"
                    ),
                    models.Index(
                        models.F("status"),
                        models.F("finished_at"),
                        condition=models.Q(("finished_at__isnull", False)),
                        name="jobqueue_job_finished",
                    ),
                    models.Index(
                        models.F("job_type"),
                        models.F("error_fingerprint"),
                        models.F("finished_at"),
                        condition=models.Q(("status", 4)),
                        name="jobqueue_job_dead",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("status__in", [1, 2, 3, 4, 5])), name="jobqueue_job_status"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__gte", -100), ("priority__lte", 100)),
                        name="jobqueue_job_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            django.db.models.lookups.GreaterThanOrEqual(
                                django.db.models.functions.text.Length("job_type"), 1
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                django.db.models.functions.text.Length("job_type"), 200
                            ),
                        ),
                        name="jobqueue_job_type_length",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            django.db.models.lookups.GreaterThanOrEqual(
                                django.db.models.functions.text.Length("queue"), 1
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                django.db.models.functions.text.Length("queue"), 100
                            ),
                        ),
                        name="jobqueue_job_queue_length",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("dedupe_key__isnull", True),
                            models.Q(
                                django.db.models.lookups.GreaterThanOrEqual(
                                    django.db.models.functions.text.Length("dedupe_key"), 1
                                ),
                                django.db.models.lookups.LessThanOrEqual(
                                    django.db.models.functions.text.Length("dedupe_key"), 200
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="jobqueue_job_dedupe_length",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("lock_key__isnull", True),
                            models.Q(
                                django.db.models.lookups.GreaterThanOrEqual(
                                    django.db.models.functions.text.Length("lock_key"), 1
                                ),
                                django.db.models.lookups.LessThanOrEqual(
                                    django.db.models.functions.text.Length("lock_key"), 200
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="jobqueue_job_lock_length",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_attempts__gte", 1), ("max_attempts__lte", 10000)),
                        name="jobqueue_job_max_attempts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempts__gte", 0), ("attempts__lte", models.F("max_attempts"))),
                        name="jobqueue_job_attempts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", 1), _negated=True),
                            ("attempts__lt", models.F("max_attempts")),
                            _connector="OR",
                        ),
                        name="jobqueue_job_pending_attempts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("crashes__gte", 0), ("fence__gte", 0), ("releases__gte", 0), ("snoozes__gte", 0)
                        ),
                        name="jobqueue_job_counters",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(models.Q(("status", 2)), ("lease_until__isnull", False)),
                            models.Q(models.Q(("status", 2), _negated=True), ("lease_until__isnull", True)),
                            _connector="OR",
                        ),
                        name="jobqueue_job_running_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", 2), _negated=True),
                            models.Q(
                                ("attempts__gte", 1),
                                ("claimed_at__isnull", False),
                                ("fence__gte", 1),
                                ("worker_id__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="jobqueue_job_running_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at__isnull", False), ("status__in", [3, 4, 5])),
                            models.Q(("finished_at__isnull", True), ("status__in", [1, 2])),
                            _connector="OR",
                        ),
                        name="jobqueue_job_finished_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("progress__isnull", True),
                            models.Q(("progress__gte", 0), ("progress__lte", 1)),
                            _connector="OR",
                        ),
                        name="jobqueue_job_progress",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(
                            django_jobqueue.models.fields.JSONKind("payload"), "object"
                        ),
                        name="jobqueue_job_payload_object",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(
                            django_jobqueue.models.fields.JSONKind("context"), "object"
                        ),
                        name="jobqueue_job_context_object",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(
                            django_jobqueue.models.fields.JSONKind("errors"), "array"
                        ),
                        name="jobqueue_job_errors_list",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("dedupe_key__isnull", False), ("status__in", [1, 2])),
                        fields=("dedupe_key",),
                        name="jobqueue_job_dedupe",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(models.Q(("status", 2)), ("lock_key__isnull", False)),
                        fields=("lock_key",),
                        name="jobqueue_job_lock",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.CharField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="identity"
                    ),
                ),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("queues", models.JSONField(blank=True, null=True, verbose_name="queues")),
                ("capacity", models.IntegerField(verbose_name="capacity")),
                ("version", models.CharField(max_length=50, verbose_name="version")),
                ("started_at", django_jobqueue.models.fields.InstantField(verbose_name="started at")),
                ("last_beat", django_jobqueue.models.fields.InstantField(verbose_name="last beat")),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "db_table": "django_jobqueue_worker",
                "default_permissions": ("view",),
                "base_manager_name": "objects",
                "indexes": [models.Index(models.F("last_beat"), name="jobqueue_worker_beat")],
            },
        ),
    ]
