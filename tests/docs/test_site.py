"""The site: menus have every page, lists read as on GitHub, nothing is loaded from elsewhere.

The build itself (`make docs`) follows every link.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs", reason="needs `make docs`")
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "assets" / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", ["gallery", "results"])
def test_an_index_lists_every_page_of_its_folder(folder: str) -> None:
    index = (DOCS / folder / "index.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", index))
    pages = {str(p.relative_to(DOCS / folder)) for p in (DOCS / folder).rglob("*.md")}
    assert pages - {"index.md"} <= linked


def test_every_other_page_is_in_the_menu() -> None:
    text = re.sub(r"!!python\S+ \{.*\}|!!python\S+", "", (DOCS.parent / "mkdocs.yml").read_text())
    menu = re.findall(r"[\w-]+\.md", str(yaml.safe_load(text)["nav"]))
    assert {page.name for page in DOCS.glob("*.md")} | {"index.md"} == set(menu)


def test_menus_follow_the_indexes(hooks: ModuleType) -> None:
    config = SimpleNamespace(docs_dir=str(DOCS), nav=[{"Gallery": "gallery"}, {"A": "ir.md"}])
    gallery, other = hooks.on_config(config).nav
    assert other == {"A": "ir.md"}
    first, products = gallery["Gallery"][:2]
    assert first == "gallery/index.md"
    assert products["Matrix products"][0] == {"matmul_nn__01": "gallery/matmul_nn__01.md"}


def test_a_list_may_follow_a_paragraph(hooks: ModuleType) -> None:
    text = "told:\n- a\n- b\n\n```\nx\n- y\n```\n| a |\n|---|\n- c"
    page = SimpleNamespace(file=SimpleNamespace(src_uri="ir.md"))
    assert hooks.on_page_markdown(text, page) == text.replace("told:\n-", "told:\n\n-")


@pytest.mark.parametrize(
    ("markup", "refused"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ("<link rel=stylesheet href=//fonts.example/css>", True),
        ('<style>@import "https://fonts.example/css";</style>', True),
        ("<p style='background: url(http://example.org/a.png)'>", True),
        ('<a href="https://example.org">elsewhere</a>', False),
        ('<link rel="canonical" href="https://example.org/">', False),
        ('<script src="assets/x.js"></script><img src="data:,">', False),
    ],
)
def test_what_would_be_loaded_from_elsewhere_is_refused(
    hooks: ModuleType, markup: str, refused: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_text(markup, encoding="utf-8")
    config = SimpleNamespace(site_dir=str(tmp_path))
    if refused:
        with pytest.raises(Exception, match=r"a\.html would load"):
            hooks.on_post_build(config)
    else:
        hooks.on_post_build(config)
