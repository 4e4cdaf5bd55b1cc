"""A request's text as a browser shows it: `python -m migrate_agent.tests.agent.pr.picture docs/request.md docs/request.png`.

The text is a request's Markdown as it was sent (`python -m migrate_agent.tests.agent.pr.whole --body docs/request.md`). It is rendered by
markdown-it with GitHub's tables and folds, and drawn by a headless Chromium in a window of 1280 × 800: what is seen without scrolling.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

WINDOW = (1280, 800)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
body { font: 14px/1.5 "Liberation Sans", Helvetica, Arial, sans-serif; color: #1f2328; margin: 24px auto; max-width: 1012px; }
h1 { font-size: 26px; font-weight: 400; margin: 0 0 8px; } h1 span { color: #59636e; }
.state { background: #1f883d; color: #fff; border-radius: 2em; padding: 4px 12px; font-weight: 600; } .into { color: #59636e; margin-left: 8px; }
.check { color: #1a7f37; font-weight: 600; float: right; }
.box { border: 1px solid #d1d9e0; border-radius: 6px; padding: 4px 16px; margin-top: 16px; }
table { border-collapse: collapse; margin: 12px 0; } th, td { border: 1px solid #d1d9e0; padding: 5px 13px; text-align: left; }
tr:nth-child(2n) td { background: #f6f8fa; } th { font-weight: 600; } a { color: #0969da; text-decoration: none; }
code { font: 12px "Liberation Mono", monospace; background: #818b981f; padding: 2px 5px; border-radius: 6px; }
pre { background: #f6f8fa; padding: 12px; border-radius: 6px; overflow: hidden; } pre code { background: none; padding: 0; }
details { margin: 6px 0; } summary { cursor: pointer; }
"""


def page(text: str) -> str:
    """The HTML page of a request with this Markdown; the title and the status, which stand beside it, are as its text says."""
    unit, passed = re.search(r"^`([^`]+)` →", text, re.MULTILINE), re.search(r"\*\*Verified: (.*)\.\*\*", text)
    title, status = f"Migrate {unit[1] if unit else 'a unit'} to JAX", passed[1] if passed else ""
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    head = f'<h1>{html.escape(title)}</h1><span class="state">Open</span><span class="into">migrate-agent wants to merge 1 commit</span>'
    mark = f'<span class="check">✓ migrate-agent/verify — {html.escape(status)}</span>'
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>{head}{mark}<div class="box">{body}</div>'


def draw(document: str, target: Path) -> None:
    """Write a PNG of the page's first window. Raises `SystemExit` where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"no browser: install one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory(prefix="migrate-agent-picture-") as scratch:
        source = Path(scratch) / "page.html"
        source.write_text(document, encoding="utf-8")
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={scratch}/profile")
        size = f"--window-size={WINDOW[0]},{WINDOW[1]}"
        command = [browser, *options, size, f"--screenshot={target.resolve()}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


def main() -> int:
    """Read the Markdown, write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("picture", type=Path)
    asked = parser.parse_args()
    draw(page(asked.text.read_text(encoding="utf-8")), asked.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
