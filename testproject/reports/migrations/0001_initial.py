import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "format",
                    models.CharField(
                        choices=[("csv", "CSV"), ("json", "JSON"), ("html", "HTML")], max_length=10
                    ),
                ),
                ("filters", models.JSONField(blank=True, default=dict)),
                ("notify_url", models.CharField(blank=True, max_length=500)),
                ("file", models.FileField(blank=True, upload_to="reports")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("made_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="reports_report_created")],
            },
        ),
    ]
