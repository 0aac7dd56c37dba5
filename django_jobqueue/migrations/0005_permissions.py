"""Permissions to put a job off, and to give it another payload."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_jobqueue", "0004_dashboard")]

    operations = [
        migrations.AlterModelOptions(
            name="job",
            options={
                "base_manager_name": "objects",
                "default_permissions": ("view", "delete"),
                "permissions": [
                    ("retry_job", "Can retry jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("run_job_now", "Can run pending jobs now"),
                    ("snooze_job", "Can put pending jobs off"),
                    ("edit_job_payload", "Can retry jobs with another payload"),
                ],
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
    ]
