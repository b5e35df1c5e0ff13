"""Host keys from files in which people, and accidents, have written."""

from __future__ import annotations

import os
from pathlib import Path

import paramiko
import pytest

from sparkyard.errors import SystemRefused
from sparkyard.known_hosts import Keys
from tests.unit import sample

KEY = paramiko.ECDSAKey.generate()
LINE = f"spark-2 {KEY.get_name()} {KEY.get_base64()}\n"
DAMAGE = [
    b"\xbe\xff\x00 garbage \x80\n",
    "# Büro-Rechner\n".encode("latin-1"),
    b"spark-2 ssh-ed25519 AAAA\n",
    b"spark-2 ssh-ed25519 !!!\n",
    b"spark-2 ssh-rsa AAAAB3NzaC1yc2E=\n",
    b"spark-2 nothing-known AAAA\n",
    b"@revoked\n",
    b"spark-2\n",
]


def keys(tmp_path: Path, own: bytes, user: bytes = b"") -> Keys:
    (tmp_path / "known_hosts").write_bytes(own)
    (tmp_path / "user").write_bytes(user)
    return Keys(tmp_path, (tmp_path / "user",))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("own", [True, False], ids=["own", "the person's"])
def test_what_cannot_be_read_is_passed_over_and_the_rest_holds(tmp_path, damage, own):
    text = damage + LINE.encode() + damage
    found = keys(tmp_path, *((text, b"") if own else (b"", text))).of(sample.node(1))
    assert [key.asbytes() for key in found] == [KEY.asbytes()]


def test_recording_a_key_keeps_what_others_wrote(tmp_path):
    damage = b"\xbe\xff other\n"
    trusted = keys(tmp_path, damage)
    trusted.record(sample.node(1), (KEY,))
    trusted.record(sample.node(1), (KEY,))
    assert (tmp_path / "known_hosts").read_bytes() == damage + LINE.encode()


def test_a_key_is_recorded_in_a_file_whose_last_line_has_no_end(tmp_path):
    trusted = keys(tmp_path, b"# edited by hand")
    trusted.record(sample.node(1), (KEY,))
    assert [key.asbytes() for key in trusted.of(sample.node(1))] == [KEY.asbytes()]
    assert (tmp_path / "known_hosts").read_text() == f"# edited by hand\n{LINE}"


def test_a_damaged_merged_file_is_written_anew(tmp_path):
    trusted = keys(tmp_path, LINE.encode())
    trusted.merged_file.write_bytes(b"\xbe\xff")
    assert trusted.write_merged((sample.node(1),)).read_text() == LINE


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    trusted = keys(tmp_path, LINE.encode())
    trusted.own_file.chmod(0)
    with pytest.raises(SystemRefused, match="known_hosts: Permission denied"):
        trusted.of(sample.node(1))
