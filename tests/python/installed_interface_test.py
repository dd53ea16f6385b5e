"""What the public headers promise and what the installed library has are the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from consumers import SONAME, done, library_folder, prefix, public_headers
from public_names import declared_only, names_in, without_arguments
from rank_jobs import ROOT

__all__ = ["prefix"]
pytestmark = pytest.mark.slow
HEADER = """
namespace waywiser {
class Stream;
struct Mode { static constexpr int on(Stream& stream) { return 1; } };
class [[gnu::visibility("default")]] Group {
 public:
  Group(Group&& other) = default;
  std::optional<Status> probe(std::optional<int> patience = {}, std::function<bool()> stop = {});
  void put(int here); void put(double here);
  int rank() const noexcept { return rank_; }
  inline int size() const;
  virtual void wait() = 0;
 private:
  int rank_ = 0;
};
inline int Group::size() const { return 1; }
std::string text(Place place);  // int no_function();
template <typename T> void none(T);
}  // namespace waywiser
"""


def test_functions_are_read_in_headers() -> None:
    assert +names_in(HEADER) == {"waywiser::Group::probe": 1, "waywiser::Group::put": 2, "waywiser::text": 1}


def exported(library: Path) -> set[str]:
    symbols = {line.split()[-1] for line in done("nm", "-D", "--defined-only", library).splitlines()}
    answer = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    return set(answer.stdout.splitlines())


def cpp_headers(prefix: Path) -> list[Path]:
    return [path for path in public_headers(prefix) if path.suffix in (".hpp", ".cuh")]


def test_what_headers_declare_is_exported_and_nothing_else(prefix: Path) -> None:
    names = exported(library_folder(prefix) / SONAME)
    declared = set(re.findall(r"WW_API [^;]*?(ww_\w+)\(", (ROOT / "src/waywiser/c/waywiser.h").read_text()))
    assert {name for name in names if name.startswith("ww_")} == declared
    texts = [(prefix / "include" / path).read_text() for path in cpp_headers(prefix)]
    classes = {
        name for text in texts for name in re.findall(r"class \[\[gnu::visibility\(\"default\"\)\]\] (\w+)", text)
    }
    tables = {name for name in names if re.match(r"(?:vtable|typeinfo|typeinfo name) for ", name)}
    assert {name.removeprefix("waywiser::") for name in {table.split(" for ")[1] for table in tables}} <= classes
    functions = Counter(without_arguments(name) for name in names - declared - tables)
    ours = {name: count for name, count in declared_only(texts).items() if not name.startswith("__")}  # or the system's
    assert functions == Counter(ours)


def test_every_inline_function_links(prefix: Path, tmp_path: Path) -> None:
    """Of the standard library g++ keeps some that do not link."""
    source = tmp_path / "all.cpp"
    headers = [path for path in cpp_headers(prefix) if path.suffix == ".hpp" and path.name != "waywiser_mpi.hpp"]  # MPI
    source.write_text("".join(f"#include <{path}>\n" for path in headers) + "int main() {}\n")
    command = [
        "g++",
        "-std=c++20",
        "-fkeep-inline-functions",
        f"-I{prefix / 'include'}",
        source,
        "-o",
        tmp_path / "all",
    ]
    command += [
        f"-L{library_folder(prefix)}",
        "-lwaywiser",
        "-Wl,--unresolved-symbols=report-all,--warn-unresolved-symbols",
    ]
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    missing = set(re.findall(r"undefined reference to `(.*)'", answer.stderr))
    assert {name for name in missing if "waywiser" in name} == set()


def test_a_future_that_is_thrown_away_is_a_warning(prefix: Path, tmp_path: Path) -> None:
    """Only where the call has just begun."""
    source = tmp_path / "calls.cpp"
    command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix / 'include'}", source]
    for mode, refused in (("wait", False), ("begin", True)):
        source.write_text(
            "#include <waywiser/waywiser.hpp>\n"
            "void call(waywiser::Group& group, waywiser::Elements x) {\n"
            f"  group.all_reduce(x, x, waywiser::ReduceOp::sum, waywiser::Mode::{mode});\n"
            f"  group.barrier(waywiser::Mode::{mode});\n"
            f"  waywiser::Future kept = group.send(x, 0, 0, waywiser::Mode::{mode});\n"
            "}\n"
        )
        answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        assert answer.returncode == refused, answer.stderr
        assert answer.stderr.count("-Werror=unused-result") == 2 * refused


def test_a_compiler_that_is_too_old_is_told_what_is_needed(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "old.cpp"
    source.write_text("#include <waywiser/waywiser.hpp>\n")
    command = ["c++", "-std=c++17", "-fsyntax-only", f"-I{prefix / 'include'}", str(source)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    first = next(line for line in answer.stderr.splitlines() if "error:" in line)
    assert answer.returncode != 0 and "need C++20: g++ 12 or clang 15, or newer, with -std=c++20" in first


def test_programs_open_the_library_by_its_plain_name(prefix: Path) -> None:
    """As ctypes, Julia and Rust do; a compiler finds it by -lwaywiser, too."""
    library = library_folder(prefix) / "libwaywiser.so"
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).ww_version is not None)"
    assert done(sys.executable, "-c", code, library) == "True\n"
    assert f"[{SONAME}]" in done("readelf", "-d", library)
