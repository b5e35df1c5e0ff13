"""An empty tasks file: the floor of every invoke line."""

from invoke.context import Context
from invoke.tasks import task


@task
def nothing(_context: Context) -> None:
    """Nothing."""
