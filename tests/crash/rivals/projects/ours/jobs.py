"""The handler."""

from stamps import stamp

from django_jobqueue import job


@job("handle")
def handle(number: int) -> None:
    stamp(number)
