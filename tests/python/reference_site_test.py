"""The parts of `make docs`: the reader of headers, and the checks that reject a site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from reference import built_site, entries, headers

if TYPE_CHECKING:
    from reference.headers import Entry

CPP = """\
#pragma once

// What the file is for.
#include <string>

namespace waywiser {

class Announced;

// A thing.
// Two lines of it.
class [[gnu::visibility("default")]] Thing : public Base {
 public:
  Thing(int a) : a_{a}, b_(f(a)) {}  // NOLINT(google-explicit-constructor)
  // Has a body; the brace in "}" ends nothing.
  [[nodiscard]] int a() const noexcept { return text == "}" ? '{' : a_; }
  int x = 1, y = 2;  // both

  struct Inner {
    std::array<int, 2> pair = {};
  };

 private:
  int hidden() const;
  int a_;
};

enum class Kind : int {
  one,   // the first
  two = 2
};  // of things

// For a type.
template <typename T>
struct Named;
template <>
struct Named<int> {
  int hidden = 0;
};

template <typename T>
using Other = Named<T>;
enum class Kind : int;

struct alignas(sizeof(int) * 2) [[gnu::may_alias]] Pair {
  using Thing::Thing;
  int low, high;
};

#if defined(HERE)
// On this machine.
__device__ int where(int a) { return a; }
#else
__device__ int where(int) { return 0; }
#endif

inline constexpr int limit = 3;  // at most
[[gnu::visibility("default")]] Thing& operator+=(Thing& a, const Thing& b);

}  // namespace waywiser
"""
C = """\
/* The file.
 *
 * Goes on. */
#ifndef GUARD
#define GUARD
typedef enum ww_kind { WW_A = 0, /* first */ WW_B = 1 } ww_kind;
typedef struct ww_opaque ww_opaque;

/* Section. Its words. ----------------------------------------- */

/* Does it. */
WW_API int ww_do(const ww_opaque* it,
                 size_t count);
