"""Metadata of the package, recipes for other package managers, and what works without the packages that draw."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_links import OUTSIDE, targets
from verb_runs import Run

import waywiser
from waywiser import plot_packages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Requirement -> its name for conda and for Spack; the libucx wheel stands for UCX.
CONDA = {"matplotlib": "matplotlib-base", "nlohmann-json": "nlohmann_json", "libucx-cu13": "ucx"}
SPACK = {"nlohmann-json": "nlohmann-json", "libucx-cu13": "ucx"}


def requirements(*lists: list[str]) -> dict[str, str]:
    """Name -> lower bound, also "lower,<upper", or exact version; "" without one."""
    found = {}
    for text in [one for each in lists for one in each]:
        name, version = re.match(r"([A-Za-z0-9_.-]+)(?:[><=]=([\d.]+(?:,<[\d.]+)?))?", text).groups()  # type: ignore[union-attr]
        found[name.replace("_", "-")] = version or ""
    return found


RUN = requirements(PROJECT["project"]["dependencies"], PROJECT["project"]["optional-dependencies"]["plots"])
BUILD = requirements(PROJECT["build-system"]["requires"])


def test_metadata() -> None:
    project = PROJECT["project"]
    assert project["authors"] and project["license"] == "Apache-2.0" and project["keywords"]
    versions = {
        one.rpartition(" ")[2] for one in project["classifiers"] if one.startswith("Programming Language :: Py")
    }
    assert project["requires-python"].removeprefix(">=") in versions
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= set(project["classifiers"])
    assert len(set(project["classifiers"])) == len(project["classifiers"])
    assert not {"matplotlib", "plotly"} & set(requirements(project["dependencies"]))


def test_the_description_is_readme_without_what_an_index_does_not_have() -> None:
    written = runpy.run_path(str(ROOT / "scripts/package_description"))
    text = written["DESCRIPTION"].read_text(encoding="utf-8")
    assert text == written["description"]((ROOT / "README.md").read_text(encoding="utf-8")), (
        "run scripts/package_description"
    )
    assert ROOT / PROJECT["project"]["readme"] == written["DESCRIPTION"]
    assert [target for target in targets(written["DESCRIPTION"]) if not OUTSIDE.match(target)] == []


@pytest.mark.parametrize("cuda", [False, True])
def test_pip_builds_as_make_does(cuda: bool) -> None:
    """Many files at a time, with and without CUDA."""
    reader = pytest.importorskip("scikit_build_core.settings.skbuild_read_settings")
    environment = {"WAYWISER_CUDA": "ON"} if cuda else {}
    settings = reader.SettingsReader.from_file(str(ROOT / "pyproject.toml"), env=environment).settings
    assert settings.cmake.define["WAYWISER_UNITY"] == "ON"
    assert settings.cmake.define.get("WAYWISER_CUDA", "") == ("ON" if cuda else "")
    assert settings.install.strip is True and settings.wheel.py_api == "cp312"


def test_a_wheel_names_no_folder_of_its_builder() -> None:
    """The flags that take them out; `scripts/wheel` says what is left."""
    text = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cmake/CudaCompiler.cmake").read_text()
    assert text.count("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=") == 2
    assert "-lineinfo" not in text.rpartition("if(SKBUILD)")[2]


def instructions(text: str) -> list[list[str]]:
    """The instructions of a Dockerfile, each as its words."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [line.split() for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()]


