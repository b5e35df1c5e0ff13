"""The code that acts: one executor for each kind of action, imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from sparkyard import actions, actions_image, actions_job, actions_log
from sparkyard.world import World

Executor = Callable[[Any, str, World], None]


def _later(module: str, function: str) -> Executor:
    def execute(action: Any, node: str, world: World) -> None:
        getattr(import_module(f"sparkyard.executors.{module}"), function)(action, node, world)

    return execute


EXECUTORS: Mapping[type, Executor] = {
    actions.Run: _later("words", "run"),
    actions.WriteFile: _later("files", "write_file"),
    actions.Fetch: _later("fetch", "fetch"),
    actions.CopyFiles: _later("copy", "copy_files"),
    actions.Prove: _later("prove", "prove"),
    actions_image.GitFetch: _later("git", "git_fetch"),
    actions_image.GitTree: _later("git", "git_tree"),
    actions_image.MakeContext: _later("git", "make_context"),
    actions_image.BuildImage: _later("image", "build_image"),
    actions_image.MakeImage: _later("made", "make_image"),
    actions_image.ShipImage: _later("ship", "ship_image"),
    actions.StartContainer: _later("service", "start_container"),
    actions.StopContainer: _later("service", "stop_container"),
    actions.StartScripts: _later("scripts", "start_scripts"),
    actions.StopScripts: _later("scripts", "stop_scripts"),
    actions.SaveLogs: _later("scripts", "save_logs"),
    actions.WaitMemory: _later("memory", "wait_memory"),
    actions.WaitReady: _later("ready", "wait_ready"),
    actions.Request: _later("verify", "request"),
    actions_log.CheckLog: _later("logs", "check_log"),
    actions_job.RemoveFiles: _later("files", "remove_files"),
    actions_job.RunJob: _later("job", "run_job"),
}
"""``EXECUTORS[type(action)](action, node, world)``: raises a kind of SparkyardError on failure."""
