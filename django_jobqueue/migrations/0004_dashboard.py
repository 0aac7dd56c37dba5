"""Figures by the minute, retention of a queue, and what a worker tells of itself and is asked.

Only adds: workers of the version before go on beside it.
"""

from django.db import migrations, models

import django_jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("django_jobqueue", "0003_waiting_and_throttling"),
    ]

    operations = [
        migrations.CreateModel(
            name="Statistic",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "span",
                        "start",
                        "queue",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("span", models.IntegerField(verbose_name="seconds")),
                ("start", django_jobqueue.models.fields.InstantField(verbose_name="start")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("done", models.BigIntegerField(verbose_name="done")),
                ("failed", models.BigIntegerField(verbose_name="failed attempts")),
                ("dead", models.BigIntegerField(verbose_name="dead")),
                ("waited", models.FloatField(verbose_name="seconds waited")),
                ("ran", models.FloatField(verbose_name="seconds run")),
                ("waits", models.JSONField(verbose_name="waits")),
                ("runs", models.JSONField(verbose_name="runs")),
            ],
            options={
                "verbose_name": "statistic",
                "verbose_name_plural": "statistics",
                "db_table": "django_jobqueue_statistic",
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Dashboard",
            fields=[],
            options={
                "verbose_name": "dashboard",
                "verbose_name_plural": "dashboard",
                "proxy": True,
                "default_permissions": ("view",),
                "indexes": [],
                "constraints": [],
            },
            bases=("django_jobqueue.queue",),
        ),
        migrations.AlterModelOptions(
            name="queue",
            options={
                "base_manager_name": "objects",
                "default_permissions": ("view",),
                "permissions": [
                    ("pause_queue", "Can pause and resume queues"),
                    ("set_queue_retention", "Can set how long jobs of a queue are kept"),
                ],
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
            },
        ),
        migrations.AlterModelOptions(
            name="worker",
            options={
                "base_manager_name": "objects",
                "default_permissions": ("view",),
                "permissions": [("stop_worker", "Can ask workers to stop")],
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
            },
        ),
        migrations.AddField(
            model_name="queue",
            name="retention",
            field=models.DurationField(blank=True, null=True, verbose_name="retention"),
        ),
        migrations.AddField(
            model_name="worker",
            name="exclude_queues",
            field=models.JSONField(blank=True, null=True, verbose_name="not these queues"),
        ),
        migrations.AddField(
            model_name="worker",
            name="loop_due_at",
            field=django_jobqueue.models.fields.InstantField(
                blank=True, null=True, verbose_name="loop due at"
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="stop_requested_at",
            field=django_jobqueue.models.fields.InstantField(
                blank=True, null=True, verbose_name="stop requested at"
            ),
        ),
    ]