def test_dockerfile() -> None:
    found = instructions((RECIPES / "Dockerfile").read_text())
    known = {"FROM", "ARG", "RUN", "COPY", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {words[0] for words in found} <= known and found[0][0] == "FROM"
    stages = [words[3] for words in found if words[0] == "FROM" and len(words) > 2]
    sources = [words[1].partition("=")[2] for words in found if words[0] == "COPY" and words[1].startswith("--from")]
    assert sources and set(sources) <= set(stages)
    for words in found:
        if words[0] == "RUN":
            subprocess.run(["sh", "-n", "-c", " ".join(words[1:])], check=True, timeout=60)
    (entry,) = (yaml.safe_load(" ".join(words[1:])) for words in found if words[0] == "ENTRYPOINT")
    assert entry == ["waywiser"]


def test_apptainer() -> None:
    head, *parts = re.split(r"^%(\w+)\n", (RECIPES / "apptainer.def").read_text(), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert re.findall(r"^(\w+): (\S+)$", head, re.MULTILINE) == [("Bootstrap", "docker"), ("From", "debian:12-slim")]
    assert set(sections) == {"arguments", "files", "post", "environment", "runscript", "test", "labels", "help"}
    used = set(re.findall(r"\{\{ (\w+) \}\}", sections["post"]))
    assert used == {line.split("=")[0].strip() for line in sections["arguments"].splitlines() if line.strip()}
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n", "-c", sections[name]], check=True, timeout=60)


def test_spack() -> None:
    file = RECIPES / "spack/packages/waywiser/package.py"
    tree = ast.parse(file.read_text())
    (package,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert package.name == "Waywiser" and [ast.unparse(base) for base in package.bases] == ["PythonPackage"]
    calls = [node.value for node in package.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    wanted = [ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "depends_on"]
    found = {spec.partition("@")[0]: spec.partition("@")[2].rstrip(":") for spec in wanted}
    for name, version in {**RUN, **BUILD}.items():
        spack = SPACK.get(name, f"py-{name.replace('_', '-')}")
        least, _, below = version.partition(",<")  # Spack's upper bound is the last version
        last = re.sub(r"\d+$", lambda end: str(int(end[0]) - 1), below)
        assert found[spack] == ":".join(filter(None, (least, last))), name
    assert file.parents[4] == ROOT
    assert yaml.safe_load((RECIPES / "spack/repo.yaml").read_text())["repo"]["namespace"] == "waywiser"


def test_conda() -> None:
    recipe: dict[str, Any] = yaml.safe_load((RECIPES / "conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == waywiser.__version__
    assert (RECIPES / "conda" / recipe["source"]["path"]).resolve() == ROOT
    needs = {
        name: dict(re.split(r" [>=]=|$", text)[:2] for text in recipe["requirements"][name]) for name in ("host", "run")
    }
    for part, wanted in (("run", RUN), ("host", BUILD)):
        for name, version in wanted.items():
            assert needs[part][CONDA.get(name, name.replace("prometheus-client", "prometheus_client"))] == version, name
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {target}" for name, target in PROJECT["project"]["scripts"].items()
    ]


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if matplotlib and plotly were not installed."""
    find = plot_packages.find_spec
    monkeypatch.setattr(
        plot_packages, "find_spec", lambda name: None if name in ("matplotlib", "plotly") else find(name)
    )
    for name in [name for name in sys.modules if name.partition(".")[0] in ("matplotlib", "plotly")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "plotly", None)


LINE = "not installed: matplotlib and plotly (pip install 'waywiser[plots]')\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["report", "--machine", "recorded-4xh200"], "no report"),
        (["topology", "--machine", "dgx-1v", "-o", "x.svg"], "--format svg"),
        (["topology", "--machine", "dgx-1v", "--format", "png"], "--format png"),
        (["simulate", "latency", "--machine", "hse-a", "--plot", "x.png"], "x.png"),
    ],
)
@pytest.mark.usefixtures("without_plots")
def test_what_draws_says_what_is_missing(
    words: list[str], what: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == (1, "", f"waywiser: {what}: {LINE}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("without_plots")
def test_tuning_works_without_plots(run: Run, tmp_path: Path) -> None:
    code, out, err = run("tune", "--machine", "remote-t4", "--results", str(tmp_path / "r"))
    assert code == 0 and f"no report: {LINE}" in err and "report:" not in out
    assert f"results: {tmp_path}/r (" in out and (tmp_path / "r/verification.json").exists()
    assert not (tmp_path / "r/report.html").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["topology", "--machine", "dgx-1v", "--format", "text"],
        ["place", "--gpus", "2", "--machine", "dgx-1v"],
        ["explain", "gpu0", "gpu1", "64K", "--machine", "recorded-4xh200"],
        ["plan", "--machine", "recorded-4xh200"],
        ["simulate", "latency", "--machine", "hse-a", "--sizes", "8,1K"],
        ["compare", "recorded-4xh200", "recorded-4xh200"],
        ["monitor", "--once", "--seconds", "0.1"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.usefixtures("without_plots")
def test_other_verbs_need_no_plots(words: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert code == 0 and out, err


def test_an_import_needs_no_plots() -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = sys.modules['plotly'] = None; import waywiser; waywiser.join().close()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=os.environ)
