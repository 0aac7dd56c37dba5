"""A mark for whoever waits for a job, and an index of the finished jobs that a throttled key had.

Workers of the version before go on: the mark has its default in the database.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("django_jobqueue", "0002_table_settings"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="awaited",
            field=models.BooleanField(db_default=False, default=False, verbose_name="awaited"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                models.F("dedupe_key"),
                models.F("created_at"),
                condition=models.Q(("dedupe_key__isnull", False), ("finished_at__isnull", False)),
                name="jobqueue_job_recent",
            ),
        ),
    ]
