"""Command lines in READMEs and shell scripts give options values that have no default."""

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.record.guessing.objects.command_lines import texts_with_commands, written_options
from migrate_agent.tools.record.guessing.settings import settings_of

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a list": ("$ python train.py --blocks 18 18 18\n", {"blocks": [18, 18, 18]}),
    "a list of one": ("python train.py --blocks 4", {"blocks": [4]}),
    "a number": ("```\npython3 train.py --width=16 --lr 0.1\n```", {"width": 16}),
    "a word": ("CUDA_VISIBLE_DEVICES=0 python -u ./src/train.py --model-name resnet --width 3", {"model_name": "resnet", "width": 3}),
    "several lines": ("python train.py \\\n    --width 8 \\\n    --blocks 1 2\n", {"width": 8, "blocks": [1, 2]}),
    "the first line goes first": ("python train.py --width 8\npython train.py --width 9\n", {"width": 8}),
    "a place that is to be filled": ("python train.py --width <width> --model-name $NAME\n", {}),
    "no options": ("python train.py\npython train.py data out\n", {}),
    "another script": ("python test.py --width 8\n", {}),
    "the end of the command": ("python train.py --width 8 > log.txt\n", {"width": 8}),
    "quotes that do not end": ("python train.py --model-name 'a\n", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_options_of_a_line(case: str, tmp_path: Path) -> None:
    text, expected = CASES[case]
    (tmp_path / "README.md").write_text(text)
    assert written_options(texts_with_commands(tmp_path), "train.py", ["blocks", "width", "model_name"], ["blocks"]) == expected


def test_a_default_goes_before_a_line(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--width', type=int, default=4)\n"
        "p.add_argument('--num-blocks', nargs='+', type=int)\np.add_argument('-k', dest='kernel')\n"
    )
    (tmp_path / "run.sh").write_text("python train.py --width 512 --num-blocks 3 4 -k 5\n")
    assert settings_of(tmp_path, [source])[0] == {"width": 4, "num_blocks": [3, 4]}


def test_a_parser_without_any_default(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('--width', type=int, required=True)\n")
    (tmp_path / "run.sh").write_text("python train.py --width 12\n")
    assert settings_of(tmp_path, [source]) == [{"width": 12}]


TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "pairs": ("config = OrderedDict([('depth', args.depth), ('shape', (1, 3)), ('n', 10)])\n", {"depth": 26, "shape": (1, 3), "n": 10}),
    "what is no option": ("config = dict([('depth', args.other), ('n', 10)])\n", {"n": 10}),
    "a dictionary of options": ("config = {'depth': args.depth, 'n': other.depth}\n", {"depth": 26}),
    "no pairs": ("config = Config(['depth', 'n'])\nconfig = Config([1, 2])\n", {}),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_of_options(case: str, tmp_path: Path) -> None:
    text, expected = TABLES[case]
    source = tmp_path / "train.py"
    source.write_text(
        f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--depth', type=int, default=26)\nargs = p.parse_args()\n{text}"
    )
    tables = settings_of(tmp_path, [source])
    assert tables[1:] == ([expected] if expected else [])
