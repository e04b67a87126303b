"""The pages on learning and on baselines run as they stand."""

import pytest
from tests.documentation import run_page
from tests.learning.learning_models import own_registrations


@pytest.mark.parametrize(("page", "least"), [("learning.md", 3), ("baselines.md", 3)])
def test_every_block_runs(page, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with own_registrations():
        blocks, claims = run_page(page)
    assert blocks >= least
    assert claims >= 2
