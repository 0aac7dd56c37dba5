"""The app of on_django_jobqueue.py."""
