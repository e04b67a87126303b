"""The page on simulation runs as it stands, and its comments give the values they claim."""

from tests.documentation import run_page


def test_every_block_runs_and_every_value_is_as_written():
    blocks, claims = run_page("simulate.md")
    assert blocks > 9
    assert claims > 15
