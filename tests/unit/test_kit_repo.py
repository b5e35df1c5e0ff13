"""The lab's kit repository: the same commit everywhere, and the interface that the recipe drives."""

import subprocess

from sparkyard import stand_in
from sparkyard.lab import git_repos, kit_repo


def test_its_commit_is_known_before_it_is_made(tmp_path):
    more = {"files/chat_template.jinja": b"{{ bos_token }}\n", "files/deep/a.py": b"", "README.md": b"x"}
    made = kit_repo.make(tmp_path / "kit.git", more)
    assert made == kit_repo.commit({**kit_repo.files(), **more})
    assert kit_repo.make(tmp_path / "again.git", more) == made


def test_the_scripts_are_sound_shell():
    for name, content in kit_repo.files().items():
        if name.endswith(".sh"):
            subprocess.run(["sh", "-n"], input=content, check=True)


def test_the_stand_in_names_it_and_every_folder_of_repositories(tmp_path):
    named = stand_in.git_commits()
    assert named[kit_repo.URL] == kit_repo.commit(kit_repo.files())
    assert named.keys() == {kit_repo.URL} | {
        f"https://github.com/{path.relative_to(git_repos.TOP)}" for path in git_repos.TOP.glob("*/*")
    }
    git_repos.keep(tmp_path)
    heads = {url: kit_repo._head(tmp_path / url.removeprefix(git_repos.HOST)) for url in named}
    assert heads == named
