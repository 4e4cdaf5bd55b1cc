"""Stars of Python's own modules as lists of names."""

import pytest

from migrate_agent.tools.rewrite.analysis.names.listed_stars import listed_stars

CASES = {
    "names that the file reads": ("from math import *\ny = sqrt(pi)\n", "from math import pi, sqrt\ny = sqrt(pi)\n"),
    "a comment stays": ("from abc import *  # all\nclass A(ABC): ...\n", "from abc import ABC  # all\nclass A(ABC): ...\n"),
    "the later of two": (
        "from math import *\nfrom numpy import *\ny = sqrt(2)\n",
        "from math import sqrt\nfrom numpy import sqrt\ny = sqrt(2)\n",
    ),
    "a builtin that is given again": ("from builtins import *\ny = max(1, 2)\n", "from builtins import *\ny = max(1, 2)\n"),
    "nothing is read": ("from math import *\n", "from math import *\n"),
    "another star comes later": ("from math import *\nfrom torch import *\ny = sqrt(x)\n",) * 2,
    "a module of the repository": ("from statistics import *\ny = mean(x)\n",) * 2,
    "of a package": ("from .math import *\ny = sqrt(2)\n",) * 2,
    "no program": ("from math import *\nprint 1\n",) * 2,
}


@pytest.mark.parametrize("case", CASES)
def test_stars(case: str) -> None:
    text, expected = CASES[case]
    assert listed_stars(text, {"statistics", "model"}) == expected
