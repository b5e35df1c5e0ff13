"""The lab's recipe pins its model in full: the commit is made of the files, which are the same on every machine."""

import pytest

from sparkyard import lab as simulated
from sparkyard.lab.hub_files import Repositories
from sparkyard.lab.wheels import MODEL_REPO
from sparkyard.load import load_recipe
from tests.machine.typed import PROJECT

pytestmark = pytest.mark.machine


def test_the_pin_is_what_the_labs_hub_has(lab):
    assert lab.state.folder == str(simulated.here().folder)
    shared, _own = simulated.here().hub_repos
    snapshot = Repositories([shared]).snapshot(MODEL_REPO)
    assert snapshot is not None
    assert load_recipe(PROJECT / "recipes" / "lab").checkpoints["gemma"].revision == snapshot.commit
