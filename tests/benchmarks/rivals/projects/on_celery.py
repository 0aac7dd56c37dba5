"""Celery: forked children for two cores; short tasks fetched ahead by the hundred, as its guide advises."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celery import Celery
from connection import REDIS
from stamps import stamp

SPOOL = Path("spool")

app = Celery("on_celery", broker=f"redis+socket://{REDIS}" if REDIS else "filesystem://")
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=128,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
)
if not REDIS:
    folders = ("data_folder_in", "data_folder_out", "processed_folder", "control_folder")
    app.conf.broker_transport_options = {folder: str(SPOOL) for folder in folders}


@app.task(name="handle")
def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    SPOOL.mkdir()


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.delay(number)


def unfinished() -> int:
    if not REDIS:
        return len(list(SPOOL.glob("*.msg")))
    from redis import Redis

    redis: Any = Redis(unix_socket_path=REDIS)
    return int(redis.llen("celery")) + int(redis.hlen("unacked"))


def worker() -> None:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
    sys.argv[0] = "celery"
    app.worker_main(["worker", "--concurrency", "2", *quiet])
