"""The chat template of lane A on two simulated Sparks: fetched, placed, changed by one byte, refused, put right, compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.machine.conftest import Lab, with_stand_ins
from tests.machine.typed import Typist
from tests.parity import adapter

pytestmark = pytest.mark.machine

DATA = "home/.local/share/sparkyard"
PLACED = f"{DATA}/lanes/A/chat_template.jinja"


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    return with_stand_ins(session_lab, tmp_path_factory)


@pytest.fixture
def placed(lab: Lab, typist: Typist) -> Lab:
    """A lab with the template in its place."""
    for node in ("spark-1", "spark-2"):
        (lab.own(node) / PLACED).unlink(missing_ok=True)
    typist.ok("template", "--lane=A", "--yes")
    return lab


def test_it_is_placed_on_every_rank_and_then_there_is_nothing_to_do(placed: Lab, typist: Typist) -> None:
    texts = {(placed.own(node) / PLACED).read_text() for node in ("spark-1", "spark-2")}
    assert len(texts) == 1
    assert "_invalid_arguments" in texts.pop()
    assert typist.ok("template", "--lane=A").changed() == {"spark-1": 0, "spark-2": 0}
    lock = json.loads((typist.inventory / "locks" / "A.json").read_text())
    assert lock["files"]["template"].keys() == {"pristine", "patched"}


@pytest.mark.parametrize("node", ["spark-1", "spark-2"])
def test_one_changed_byte_on_any_rank_is_refused_before_a_start(
    placed: Lab, typist: Typist, node: str
) -> None:
    path = placed.own(node) / PLACED
    good = path.read_text()
    path.write_text(good.replace("Reasoning Effort", "Reasoning effort", 1))
    said = typist.json("start", "--lane=A", "--only=patch")
    assert said.status == 1
    assert "is neither pristine nor patched" in said.failures()
    assert "Reasoning effort" in said.failures()
    refused = typist.json("template", "--lane=A")
    assert refused.status == 2
    assert path.read_text() != good
    assert typist.ok("template", "--lane=A", "--yes").changed()[node] == 1
    assert path.read_text() == good


def test_a_text_that_a_mirror_changed_is_refused(placed: Lab, typist: Typist, tmp_path: Path) -> None:
    lock = typist.inventory / "locks" / "A.json"
    told = json.loads(lock.read_text())
    kept = json.dumps(told)
    told["files"]["template"]["pristine"] = "0" * 64
    lock.write_text(json.dumps(told))
    said = typist.json("template", "--lane=A")
    lock.write_text(kept)
    assert said.status == 1
    assert "the fetched text is not the locked one" in said.failures()


def test_parity_with_an_encoder_in_a_container(placed: Lab, typist: Typist) -> None:
    typist.ok("build", "--lane=A", "--yes")
    folder = placed.own("spark-1") / "home" / "encoding"
    folder.mkdir(exist_ok=True)
    (folder / "encoding.py").write_text(adapter.source())
    inside = placed.out("spark-1", "sh", "-c", "cd ~/encoding && pwd")
    said = typist.ok("template", "--lane=A", f"--encoding={inside}", "--check-parity")
    (record,) = [e["data"]["parity"] for e in said.of("finding") if "parity" in e["data"]]
    assert record["proven"] is True
    assert record["equal"] >= 55
    kept = json.loads((placed.own("spark-1") / "home/.local/state/sparkyard/parity/A.json").read_text())
    assert kept == record
    (folder / "encoding.py").write_text(adapter.source().replace("Effort: {asked}", "Effort {asked}"))
    other = typist.json("template", "--lane=A", f"--encoding={inside}")
    assert other.status == 3
    assert any("parity refuted" in e["message"] for e in other.of("finding"))


def test_no_encoder_anywhere_is_could_not_check(placed: Lab, typist: Typist) -> None:
    said = typist.json("template", "--lane=A", "--check-parity")
    assert said.status == 1
    assert "there is no encoding.py in" in said.failures()
    assert "--encoding=" in said.failures()
