"""Every link between the Markdown pages, and from them to files and images, leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from markdown_links import anchors, broken_links, slug, targets

ROOT = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users)/\w")


def pages() -> list[Path]:
    """Pages that git tracks or would add; without git, pages of the folders that have some."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    answer = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode == 0:
        return [ROOT / name for name in answer.stdout.splitlines() if (ROOT / name).exists()]
    folders = ("apps", "benchmarks", "docs", "examples", "python", "scripts", "src", "tests")
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))])


PAGES = pages()


def test_there_are_some() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/groups.md", "src/waywiser/base/README.md"} <= names
    assert sum(len(list(targets(page))) for page in PAGES) > 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page, ROOT) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_path_of_one_machine(page: Path) -> None:
    assert MACHINE_PATH.findall(page.read_text(encoding="utf-8")) == []


GOOD = """\
# A page: its *title*

[a file](other.md), [an anchor](other.md#a-code-word), [twice](other.md#twice-1), [here](#a-page-its-title),
[a folder](folder), [a line](code.cpp#L2), ![an image](folder/image.png), [a name][known], [known][], [known],
[outside](https://example.com/nowhere#at-all), <a href="other.md#by-hand">HTML</a>

```
[not a link](nowhere.md), `[nor][this]`
```

[known]: <folder/with space.md> "A title"
"""
OTHER = """\
# Other
## A `code` word
## Twice
### Twice
<a id="by-hand"></a>
"""


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside.md").touch()
    (root / "folder/image.png").touch()
    (root / "folder/with space.md").touch()
    (root / "code.cpp").write_text("int one;\nint two;\n")
    (root / "other.md").write_text(OTHER)
    return root


def test_good_links_of_every_kind(made_up: Path) -> None:
    page = made_up / "page.md"
    page.write_text(GOOD)
    assert len(list(targets(page))) == 12
    assert broken_links(page, made_up) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[a](nowhere.md)", "nowhere.md: there is no such file"),
        ("[a](nowhere.md#other)", "nowhere.md#other: there is no such file"),
        ("![a](folder/nothing.png)", "folder/nothing.png: there is no such file"),
        ("| [in a table](nowhere.md) |\n|---|\n", "nowhere.md: there is no such file"),
        ('<img src="nothing.png">', "nothing.png: there is no such file"),
        ("[a](#nothing)", "#nothing: page.md has no such heading"),
        ("[a](other.md#nothing)", "other.md#nothing: other.md has no such heading"),
        ("[a](other.md#Other)", "other.md#Other: other.md has no such heading"),
        ("[a](other.md#twice-2)", "other.md#twice-2: other.md has no such heading"),
        ("[a](code.cpp#L3)", "code.cpp#L3: the file has fewer lines"),
        ("[a](code.cpp#main)", "code.cpp#main: code.cpp has no headings"),
        ("[a](../outside.md)", "../outside.md: leaves the repository"),
        ("[a](/etc/hostname)", "/etc/hostname: names a place of one machine"),
        ("[a](file:///etc/hostname)", "file:///etc/hostname: names a place of one machine"),
        ("[a][b]\n\n[b]: nowhere.md", "nowhere.md: there is no such file"),
        ("[a][b]", "[a][b]: is not defined"),
        ("[a][]", "[a][]: is not defined"),
    ],
)
def test_a_broken_link_is_found(made_up: Path, text: str, why: str) -> None:
    page = made_up / "page.md"
    page.write_text(f"# Page\n\n{text}\n")
    assert broken_links(page, made_up) == [why]


def test_a_path_of_one_machine_is_found() -> None:
    assert MACHINE_PATH.findall("see `/home/me/x` and /home/me, not docs/home/x or /tmp/x") == ["/home/m", "/home/m"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("barrier, neighbor_exchange", "barrier-neighbor_exchange"),
        ("C++", "c"),
        ("1. Look (a minute)", "1-look-a-minute"),
        ("From 7 us - to 3", "from-7-us---to-3"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_repeated_heading_gets_a_number(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n## A\n## A-1\n## A\n\n```\n# no heading\n```\n")
    assert anchors(page) == {"a", "a-1", "a-1-1", "a-2"}
