"""Looking at the lab's cgroups while they go away."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from sparkyard.lab import processes


def test_a_cgroup_that_goes_away_while_it_is_looked_at_is_no_fault(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "cgroup_folders", lambda name: [tmp_path / name])
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            for number in range(20):
                (tmp_path / "lab" / str(number) / "deep").mkdir(parents=True, exist_ok=True)
                (tmp_path / "lab" / str(number) / "cgroup.procs").write_text("1\n")
            shutil.rmtree(tmp_path / "lab", ignore_errors=True)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _look in range(300):
            assert processes.cgroup_pids("lab") <= {1}
    finally:
        done.set()
        thread.join()
