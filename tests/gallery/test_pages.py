"""What a page says of its kernel is true of that kernel: text, quotations, figures, links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgekernelbench.analysis.explain import Explanation, explain
from edgekernelbench.ir.check import check_text
from edgekernelbench.lowering.lower import lower
from edgekernelbench.suite.gallery import load_gallery
from edgekernelbench.targets.host import host_target

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "gallery"
IDS = tuple(load_gallery())
SECTIONS = ("The kernel", "Compute", "Schedule", "Memory", "For another shape or CPU", "See also")
LAYERS = ("Compute", "Schedule", "Memory")
FIGURES = (
    "| operations | bytes in and out | operations a byte | packed before the call | workspace |"
)


def sections(page: str) -> dict[str, str]:
    """Heading to text; what stands before the first heading under the empty one."""
    parts = re.split(r"^## (.+)$", page, flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def plain(text: str) -> str:
    return " ".join(text.split())


def quotations(section: str) -> list[str]:
    """Bold code: the lines of the kernel, or parts of lines, that a paragraph is about."""
    return [plain(found) for found in re.findall(r"\*\*`([^`]+)`\*\*", section)]


def explained(kernel: str) -> Explanation:
    """For the machine that the index names: AVX2, two threads."""
    caches = (32 << 10, 512 << 10, 32 << 20)
    update = {"vector_bits": 256, "threads": 2, "cache_bytes": caches, "features": ("sse2", "avx2")}
    target = host_target().model_copy(update=update)
    checked = check_text(kernel)
    assert checked.kernel is not None and checked.program is not None
    module = lower(checked.kernel, checked.program, target).module
    assert module is not None
    return explain(checked.program, module, target, None)


def anchors(page: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_kernel_has_a_page_and_every_page_a_kernel() -> None:
    assert {file.stem for file in PAGES.glob("*.md")} == {*IDS, "index"}
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\)", (PAGES / "index.md").read_text(), flags=re.M)
    assert listed == [(id, id) for id in IDS], "the index lists them in the order of ids.txt"


@pytest.mark.parametrize("id", IDS)
def test_a_page_shows_its_kernel_and_quotes_it(id: str) -> None:
    example = load_gallery()[id]
    found = sections(example.page)
    assert example.page.startswith(f"# `{id}`: ")
    assert tuple(found)[1:] == SECTIONS
    blocks = re.findall(r"^```ekir\n(.*?)^```$", example.page, flags=re.S | re.M)
    assert blocks == [example.kernel]
    text = plain(example.kernel)
    for layer in LAYERS:
        for quotation in quotations(found[layer]):
            assert quotation in text, f"{id}, {layer}: {quotation}"
    assert quotations(found["Compute"]) and quotations(found["Schedule"])


@pytest.mark.parametrize("id", IDS)
def test_a_page_accounts_for_every_line_of_the_memory_layer(id: str) -> None:
    example = load_gallery()[id]
    memory = sections(example.page)["Memory"]
    _, _, layer = example.kernel.partition("memory for cpu {")
    lines = [plain(found) for found in re.findall(r"(?:layout|cache|prefetch) [^\n}]+", layer)]
    quoted = quotations(memory)
    if not lines:
        assert "There is no memory layer" in plain(memory) and not quoted
    named = {line.split()[1] for line in lines}
    assert {quotation.split()[1] for quotation in quoted} <= named
    assert all(re.search(rf"`(layout )?{re.escape(name)}\b", memory) for name in named)


@pytest.mark.parametrize("id", IDS)
def test_figures_are_those_of_explain(id: str) -> None:
    example = load_gallery()[id]
    lines = sections(example.page)[""].splitlines()
    shown = lines[lines.index(FIGURES) + 2]
    facts = explained(example.kernel)
    cells = (
        f"{facts.flops:,.0f}",
        f"{facts.io_bytes:,}",
        f"{facts.operations_per_byte:.4g}",
        f"{facts.packed_bytes:,}",
        f"{facts.workspace_bytes:,}",
    )
    assert shown == f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("name", [*IDS, "index"])
def test_links_resolve(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$|`[^`]+`", "", page, flags=re.S | re.M)
    targets = re.findall(r"\]\(([^)]+)\)", prose)
    assert targets
    for target in targets:
        path, _, anchor = target.partition("#")
        file = (PAGES / path).resolve() if path else PAGES / f"{name}.md"
        assert file.exists(), f"{name}: {target}"
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
    other = sections(page).get("See also", "")
    assert name == "index" or re.search(r"\]\((?!index)\w+\.md\)", other), "see also other pages"
