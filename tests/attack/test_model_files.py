"""Wrong and odd model files: the library and the checker read the same model, or refuse."""

import re
from collections import Counter

import numpy as np
import pytest

import fsmdp
from tests.conditioned_models import conditioned, shop
from tests.joint_models import joint_model
from tests.model_readers import read_all, texts

PROVES_NOTHING = re.compile(
    "expected all within|is above high|expected each name once|sigma|probabilities sum to"
    "|over before it begins"
)
"""What only the library refuses: names, bounds and noise of rewards, a row a little off 1, and a
start that is terminal."""


@pytest.mark.slow
def test_both_readers_read_one_model_or_refuse(capsys):
    rng, total, reasons = np.random.default_rng(0), Counter(), Counter()
    models = [fsmdp.domains.sysadmin(3, horizon=2), *map(fsmdp.domains.random_model, range(4))]
    models += [*map(conditioned, range(3)), shop()]
    for model in [*models, *map(joint_model, range(4))]:
        counts, why = read_all(texts(model, rng, 1500))
        total, reasons = total + counts, reasons + why
    with capsys.disabled():
        print(
            f"\nmodel files: {sum(total.values())} texts, {total[True, True]} read by both alike, "
            f"{total[False, False]} refused by both, {total[False, True]} by the library only, "
            f"{total[True, False]} by the checker only"
        )
    assert total[True, True] > 1000 < total[False, False]
    assert total[True, False] == 0
    assert [one for one in reasons if not PROVES_NOTHING.search(one[1])] == []
