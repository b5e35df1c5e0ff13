"""An empty tasks file: the floor of every invoke line."""

from invoke import task


@task
def nothing(_context):
    """Nothing."""
