"""The copy of the machine's classes of devices that a lab's nodes show."""

from __future__ import annotations

from pathlib import Path

from sparkyard.lab.hardware import _copy_links


def test_a_device_that_goes_away_while_its_class_is_copied_is_left_out(tmp_path: Path, monkeypatch) -> None:
    source, target = tmp_path / "class", tmp_path / "copy"
    for folder in (source, target):
        folder.mkdir()
    for name in ("null", "overlay-7"):
        (source / name).symlink_to(f"../../devices/{name}")
    really = Path.readlink

    def readlink(path: Path) -> Path:
        if path.name == "overlay-7":
            path.unlink()
        return really(path)

    monkeypatch.setattr(Path, "readlink", readlink)
    _copy_links(source, target)
    assert [path.name for path in target.iterdir()] == ["null"]
