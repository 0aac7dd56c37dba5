import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ExplorationSession",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("root", models.CharField(max_length=1000)),
                ("created_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="Document",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("package", models.CharField(max_length=255)),
                ("path", models.CharField(max_length=1000)),
                ("kind", models.CharField(max_length=20)),
                ("title", models.CharField(blank=True, max_length=300)),
                ("outline", models.TextField(blank=True)),
                ("text", models.TextField(blank=True)),
                ("urls", models.JSONField(blank=True, default=list)),
                ("lines", models.IntegerField(default=0)),
                ("words", models.IntegerField(default=0)),
                ("bytes", models.IntegerField(default=0)),
                ("headings", models.IntegerField(default=0)),
                ("definitions", models.IntegerField(default=0)),
                ("links", models.IntegerField(default=0)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="exploration.explorationsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["session", "package"], name="exploration_document_package")],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "path"), name="exploration_document_once")
                ],
            },
        ),
    ]
