"""What a job of the type "crash:store" leaves behind, written in one transaction with its completion."""

from django.db import models


class Effect(models.Model):
    """One run that was committed."""

    n = models.IntegerField()
    fence = models.IntegerField()

    def __str__(self) -> str:
        return f"effect of job {self.n}, claim {self.fence}"
