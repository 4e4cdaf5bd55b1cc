"""The corpora are whole, and a fixed part of them is judged as it must be; `migrate-agent eval --suite verifier` judges all of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tests.sampling import first_quick
from migrate_agent.evals.mutation import corpus
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.verify.harness import told
from migrate_agent.tools import leftovers
from migrate_agent.tools.rewrite.tables import helpers as vendoring
from migrate_agent.tools.verify import Options
from migrate_agent.tools.verify.checks.static import calls, constants, imports, patches
from migrate_agent.tools.verify.evidence.parsed_source import Source, imported_modules

ORIGINALS = corpus.load_originals()
CASES = {case.id: case for case in corpus.load_cases()}
LEAST = {"wrong": 150, "cheats": 40, "right": 100}
FAMILIES = {
    "wrong": """approximate functions; clamp; numerically unstable formulas; dropped or added detach; ignored parameter; eps;
        wrong axis where sizes agree; off-by-one slices and masks; momentum; bias correction; biased or unbiased variance; padding sides;
        interpolation alignment; reduction order with NaN; lost in-place update; stale buffer; dropped dropout or dropout scale;
        baked-in randomness; precision or output dtype; gate order; ceil mode; tie-breaking; sign of zero; integer division of negatives""",
    "cheats": """importing or subclassing the original; callbacks to the host; reading files or the environment; caching or memoising by input;
        constant outputs; shape-specific code; mutating inputs; early exit; patching comparison or timing functions; printing success;
        zero weights or saturated outputs; stop_gradient or wrong custom_vjp; eval-only code; pallas_call present but dead;
        work moved outside jit; fork bombs and memory bombs; writing outside the output folder; forging the result file""",
    "right": "fused; reassociated; chunked; scanned; NHWC inside; other but equal formulas; bf16 policy; ill-conditioned",
}
"""Each must have a case: the families that the corpora are meant to cover."""


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_corpus_covers_its_families(kind: corpus.Kind) -> None:
    cases = [case for case in CASES.values() if case.kind == kind]
    assert len(cases) >= LEAST[kind]
    missing = {" ".join(name.split()) for name in FAMILIES[kind].split(";")} - {case.family for case in cases}
    assert not missing


def test_cases_are_well_formed() -> None:
    helpers = {*vendoring.symbols(), *vendoring.of_programs()}
    for case in CASES.values():
        assert case.title.endswith((".", "?", "!")), case.id
        assert case.original in ORIGINALS, case.id
        names = {node.name for node in ast.parse(case.source).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert ORIGINALS[case.original].unit.name in names, case.id
        assert corpus.helper_names(case.source) <= helpers, case.id
        assert bool(case.only) == bool(case.skip), case.id
        assert case.kind == "wrong" or not case.place, case.id


def test_originals_are_used() -> None:
    assert {case.original for case in CASES.values()} == set(ORIGINALS)


def test_no_two_cases_are_the_same() -> None:
    bodies: dict[tuple[str, str], str] = {}
    for case in CASES.values():
        body = (case.original, ast.dump(ast.Module(ast.parse(case.source).body[1:], [])))
        assert bodies.setdefault(body, case.id) == case.id


def test_a_bad_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "right").mkdir()
    (tmp_path / "right" / "x.py").write_text('"""A port.\n\noriginal: mlp\nfamly: fused\n"""\n')
    with pytest.raises(corpus.CorpusError, match=r"x\.py: 'famly: fused' is no line"):
        corpus.load_cases(folder=tmp_path)
    (tmp_path / "right" / "x.py").write_text('"""A port.\n\noriginal: mlp\n"""\n')
    with pytest.raises(corpus.CorpusError, match="one line `family"):
        corpus.load_cases(folder=tmp_path)


RIGHT = '"""A port.\n\noriginal: mlp\nfamily: fused\n"""\n\nx = 1\ny = 1\n'
ROW = '[[case]]\nname = "x"\ntitle = "Two."\nfamily = "eps"\nfrom = "mlp"\n'


def wrong(folder: Path, row: str) -> list[corpus.Case]:
    """The cases of a corpus with one right rewrite and this table of wrong ones."""
    for kind, name, text in (("right", "mlp.py", RIGHT), ("wrong", "mlp.toml", row)):
        (folder / kind).mkdir(exist_ok=True)
        (folder / kind / name).write_text(text)
    return corpus.load_cases(["wrong"], folder)


def test_a_row_is_a_right_rewrite_with_edits(tmp_path: Path) -> None:
    (case,) = wrong(tmp_path, ROW + 'old = "x = 1"\nnew = "x = 2"\n')
    assert (case.id, case.original, case.family, case.source) == ("wrong/x", "mlp", "eps", '"""Two."""\nx = 2\ny = 1\n')
    edits = [f'[[case.edit]]\nold = "{name} = 1"\nnew = "{name} = 2"\n' for name in "xy"]
    (case,) = wrong(tmp_path, ROW + "".join(edits))
    assert case.source == '"""Two."""\nx = 2\ny = 2\n'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW + 'old = "= 1"\nnew = "= 2"\n', r"mlp\.toml: case 'x': edit 1: its `old` stands 2 times in mlp\.py, not once: '= 1'"),
        (ROW + 'old = "z"\nnew = ""\n', "edit 1: its `old` stands 0 times"),
        (ROW + 'old = "fused"\nnew = ""\n', "stands 0 times"),  # the docstring is not edited
        (ROW + 'old = "x = 1"\n', "edit 1 needs `old` and `new`"),
        (ROW + "[[case.edit]]\n", "edit 1 needs `old` and `new`"),
        (ROW + 'kind = "x"\n', "unknown keys: kind"),
        (ROW.replace("mlp", "gru"), r"there is no .*gru\.py"),
        (ROW.replace('family = "eps"\n', ""), "case 'x': it has no family"),
        ("[[case", r"mlp\.toml: "),
        (2 * (ROW + 'old = "x = 1"\nnew = "x = 2"\n'), "two cases have the name 'x'"),
    ],
)
def test_a_bad_row_is_named(row: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(corpus.CorpusError, match=message):
        wrong(tmp_path, row)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProcessSandbox, Path]]:
    """A warm sandbox, and the folder of all cases."""
    with ProcessSandbox() as sandbox:
        yield sandbox, tmp_path_factory.mktemp("corpus")


@pytest.mark.parametrize("name", first_quick(8, corpus.FAST))
def test_verdict(name: str, judged: tuple[ProcessSandbox, Path]) -> None:
    sandbox, folder = judged
    case = CASES[name]
    evidence = corpus.verify_case(
        ORIGINALS[case.original], case.source, sandbox, folder / case.original, Options(localise=bool(case.place), port=case.port)
    )
    assert (evidence.status == "verified") == (case.kind == "right"), told(evidence)
    if case.place:
        assert corpus.named_place(evidence) == case.place, told(evidence)


STATIC_FAMILIES = {
    "importing or subclassing the original",
    "callbacks to the host",
    "reading files or the environment",
    "writing outside the output folder",
}
STATIC = sorted(case.id for case in CASES.values() if case.kind == "cheats" and case.family in STATIC_FAMILIES)


@pytest.mark.parametrize("name", STATIC)
def test_what_reaches_out_is_refused_unrun(name: str) -> None:
    assert refused_unrun(CASES[name])


@pytest.mark.parametrize("original", ORIGINALS)
def test_right_rewrites_pass_the_static_checks(original: str) -> None:
    assert [case.id for case in CASES.values() if (case.kind, case.original) == ("right", original) and refused_unrun(case)] == []


def refused_unrun(case: corpus.Case) -> bool:
    """Whether the static checks find something in the candidate's file."""
    source = Source("model_jax.py", ast.parse(case.source))
    names = imported_modules(source.tree, "model_jax", False)
    imported = any(imports.reason(name, ("model",)) for name in names)
    left = list(leftovers.find({"model_jax.py": case.source}, imports=False))
    return imported or bool([*calls.find(source), *patches.find(source), *constants.find(source), *left])
