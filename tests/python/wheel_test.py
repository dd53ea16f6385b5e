"""The wheel of the present build: its files, and programs that use it once it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from consumers import BUILD, HERE, NO_GFORTRAN, SONAME, SUMS, build, done, prefix, public_headers, run
from rank_jobs import ROOT, runtime_folder
from readme_test import after_the_installation

import waywiser

sys.path.insert(0, str(ROOT / "scripts"))
from provision.messages import SetupError
from provision.wheel_tag import check_no_folder, retag

__all__ = ["prefix", "runtime_folder"]
pytestmark = pytest.mark.slow
HEADERS = {".h", ".hh", ".hpp", ".hxx", ".cuh", ".inc", ".inl", ".tpp"}
PARTS = {".py", ".json", ".gz", ".css", ".js", ".service", ".timer", ".yml", ""}


@pytest.fixture(scope="module")
def site(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel of what is built here is installed: by the real back end, which compiles nothing."""
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    settings = {
        "cmake.source-dir": str(HERE / "wheel"),
        "cmake.define.WAYWISER_BUILD": str(BUILD),
        "build-dir": str(folder / "made"),
    }
    # As pip calls the back end; older ones cannot hand settings over.
    hook = "import json, os, sys; os.chdir(sys.argv[1]); from scikit_build_core.build import build_wheel; "
    hook += "build_wheel(sys.argv[2], json.loads(sys.argv[3]))"
    done(sys.executable, "-c", hook, ROOT, folder, json.dumps(settings))
    (wheel,) = folder.glob("*.whl")
    done(*pip, "install", "--no-deps", "--no-index", "--target", folder / "site", wheel)
    return folder / "site"


def said_by(site: Path, option: str) -> str:
    command = [sys.executable, site / "bin/waywiser", option]
    environment = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_the_wheel_has_the_library(site: Path, tmp_path: Path) -> None:
    folder = said_by(site, "--cmake-dir")
    assert folder == str(site / "waywiser/lib/cmake/waywiser")
    program = build("cpp", Path(folder), tmp_path)
    assert str(site) in done("ldd", program)
    assert run(program) == SUMS


def test_the_library_of_the_wheel_is_found_by_its_plain_name(site: Path, tmp_path: Path) -> None:
    """By what opens a library, and by -lwaywiser."""
    library = site / "waywiser/lib"
    done(sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]).ww_version", library / "libwaywiser.so")
    program = tmp_path / "consumer"
    flags = [*said_by(site, "--cflags").split(), *said_by(site, "--libs").split()]
    done("c++", "-std=c++20", HERE / "cpp/main.cpp", "-o", program, *flags)
    assert f"{SONAME} => {library / SONAME}" in done("ldd", program)
    assert run(program) == SUMS


def test_what_is_in_the_wheel(site: Path, prefix: Path) -> None:
    (wheel,) = site.parent.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {Path(name) for name in archive.namelist() if not name.endswith("/")}
    (information,) = {path.parts[0] for path in files} - {"waywiser"}
    assert information == f"waywiser-{waywiser.__version__}.dist-info"
    package = {path.relative_to("waywiser") for path in files if path.parts[0] == "waywiser"}
    cmake = {"Config.cmake", "ConfigVersion.cmake", "Targets.cmake", "Targets-release.cmake"}
    expected = {"_core.pyi", "py.typed", "lib/libwaywiser.so", f"lib/{SONAME}", "lib/pkgconfig/waywiser.pc"}
    expected |= {"lib/pkgconfig/waywiser-cpp.pc"}
    expected |= {f"lib/cmake/waywiser/waywiser{name}" for name in cmake}
    assert {Path(name) for name in expected} <= package
    assert {path for path in package if path.parts[0] == "lib"} == {Path(name) for name in expected if "lib/" in name}
    # Only the public headers, none of other libraries, and the sources that are compiled against the user's PyTorch.
    headers = {"include" / path for path in public_headers(prefix)} | {Path("include/waywiser/c/waywiser.f90")}
    headers |= {Path("include/waywiser/kernels/rtc", name) for name in ("bit", "cstddef", "cstdint", "type_traits")}
    assert {path for path in package if path.parts[0] == "include"} == headers
    source = ROOT / "python/waywiser"
    compiled_later = {path.relative_to(source) for path in (source / "torch_backend/cpp").iterdir()}
    assert compiled_later <= package
    assert {path for path in package - compiled_later if path.suffix in HEADERS} <= headers
    assert {path for path in package - headers if path.suffix in PARTS} == {
        path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix in PARTS
    }


