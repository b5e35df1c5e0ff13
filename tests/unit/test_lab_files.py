"""Folders in which a lab makes something, while another lab sweeps the cache that they share."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from sparkyard.lab import files


def test_what_a_killed_maker_left_is_swept_and_a_living_one_s_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "images" / "old.1.part" / "tree").mkdir(parents=True)
    with files.unfinished(tmp_path / "images" / "new") as scratch:
        (scratch / "inner.part").mkdir()
        files.sweep(tmp_path)
        assert [path.name for path in (tmp_path / "images").iterdir()] == [scratch.name]
        assert (scratch / "inner.part").exists()
    assert list((tmp_path / "images").iterdir()) == []


def test_a_folder_whose_maker_has_finished_meanwhile_is_passed_over(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_scratches", lambda folder: [folder / "gone.part"])
    files.sweep(tmp_path)


@pytest.mark.parametrize("when", ["before it is open", "before it is locked"])
def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch, when) -> None:
    place, name = (os, "open") if when == "before it is open" else (fcntl, "flock")
    really = getattr(place, name)
    swept: list[object] = []

    def sweeping(what, *more, **named):
        if not swept:
            swept.append(what)
            shutil.rmtree(next(tmp_path.glob("*.part")))
        return really(what, *more, **named)

    monkeypatch.setattr(place, name, sweeping)
    with files.unfinished(tmp_path / "new") as scratch:
        monkeypatch.undo()
        assert scratch.is_dir()
        files.sweep(tmp_path)
        assert scratch.is_dir()
