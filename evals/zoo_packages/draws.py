"""Packages drawn by lot from the package index: what was drawn, pinned, and laid out as the repository that its owner would have.

`evals/draws/<seed>.toml` says what was drawn, in order; `evals/draws/<seed>/<package>.toml` is a file as in `evals/zoo/`, with the examples
that a person wrote. `python -m migrate_agent.evals.zoo_packages.draws DRAW.json` writes both, without examples, from the record of a draw:
`{"seed": N, "population": N, "drawn": [{"name": …, "wheel": …}], "passed_over": {…}}`.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.evals.zoo_packages.packages import Package, cache_folder, download, fetch, load_packages, matches

DRAWS = Path(__file__).parents[1] / "draws"
TEXTS = frozenset({".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".md", ".rst", ".txt", ".sh"})
MAX_TEXT = 1 << 20
"""Bytes of a file that is laid out; larger ones are data."""
METADATA = (".dist-info", ".data")


@dataclass(frozen=True)
class Draw:
    """The packages that one seed drew, in order, of a `population` of candidates."""

    seed: int
    population: int
    packages: tuple[Package, ...]


def seeds() -> list[int]:
    """The seeds that were drawn."""
    return sorted(int(file.stem) for file in DRAWS.glob("*.toml"))


def load_draw(seed: int, folder: Path = DRAWS) -> Draw:
    """The draw of this seed. Raises `UsageError` where it was not drawn."""
    path = folder / f"{seed}.toml"
    if not path.exists():
        raise UsageError(f"nothing was drawn by seed {seed}: drawn are {', '.join(map(str, seeds()))} (evals/draws)")
    row = tomllib.loads(path.read_text(encoding="utf-8"))
    packages = {package.name: package for package in load_packages(folder / str(seed))}
    return Draw(seed, row["population"], tuple(packages[name] for name in row["drawn"]))


def earlier(name: str, seed: int) -> list[str]:
    """Where this package was seen before: the draws of smaller seeds, and `zoo`. What was seen before is no first look."""
    places = [str(other) for other in seeds() if other < seed and (DRAWS / str(other) / f"{name}.toml").exists()]
    known = {_spelling(package) for entry in load_packages() for package in entry.versions}
    return places + (["zoo"] if _spelling(name) in known else [])


def _spelling(name: str) -> str:
    return name.lower().replace("_", "-")


def lay_out_texts(package: Package, folder: Path) -> None:
    """Write the text files of the package's wheel below `folder`, and its long description as `README.md`. Raises `PackageError`.

    Data are written where `copy` names them besides `**`; the texts of `write` replace the wheel's.
    """
    for source in package.sources:
        with zipfile.ZipFile(fetch(source, cache_folder())) as wheel:
            written = {**dict(_texts(wheel)), **dict(_data(wheel, source.copy))}
        for name, content in {**written, **{name: text.encode() for name, text in source.write.items()}}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _texts(wheel: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    for info in wheel.infolist():
        top = info.filename.partition("/")[0]
        if top.endswith(METADATA):
            if info.filename == f"{top}/METADATA" and (description := email.message_from_bytes(wheel.read(info)).get_payload()):
                yield "README.md", str(description).encode(errors="replace")
        elif Path(info.filename).suffix in TEXTS and info.file_size <= MAX_TEXT:
            yield info.filename, wheel.read(info)


def _data(wheel: zipfile.ZipFile, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    # `**` stands for the texts alone: weights that no example reads would only make the repository large.
    named = [pattern for pattern in patterns if pattern != "**"]
    for name in wheel.namelist():
        if any(matches(name, pattern) for pattern in named):
            yield name, wheel.read(name)


def pin(record: Path, folder: Path = DRAWS) -> Path:
    """Write the files of a draw from its record. Files that exist stay as they are: their examples are somebody's work. Gives the draw's file."""
    row = json.loads(record.read_text(encoding="utf-8"))
    seed, names = int(row["seed"]), []
    (folder / str(seed)).mkdir(parents=True, exist_ok=True)
    for drawn in row["drawn"]:
        path = folder / str(seed) / f"{drawn['name']}.toml"
        names.append(drawn["name"])
        if not path.exists():
            path.write_text(_pinned(drawn, seed), encoding="utf-8")
    text = f"seed = {seed}\npopulation = {row['population']}\npassed_over = {len(row['passed_over'])}\ndrawn = {json.dumps(names)}\n"
    (folder / f"{seed}.toml").write_text(text, encoding="utf-8")
    return folder / f"{seed}.toml"


def _pinned(drawn: dict[str, Any], seed: int) -> str:
    file, version = drawn["wheel"], drawn["wheel"].split("-")[1]
    digest = hashlib.sha256(download(drawn["name"], version, file, cache_folder()).read_bytes()).hexdigest()
    rows = {"package": drawn["name"], "version": version, "file": file, "sha256": digest}
    lines = [f"{key} = {json.dumps(value)}" for key, value in rows.items()]
    return "\n".join([f'family = "drawn by seed {seed}"', "", "[[source]]", *lines, 'copy = ["**"]', ""])


def main(arguments: Sequence[str] | None = None) -> None:
    """Pin draws."""
    parser = argparse.ArgumentParser(description="Pin the packages of draws: versions and hashes of their wheels.")
    parser.add_argument("records", nargs="+", type=Path, metavar="DRAW.json")
    for record in parser.parse_args(arguments).records:
        print(pin(record))


if __name__ == "__main__":
    main()
