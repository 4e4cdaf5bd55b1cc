"""The roles of scenarios as a map that holds, and scenarios as plain data."""

from __future__ import annotations

import ast
import inspect
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from migrate_agent.tools import verify
from migrate_agent.tools.harness.common.conditions import Attribute, Conditions
from migrate_agent.tools.harness.common.input_sampling import Extreme
from migrate_agent.tools.harness.common.random_streams import Drawing, Dropped
from migrate_agent.tools.verify.checks.base import Check, load_checks
from migrate_agent.tools.verify.contract.scenario import NoiseOfScenario, Request, Role, Scenario, first_drawing

ROOM = Path(verify.__file__).parent
CHECKS = {check.name: check for check in load_checks()}


def documented() -> dict[Role, str]:
    """The docstring below each member of the enum."""
    tree = ast.parse((ROOM / "contract/scenario.py").read_text())
    (enum,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Role")
    pairs = zip(enum.body, enum.body[1:], strict=False)
    return {
        Role[node.targets[0].id]: text.value.value
        for node, text in pairs
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def names_role(path: Path, role: Role) -> bool:
    """Whether a file speaks of the role by its member."""
    return re.search(rf"\bRole\.{role.name}\b", path.read_text()) is not None


def reads_role(check: Check, role: Role) -> bool:
    """Whether a check's row has the role, or, where it has a module of its own, its module."""
    if isinstance(check.judge, partial):
        rows = (row if isinstance(row, tuple) else (row,) for row in check.judge.args)
        return any(item is role for row in rows for item in row)
    return names_role(Path(inspect.getfile(check.judge)), role)


def test_every_role_has_a_docstring() -> None:
    assert set(documented()) == set(Role)


@pytest.mark.parametrize("role", Role)
def test_a_role_is_made_where_its_docstring_says(role: Role) -> None:
    maker = re.search(r"Made in\s+`([\w/]+\.py)`", documented()[role])
    assert maker and maker[1].startswith(("original/", "evidence/search")) and names_role(ROOM / maker[1], role)


@pytest.mark.parametrize("role", Role)
def test_a_role_is_read_by_the_checks_that_its_docstring_names(role: Role) -> None:
    readers = set(re.findall(r"`(\w+)`", documented()[role].partition("read by")[2]))
    assert readers and readers <= set(CHECKS)
    assert {name for name, check in CHECKS.items() if reads_role(check, role)} <= readers


def plain_roles(path: Path) -> list[str]:
    """Roles that are written as strings: arguments of `add` and `answers`, and what `.role` is compared with."""
    strings: list[ast.expr] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("add", "answers"):
            strings += node.args[1:] if node.func.attr == "add" else node.args
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("role"):
            strings += node.comparators
    return [node.value for node in strings if isinstance(node, ast.Constant) and node.value in set(Role)]


def test_no_role_is_a_plain_string_in_the_verifier() -> None:
    assert {path.name: roles for path in ROOM.rglob("*.py") if (roles := plain_roles(path))} == {}


SCENARIO = Scenario(
    name="e0-gradient-train-s1",
    role=Role.GRADIENT,
    extreme=Extreme.LARGE,
    mode="train",
    seed=1,
    sampled=True,
    gradient=True,
    state="e0-s1",
    drawing=Drawing("low", Dropped(axis=(4, 0)), (0.1, 0.9)),
    conditions=Conditions("bfloat16", ("norm",), (Attribute("scale", 1.0, 0.5),)),
    native=["float32"],
    leaf_dtypes=["float32"],
    draws=[["bernoulli", [2, 3], 0.5]],
    noise=NoiseOfScenario({"out/0": [1e-12, 2e-12]}, ("grad/w",)),
)


def test_a_scenario_survives_json() -> None:
    arrays = {"out/0": np.zeros(3)}
    read = Scenario.from_json(json.loads(json.dumps(SCENARIO.to_json())), arrays)
    assert (
        json.dumps(read.to_json()) == json.dumps(SCENARIO.to_json())
        and read.drawing == SCENARIO.drawing
        and read.conditions == SCENARIO.conditions
        and read.role is Role.GRADIENT
    )
    assert read.extreme is Extreme.LARGE
    assert read.arrays is arrays and read.noise == SCENARIO.noise


def test_a_candidate_is_told_how_to_call_and_nothing_of_the_answer() -> None:
    row = json.loads(json.dumps(SCENARIO.request().to_json()))
    called = {"name", "example", "role", "mode", "gradient", "state", "drawing", "conditions", "leaf_dtypes"}
    assert set(row) == called | {"native", "draws", "before", "prior", "empty"}
    assert row["draws"] is True and row["native"] is True
    assert Request.from_json(row) == SCENARIO.request()


def test_the_first_call_that_draws_is_in_training_mode() -> None:
    silent, other = Scenario(name="a", role=Role.GRADIENT, mode="train"), Scenario(name="b", role=Role.SEED, draws=[["normal", [1], None]])
    configured = Scenario(name="c", role=Role.CONFIGURATION, mode="train", draws=[["normal", [1], None]])
    assert first_drawing([silent, other]) is None
    assert first_drawing([configured, SCENARIO]) is SCENARIO
    assert first_drawing([configured]) is configured


def test_noise_is_known_or_asked_for() -> None:
    assert SCENARIO.changes_by_noise("out/0") == (1e-12, 2e-12) and SCENARIO.changes_by_noise("out/1") == (0.0, 0.0)
    assert Scenario(name="a", role=Role.SEED, noise=NoiseOfScenario(None)).changes_by_noise("out/0") == (float("inf"), float("inf"))
    edge = Scenario(name="a", role=Role.GRADIENT_EDGE, noise=SCENARIO.noise)
    assert edge.undecided("grad/w") and not edge.undecided("out/0")
    assert not SCENARIO.undecided("grad/w"), "the gradients of usual inputs are always compared"