def test_the_tag_for_other_distributions(site: Path, tmp_path: Path) -> None:
    """Nothing is grafted in: all other libraries are opened at run time."""
    pytest.importorskip("auditwheel")
    (wheel,) = site.parent.glob("*.whl")
    made = retag(wheel, tmp_path, sys.executable)
    assert re.fullmatch(rf"waywiser-{waywiser.__version__}-cp3\d+-\w+-manylinux_2_\d+_\w+\.whl", made.name)
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(made) as after:
        names = [{name for name in one.namelist() if not name.endswith("/")} for one in (before, after)]
    assert names[0] == names[1]


def test_folders_of_the_builder_are_found(tmp_path: Path) -> None:
    wheel = tmp_path / "one.whl"
    for text, message in (
        ("x\0/a/clone/src/y.cpp\0", "/a/clone/src/y.cpp"),
        ("/tmp/pip-build-env-1/z.hpp", "pip-build-env"),
    ):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("waywiser/_core.so", text)
        with pytest.raises(SetupError, match=f"_core.so holds .*{message}"):
            check_no_folder(wheel, "/a/clone")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("waywiser/_core.so", "/src/y.cpp /a/cloned")
    check_no_folder(wheel, "/a/clone")


def test_flags_of_the_wheel(site: Path, tmp_path: Path) -> None:
    program = tmp_path / "consumer"
    flags = [*said_by(site, "--cflags").split(), *said_by(site, "--libs").split()]
    done("cc", "-std=c99", HERE / "c/main.c", "-o", program, *flags)
    assert run(program) == [f"rank {rank} of 2: all calls" for rank in range(2)]


def test_fortran_by_the_wheel(site: Path, tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip(NO_GFORTRAN)
    program = build("fortran", site / "waywiser", tmp_path)
    assert str(site) in done("ldd", program)
    assert len(run(program)) == 2


def test_the_first_commands_of_the_readme(site: Path, tmp_path: Path) -> None:
    """With the program in PATH, as after `pip install`; the configuration shortens the minute of `tune --quick`."""
    (tmp_path / "config.toml").write_text("[tune]\nbudget = 2\n")
    path = os.pathsep.join([str(site / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {
        "PATH": path,
        "PYTHONPATH": str(site),
        "WAYWISER_CONFIG": str(tmp_path / "config.toml"),
        "WAYWISER_RESULTS": str(tmp_path / "results"),
    }
    said = []
    for name, *words in after_the_installation():
        program = shutil.which(name, path=path)
        assert program == str(site / "bin/waywiser")
        answer = subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        said.append(answer.stdout)
    assert len(said) == 2 and said[1] == "3.0\n3.0\n"
    assert (tmp_path / "results/plan.json").exists() and (tmp_path / "results/report.html").exists()


def test_the_wheel_starts_its_own_ranks(site: Path, tmp_path: Path) -> None:
    command = [sys.executable, site / "bin/waywiser", "run", "-n", "2", sys.executable, "-c",
               "import waywiser; waywiser.join().close(); print(waywiser.__file__)"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(site)}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.stdout.splitlines() == [str(site / "waywiser/__init__.py")] * 2, answer.stderr


def test_the_recorded_machine_is_in_the_wheel(site: Path, tmp_path: Path) -> None:
    command = [sys.executable, site / "bin/waywiser", "demo", "--json", "--output", tmp_path / "page"]
    environment = os.environ | {"PYTHONPATH": str(site)}
    answer = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert answer["choice"]["candidates"] and Path(answer["report"]).stat().st_size > 1 << 20
