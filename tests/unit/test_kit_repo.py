"""The lab's kit repository: the same commit everywhere, and the interface that the recipe drives."""

import subprocess

from sparkyard import stand_in
from sparkyard.lab import kit_repo


def test_its_commit_is_known_before_it_is_made(tmp_path):
    more = {"files/chat_template.jinja": b"{{ bos_token }}\n", "files/deep/a.py": b"", "README.md": b"x"}
    made = kit_repo.make(tmp_path / "kit.git", more)
    assert made == kit_repo.commit({**kit_repo.files(), **more})
    assert kit_repo.make(tmp_path / "again.git", more) == made


def test_the_scripts_are_sound_shell():
    for name, content in kit_repo.files().items():
        if name.endswith(".sh"):
            subprocess.run(["sh", "-n"], input=content, check=True)


def test_the_stand_in_names_it():
    assert stand_in.git_commits() == {kit_repo.URL: kit_repo.commit(kit_repo.files())}
