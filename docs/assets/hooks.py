"""What the site needs beyond MkDocs: a start page and menus that are written only once, lists as
GitHub reads them, and a build that fails when a page would load anything from elsewhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

FROM_INDEX = ("gallery", "results")
"""Folders whose menu is the order and the headings of their index."""

LIST = re.compile(r"\s{0,3}([-*]|\d+\.)\s")
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|object|embed)\b[^>]*?\b(?:src|data)=["']?(?P<a>[^"'\s>]+)"""
    r"""|<link\b(?![^>]*\brel=["']?(?:canonical|next|prev|alternate)\b)[^>]*?\bhref=["']?(?P<b>[^"'\s>]+)"""
    r"""|url\(["']?(?P<c>[^"')]+)|@import\s+["'](?P<d>[^"']+)"""
)


def on_config(config: Any) -> Any:
    """Fills in the menus that the indexes tell."""
    docs = Path(config.docs_dir)
    config.nav = [
        {title: _menu(docs, page) if page in FROM_INDEX else page}
        for entry in config.nav
        for title, page in entry.items()
    ]
    return config


def _menu(docs: Path, folder: str) -> list[Any]:
    """The index first, then its links under its headings; links of no heading stand alone."""
    menu: list[Any] = [f"{folder}/index.md"]
    under = menu
    for line in (docs / folder / "index.md").read_text("utf-8").splitlines():
        if heading := re.match(r"## (.+)", line):
            under = []
            menu.append({heading[1]: under})
        elif link := re.match(r"(?:\| |- )\[([^]]+)\]\(([\w./-]+\.md)\)", line):
            under.append({link[1].strip("`"): f"{folder}/{link[2]}"})
    return [entry for entry in menu if isinstance(entry, str) or all(entry.values())]


def on_files(files: Any, config: Any) -> Any:
    """The start page is the README, seen from the folder of the pages; the gallery's kernels come
    along."""
    root = Path(config.docs_dir).parent
    text = (root / "README.md").read_text("utf-8")
    files.append(File.generated(config, "index.md", content=text.replace("](docs/", "](")))
    for kernel in sorted((root / "gallery").iterdir()):
        files.append(
            File.generated(
                config, f"gallery/kernels/{kernel.name}", abs_src_path=str(kernel.resolve())
            )
        )
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A list may follow a paragraph without an empty line, as GitHub has it."""
    text = "\n".join(_with_gaps(markdown.splitlines()))
    if posixpath.dirname(page.file.src_uri) == "gallery":
        text = text.replace("](../../gallery/", "](kernels/")
    return text


def _with_gaps(lines: list[str]) -> Iterator[str]:
    before, fenced = "", False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        plain = before.strip() and not before.startswith((" ", "|", "#"))
        if not fenced and LIST.match(line) and plain and not LIST.match(before):
            yield ""
        yield line
        before = line


def on_post_build(config: Any) -> None:
    """Refuses a site that asks another host for anything.

    Raises:
        PluginError: it does; names the page and the address.
    """
    site = Path(config.site_dir)
    for path in sorted(site.rglob("*")):
        if path.suffix not in (".html", ".css"):
            continue
        for found in LOADED.finditer(path.read_text("utf-8")):
            address = next(group for group in found.groups() if group)
            if re.match(r"(?:https?:)?//", address):
                told = f"{path.relative_to(site)} would load {address}"
                raise PluginError(f"{told}; pages may load nothing from elsewhere")
