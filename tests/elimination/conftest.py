import numpy as np
import pytest

from fsmdp.elimination import Network, build
from fsmdp.model.cases import Cases


@pytest.fixture(autouse=True, scope="session")
def _compiled():
    """Compile before the first test, so that no example is charged for it."""
    elimination = build(Network((2,), 1, (Cases(((0,),)),)))
    elimination.maximise(np.zeros(2)).states()
    elimination.rows()
