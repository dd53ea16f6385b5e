"""Rules on where things stand in this repository. The rules are the tables at the top; the tests only apply them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src/waywiser"

# Folder of src/waywiser -> the folders that it may include, besides itself.
MAY_INCLUDE = {
    "base": set(),
    "device": {"base"},
    "topology": {"base", "device"},
    "path": {"base", "device", "topology"},
    "kernels": {"base", "device"},
    "transport": {"base", "device", "topology", "path", "kernels"},
    "measure": {"base", "device", "topology", "path", "kernels", "transport"},
    "policy": {"base", "device", "topology", "path", "kernels", "transport", "measure"},
    "comm": {"base", "device", "topology", "path", "kernels", "transport", "measure", "policy"},
    "collective": {"base", "device", "topology", "path", "kernels", "transport", "measure", "policy", "comm"},
    "group": {"base", "device", "comm", "collective"},
    "heap": {"base", "device", "kernels", "policy", "comm", "group"},
    "halo": {"base", "device", "topology", "measure", "policy", "comm", "collective", "group"},
    "offload": {"base", "device", "kernels", "comm", "collective", "group"},
    "table": {"base", "device", "policy", "storage", "comm", "group"},
    "storage": {"base", "device", "policy"},
    "c": {
        "base",
        "device",
        "path",
        "topology",
        "measure",
        "policy",
        "comm",
        "group",
        "halo",
        "offload",
        "storage",
        "table",
    },
    "bench": {"base", "device", "kernels", "measure", "comm", "collective", "group", "heap"},
    "sim": {"base", "device", "topology", "path", "transport", "measure", "policy", "comm", "collective"},
}
MOST_PUBLIC_MEMBERS = 40  # of any class
UMBRELLAS = {"waywiser.hpp": "c", "one_sided.cuh": "heap"}  # of no folder -> the folder whose rule they follow
NAMES_THAT_SAY_NOTHING = re.compile(r"^(utils?|misc|helpers?|commons?|managers?)$")
README_LINES = 60
# Function -> the only file that may call it.
ONLY_CALLER = {
    "getenv": "base/environment.cpp",
    "secure_getenv": "base/environment.cpp",
    "setenv": "base/set_environment.cpp",
    "putenv": "",
    # Measurements and groups reach other machines by the same code.
    "worker_create": "transport/ucx/ucx_worker.cpp",
    "ep_create": "transport/ucx/ucx_worker.cpp",
    "ep_close_nbx": "transport/ucx/ucx_worker.cpp",
    "tag_send_nbx": "transport/ucx/ucx_worker.cpp",
    "tag_recv_nbx": "transport/ucx/ucx_worker.cpp",
    "tag_recv_request_test": "transport/ucx/ucx_worker.cpp",
    "request_cancel": "transport/ucx/ucx_worker.cpp",
}
CPP = {".cpp", ".hpp", ".cu", ".cuh"}


def repository_files() -> list[Path]:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode != 0:
        pytest.skip("not a git checkout")
    return [Path(line) for line in answer.stdout.splitlines() if (ROOT / line).exists()]


def cpp_files() -> list[Path]:
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in CPP)


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def includes(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1)


def wrong_includes(folder: str, included: list[str]) -> list[str]:
    """Those of `included` that a file of `folder` must not include."""
    wrong = []
    for header in included:
        parts = header.split("/")
        if parts[0] == "waywiser" and parts[1] != folder and parts[1] not in MAY_INCLUDE[folder]:
            wrong.append(header)
        if parts[0] in (".", ".."):
            wrong.append(header)
    return wrong


def test_the_include_rule_refuses_an_upward_include() -> None:
    assert wrong_includes("base", ["waywiser/base/error.hpp", "vector"]) == []
    assert wrong_includes("base", ["waywiser/path/path.hpp"]) == ["waywiser/path/path.hpp"]
    assert wrong_includes("measure", ["waywiser/policy/plan.hpp"]) == ["waywiser/policy/plan.hpp"]
    assert wrong_includes("path", ["../base/error.hpp"]) == ["../base/error.hpp"]


def test_every_folder_has_a_place_in_the_order() -> None:
    assert {path.name for path in SOURCES.iterdir() if path.is_dir()} <= MAY_INCLUDE.keys()


def test_includes_point_downwards() -> None:
    wrong = []
    for path in cpp_files():
        folder = UMBRELLAS.get(path.name, path.relative_to(SOURCES).parts[0])
        for number, header in includes(path):
            wrong += [f"{path.relative_to(ROOT)}:{number}: {bad}" for bad in wrong_includes(folder, [header])]
    assert wrong == []


def states_of_others(path: Path) -> list[str]:
    """The `*_state.hpp` that a file includes and that belong to another folder: they are behind a handle."""
    states = [header for _, header in includes(path) if header.endswith("_state.hpp")]
    return [f"{path.relative_to(ROOT)}: {header}" for header in states if header.split("/")[1] not in path.parts]


def test_states_belong_to_their_folders() -> None:
    sources = [path for path in repository_files() if path.suffix in CPP]
    assert len(sources) > 500
    assert [wrong for path in sources for wrong in states_of_others(ROOT / path)] == []


def test_headers_of_blocks_of_threads_stand_alone(tmp_path: Path) -> None:
    folder = SOURCES / "kernels/block"
    allowed = {"waywiser/kernels/copy_body.hpp", "waywiser/kernels/device_code.hpp", "waywiser/device/trap.hpp"}
    wrong = []
    for path in sorted(folder.iterdir()):
        if path.suffix not in CPP:
            continue
        others = {header for _, header in includes(path) if header.startswith("waywiser/")} - allowed
        wrong += [f"{path.name}: {header}" for header in others if not header.startswith("waywiser/kernels/block/")]
        if path.suffix == ".hpp":
            said = compile_alone(path, tmp_path)
            wrong += [f"{path.name}: {said}"] if said else []
    assert wrong == []


def test_headers_of_the_heap_for_kernels_include_no_others() -> None:
    allowed = ("waywiser/heap/device/", "waywiser/kernels/block/", "waywiser/kernels/copy_body.hpp")
    allowed += ("waywiser/kernels/device_code.hpp",)
    headers = [path for path in (SOURCES / "heap/device").iterdir() if path.suffix in CPP]
    assert len(headers) > 5
    ours = [(path.name, header) for path in headers for _, header in includes(path) if header.startswith("waywiser/")]
    assert [(name, header) for name, header in ours if not header.startswith(allowed)] == []


def compile_alone(header: Path, folder: Path) -> str:
    """What the compiler says of a header in a file of its own, without the headers of other libraries."""
    source = folder / f"{header.stem}.cpp"
    source.write_text(f'#include "{header.relative_to(ROOT / "src")}"\n')
    options = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src'}"]
    return subprocess.run(["c++", *options, str(source)], capture_output=True, text=True).stderr


def public_members(text: str) -> dict[str, int]:
    """Functions and values that a program sees of each class of a header, overloads once; nothing private."""
    counts = {}
    for name, body in re.findall(
        r"^class (?:\[\[[^\n]*?\]\] )?(\w+)[^;{]*\{\n(.*?)^\};", without_comments(text), re.DOTALL | re.MULTILINE
    ):
        public = re.split(r"^ private:", body, flags=re.MULTILINE)[0]
        members = re.findall(r"^  (?! )([^\n]*?)(?:\(|;)", public, re.MULTILINE)
        counts[name] = len({member.split()[-1] for member in members})
    return counts


def test_public_members_are_counted() -> None:
    public = " public:\n  A();\n  int f(int a,\n        int b) const { return 1; }\n  int f();\n  int a;\n\n"
    within = "  class D {\n   private:\n    int h();\n  };\n"
    text = f"class A : B {{\n{public}{within}{public} private:\n  int g();\n}};\nclass [[a(b)]] C {{\n{public}}};\n"
    assert public_members(text) == {"A": 4, "C": 3}


def test_classes_are_small() -> None:
    large = []
    for path in cpp_files():
        for owner, count in public_members(path.read_text()).items():
            large += [f"{path.name}: {owner} {count}"] if count > MOST_PUBLIC_MEMBERS else []
    assert large == []


def class_names(text: str) -> set[str]:
    """Classes of a file that stand in a namespace; those within a class are its own."""
    kinds = r"^(?:template <[^\n]*>\s*)?(?:class|struct|enum class|enum) (?:alignas\([^)]*\) |\[\[[^\n]*?\]\] )?"
    return set(re.findall(kinds + r"(\w+)(?: final)?(?: :[^\n;{]*)?\s*\{", without_comments(text), re.MULTILINE))


def test_classes_are_found() -> None:
    text = "struct A {\n  struct B {};\n};\ntemplate <typename T>\nclass C final : public A {\n};\n"
    text += "class D;\nstruct A::E {};\nclass [[a(b)]] F {\n};\n"
    assert class_names(text) == {"A", "C", "F"}


def test_no_two_classes_have_one_name() -> None:
    files: dict[str, list[str]] = {}
    for path in cpp_files():
        for name in class_names(path.read_text()):
            files.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def test_headers_are_guarded_by_pragma_once() -> None:
    headers = [path for path in cpp_files() if path.suffix in {".hpp", ".cuh"}]
    assert [str(path) for path in headers if not path.read_text().startswith("#pragma once")] == []


def test_device_code_only_where_the_suffix_says_so() -> None:
    wrong = [path for path in cpp_files() if path.suffix in {".cpp", ".hpp"} and "<<<" in path.read_text()]
    assert wrong == []


def test_names_say_something() -> None:
    wrong = [
        str(path)
        for path in repository_files()
        if any(NAMES_THAT_SAY_NOTHING.match(part.split(".")[0].lower()) for part in path.parts)
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", sorted(path.name for path in SOURCES.iterdir() if path.is_dir()))
def test_each_folder_has_a_short_readme(folder: str) -> None:
    readme = SOURCES / folder / "README.md"
    assert readme.exists(), f"src/waywiser/{folder} has no README.md"
    assert len(readme.read_text().splitlines()) <= README_LINES


def test_functions_with_one_caller_have_one() -> None:
    wrong = []
    for path in cpp_files():
        text = without_comments(path.read_text())
        for function, allowed in ONLY_CALLER.items():
            called = re.search(rf"\b{function}\s*\(", text)
            if called and str(path.relative_to(SOURCES)) != allowed:
                wrong.append(f"{path.relative_to(ROOT)} calls {function}")
    assert wrong == []


def test_every_verb_has_its_file() -> None:
    from waywiser.cli import VERBS

    assert [verb for verb in VERBS if not (ROOT / f"python/waywiser/cli/{verb}.py").exists()] == []


def test_the_design_page_names_every_folder() -> None:
    page = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    assert [name for name in MAY_INCLUDE if f"\n| `{name}` | " not in page] == []
    picture = (ROOT / "docs/images/layers.svg").read_text(encoding="utf-8")
    assert [name for name in MAY_INCLUDE if f">{name}</text>" not in picture] == []