/* Its way. */
#if X
#define WW_WAY 1
#else
#define WW_WAY
#endif
#endif
"""


def told(entry: Entry) -> list[str]:
    own = f"{entry.kind}: {entry.signature}" + (f" - {entry.text}" if entry.text else "")
    return [own.replace("\n", " / "), *(f"  {line}" for member in entry.members for line in told(member))]


@pytest.mark.parametrize(
    ("source", "text", "lines"),
    [
        pytest.param(
            CPP,
            "What the file is for.",
            [
                "class: Thing : public Base - A thing. / Two lines of it.",
                "  function: Thing(int a)",
                '  function: [[nodiscard]] int a() const noexcept - Has a body; the brace in "}" ends nothing.',
                "  variable: int x = 1 - both",
                "  variable: int y = 2 - both",
                "  struct: Inner",
                "    variable: std::array<int, 2> pair = {}",
                "enum: Kind : int - of things",
                "  enumerator: one - the first",
                "  enumerator: two = 2",
                "struct: template <typename T> Named - For a type.",
                "type: template <typename T> Other = Named<T>",
                "struct: Pair",
                "  variable: int low",
                "  variable: int high",
                "function: __device__ int where(int a) - On this machine.",
                "variable: constexpr int limit = 3 - at most",
                "function: Thing& operator+=(Thing& a, const Thing& b)",
            ],
            id="C++",
        ),
        pytest.param(
            C,
            "The file.\n\nGoes on.",
            [
                "enum: ww_kind",
                "  enumerator: WW_A = 0 - first",
                "  enumerator: WW_B = 1",
                "struct: ww_opaque",
                "note:  - Section. Its words.",
                "function: int ww_do(const ww_opaque* it, size_t count) - Does it.",
                "macro: WW_WAY - Its way.",
            ],
            id="C",
        ),
    ],
)
def test_a_header(source: str, text: str, lines: list[str]) -> None:
    header = headers.read_header(source)
    assert header.text == text
    assert [line for entry in header.entries for line in told(entry)] == lines


def test_every_installed_header_can_be_read() -> None:
    names = headers.public_headers()
    assert {"waywiser.hpp", "c/waywiser.h", "group/group.hpp"} <= set(names)
    read = {name: headers.read_header((headers.ROOT / "src/waywiser" / name).read_text()) for name in names}
    assert [name for name, header in read.items() if not header.entries] == ["waywiser.hpp", "one_sided.cuh"]


GOOD = '<h1 id="top">One</h1><a href="two.html#there">a</a><a href="#top">b</a><a href="https://example.com/x">c</a>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "one.html").write_text(GOOD)
    (tmp_path / "two.html").write_text('<p id="there"><img src="image.png"></p><script src="of.js?v=1"></script>')
    for name in ("image.png", "of.js"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_good_site(site: Path) -> None:
    assert built_site.broken(site, built_site.read_site(site)) == []


@pytest.mark.parametrize(
    ("html", "why"),
    [
        ('<a href="three.html">a</a>', "three.html: there is no such file"),
        ('<a href="two.html#nowhere">a</a>', "two.html#nowhere: there is no such anchor"),
        ('<a href="#nowhere">a</a>', "#nowhere: there is no such anchor"),
        ('<img src="nothing.png">', "nothing.png: there is no such file"),
        (
            '<script src="https://cdn.example.com/x.js"></script>',
            "https://cdn.example.com/x.js: is fetched from the network",
        ),
        ('<link rel="stylesheet" href="//fonts.example.com/x">', "//fonts.example.com/x: is fetched from the network"),
    ],
)
def test_a_broken_site(site: Path, html: str, why: str) -> None:
    (site / "one.html").write_text(GOOD + html)
    assert built_site.broken(site, built_site.read_site(site)) == [f"one.html: {why}"]


def test_a_style_that_needs_the_network(site: Path) -> None:
    (site / "x.css").write_text('a { background: url("https://example.com/b.png") } b { background: url(data:,x) }')
    assert built_site.broken(site, built_site.read_site(site)) == [
        "x.css: https://example.com/b.png: is fetched from the network"
    ]


def test_what_a_site_lacks(tmp_path: Path) -> None:
    (tmp_path / "reference/cpp").mkdir(parents=True)
    for name in ("python", "c", "fortran", "cpp/base-version", "cpp/base-error"):
        (tmp_path / f"reference/{name}.html").touch()
    (tmp_path / "reference/c.html").write_text(
        '<dt id="c.ww_join">ww_join</dt><p>Bytes of an element; 0 for an invalid type.</p>'
    )
    (tmp_path / "reference/python.html").write_text('<dt id="waywiser.Group">Group</dt>')
    (tmp_path / "reference/cpp/base-version.html").write_text("#include &lt;waywiser/base/version.hpp&gt;")
    (tmp_path / "reference/cpp/base-error.html").write_text("#include &lt;waywiser/base/error.hpp&gt; class ErrorKind")
    lacks = entries.missing(tmp_path, built_site.read_site(tmp_path))
    assert {
        "python.html has no waywiser.join",
        "python.html has no waywiser.DeadlineError",
        "python.html has no waywiser.libucp",
        "python.html has no waywiser.Group.all_reduce",
        "python.html lacks the docstring of waywiser.Group",
        "c.html has no ww_all_reduce",
        "c.html has no ww_begin",
        "c.html lacks the comment 'A new stream of a GPU.'",
        "fortran.html has no ww_join",
        "no page includes <waywiser/group/group.hpp>",
        "the page of base/error.hpp has no Error",
    } <= set(lacks)
    assert not {
        "python.html has no waywiser.Group",
        "c.html has no ww_join",
        "c.html lacks the comment 'Bytes of an element; 0 for an invalid type.'",
        "no page includes <waywiser/base/version.hpp>",
        "the page of base/error.hpp has no ErrorKind",
    } & set(lacks)
