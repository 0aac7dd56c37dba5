"""What ``manage.py demo`` shows: real jobs at real work, a retry, a dead letter and its repair."""
