"""The dashboard: ``charts`` draws, ``page`` puts together what is shown, ``view`` answers and acts."""

from .view import DashboardAdmin

__all__ = ["DashboardAdmin"]
