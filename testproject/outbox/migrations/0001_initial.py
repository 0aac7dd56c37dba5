import uuid

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("reports", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=200, unique=True)),
                ("receiver", models.CharField(max_length=50)),
                ("body", models.JSONField(default=dict)),
                ("received_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("repeats", models.IntegerField(default=0)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [models.Index(fields=["received_at"], name="outbox_delivery_received")],
            },
        ),
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("url", models.CharField(max_length=500)),
                ("event", models.CharField(max_length=100)),
                ("body", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("delivered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "report",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="reports.report",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="outbox_message_created")],
            },
        ),
    ]
