"""Plug-ins stand on what is installed: they include public headers, files of their own folder and those of others."""

from __future__ import annotations

import re
from pathlib import Path

from layering_test import CPP, ROOT, includes

PLUGINS = ROOT / "plugins"
OF_THE_LIBRARY_ALONE = ("nlohmann/", "ucp/", "ucs/", "uct/")  # not installed with it


def installed_headers() -> set[str]:
    listed = re.findall(
        r"^set\((?:public_headers|headers_of_names)\s(.*?)\)", (ROOT / "cmake/Library.cmake").read_text(), re.S | re.M
    )
    return {f"waywiser/{name}" for text in listed for name in text.split()}


def wrong_includes(included: list[str], own: set[str], installed: set[str]) -> list[str]:
    """Those of `included` that a plug-in must not include whose folder has the files `own`."""
    ours = [header for header in included if header.startswith("waywiser/") and header not in installed]
    private = [header for header in included if header.startswith(OF_THE_LIBRARY_ALONE)]
    beside = [header for header in included if header.startswith((".", "plugins/"))]
    elsewhere = [header for header in included if re.fullmatch(r"\w+\.(hpp|inc)", header) and header not in own]
    return ours + private + beside + elsewhere


def test_an_include_of_what_is_not_installed_is_found() -> None:
    installed = {"waywiser/c/waywiser.h"}
    assert wrong_includes(["waywiser/c/waywiser.h", "vector", "mpi.h", "own.hpp"], {"own.hpp"}, installed) == []
    wrong = ["waywiser/base/json.hpp", "nlohmann/json.hpp", "../petsc/job.hpp", "job.hpp"]
    assert wrong_includes(wrong, {"own.hpp"}, installed) == wrong


def test_plugins_include_only_what_is_installed() -> None:
    installed, files = installed_headers(), [path for path in PLUGINS.rglob("*") if path.suffix in {*CPP, ".h", ".inc"}]
    assert {path.relative_to(PLUGINS).parts[0] for path in files} == {"petsc", "cuda_driver", "nccl", "nixl"}
    wrong = []
    for path in files:
        own = {each.name for each in Path(path.parent).iterdir()}
        found = wrong_includes([header for _, header in includes(path)], own, installed)
        wrong += [f"{path.relative_to(ROOT)}: {header}" for header in found]
    assert wrong == []
