"""A hook of mkdocs (`mkdocs.yml`): the README, CONTRIBUTING and CHANGELOG at the root become pages of the site."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"\[(?P<text>[^]]*)]\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, with links as they are on the site."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=site_links((ROOT / source).read_text(encoding="utf-8"), "")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links from a page of `docs/` up to the root into links of the site."""
    return markdown if page.file.src_uri in PAGES.values() else site_links(markdown, f"docs/{page.file.src_uri.rpartition('/')[0]}")


def site_links(markdown: str, folder: str) -> str:
    """The text of a page that lies in `folder` of the repository. A link to a file that the site has not becomes its text."""

    def replace(link: re.Match[str]) -> str:
        target = link["target"]
        if "://" in target or not (ROOT / folder / target).exists():
            return link[0]  # mkdocs itself refuses what exists nowhere
        path = (ROOT / folder / target).resolve().relative_to(ROOT).as_posix()
        page = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if page is None:
            return link["text"]
        return f"[{link['text']}]({relpath(page, folder.removeprefix('docs').strip('/') or '.')}{link['anchor'] or ''})"

    return LINK.sub(replace, markdown)
