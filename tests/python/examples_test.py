"""Each example is run and its output compared."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import made_up
import pytest
from rank_jobs import HAS_TORCH, NO_PLAN, ROOT, TORCHRUN, example, finish, runtime_folder, start

import waywiser

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
BUILT = ROOT / "build" / "examples"

ROW = made_up.message_row(("host0", "host0"), 1, (0, 1 << 40), made_up.ways("host_copy(stores=temporal,threads=2)"))
PLAN = {
    "schema": "waywiser.plan",
    "version": 3,
    "fingerprint": "none",
    "machine": "made up",
    "backend": "host",
    "simulated": False,
    "other_nodes": [],
    "rows": [ROW],
}


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILT / name, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_choose_and_copy(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN))
    done = run("choose_and_copy", str(plan), "3M")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3M bytes by host_copy: intact\n", "")


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("{", "not JSON"),
        (json.dumps(PLAN | {"version": 4}), "version 4"),
        (json.dumps(PLAN | {"version": 2}), "`waywiser plan`"),
        (json.dumps(PLAN | {"rows": []}), "no path"),
    ],
)
def test_choose_and_copy_refuses_a_bad_plan(tmp_path: Path, plan: str, words: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan)
    done = run("choose_and_copy", str(file))
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("ranks", [1, 3])
def test_one_sided(ranks: int) -> None:
    code, lines, errors = finish(start("run", "-n", str(ranks), BUILT / "11_one_sided"))
    assert (code, errors) == (0, "")
    assert lines == [f"rank {rank} of {ranks}: 200 steps in one kernel, as the serial program" for rank in range(ranks)]
    assert ranks != 3 or lines == shown("11_one_sided")


TUTORIAL = ROOT / "docs" / "tutorial"


def blocks(page: str, language: str) -> list[str]:
    """The text of a page between ```language and ```."""
    text = (TUTORIAL / f"{page}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shown(page: str) -> list[str]:
    """The lines of output that a page shows, sorted."""
    return sorted(blocks(page, "text")[0].splitlines())


PAGES = sorted(file.stem for file in TUTORIAL.glob("[0-9]*.md"))


def test_pages_of_the_tutorial_are_numbered_without_gaps() -> None:
    assert [int(page[:2]) for page in PAGES] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_the_tutorial_quote_their_examples(page: str) -> None:
    python = ROOT / "examples" / f"{page}.py"
    code = (python if python.exists() else python.with_suffix(".cpp")).read_text()
    quoted = blocks(page, "python" if python.exists() else "cpp")
    assert quoted and all(block in code for block in quoted)
    assert f"({page}.md)" in (TUTORIAL / "README.md").read_text()


@pytest.mark.parametrize(
    ("page", "ranks"),
    [
        ("01_hello", 3),
        ("02_send_gpu_arrays", 2),
        ("03_all_reduce", 4),
        ("05_neighbour_exchange", 3),
        ("08_windows", 3),
        ("09_halo_exchange", 4),
        ("10_mesh", 3),
    ],
)
def test_examples_print_what_the_tutorial_shows(page: str, ranks: int) -> None:
    code, lines, errors = example(ranks, f"{page}.py")
    of_rank_1 = f"gpu{1 % len(waywiser.find_gpus(virtual=2))}"  # one GPU serves both ranks
    assert (code, lines) == (0, [line.replace("gpu1", of_rank_1) for line in shown(page)])
    assert errors == (NO_PLAN if "gpu" in page else "")


def test_neighbour_exchange_alone() -> None:
    assert example(1, "05_neighbour_exchange.py") == (0, shown("05_neighbour_exchange"), "")


@pytest.mark.parametrize("page", ["08_windows", "09_halo_exchange", "10_mesh"])
def test_output_of_one_rank_is_the_same(page: str) -> None:
    assert example(1, f"{page}.py") == (0, shown(page), "")


def test_files_of_three_ranks_are_read_by_two(tmp_path: Path) -> None:
    folder = tmp_path / "field"
    folder.mkdir()
    for ranks, line in zip((3, 2), shown("14_files"), strict=True):
        assert example(ranks, "14_files.py", str(folder)) == (0, [line], "")
    assert sorted(path.name for path in folder.iterdir()) == ["1.0", "1.400", "1.800", "2.0", "2.600", "newest"]


def test_the_page_on_faults_goes_on_after_a_rank_was_killed(tmp_path: Path) -> None:
    saved = tmp_path / "weights.npz"
    code, lines, errors = example(3, "07_faults.py", str(saved), "50")
    told = [
        re.sub(r"process \d+", "process 4711", re.sub(r" on [\w.-]+\)", " on node7)", line))
        for line in errors.splitlines()
    ]
    page = next(block for block in blocks("07_faults", "") if "stops" in block)
    assert (code, lines, sorted(told)) == (137, [], sorted(page.splitlines()))
    assert example(3, "07_faults.py", str(saved)) == (0, shown("07_faults"), "")


def torch_gpus() -> int:
    if not HAS_TORCH:
        return 0
    import torch

    return int(torch.cuda.device_count())


def test_graph_capture() -> None:
    ranks = min(4, torch_gpus()) or 4
    code, lines, errors = example(ranks, "04_graph_capture.py")
    assert (code, len(lines)) == (0, 1), errors
    if torch_gpus() != 0:
        assert errors in ("", NO_PLAN)
        assert lines == [f"after 50 all-reduces in 5 replays: {ranks * (ranks + 1) / 2:.3f}"]
    else:
        assert errors == ""
        assert lines[0].startswith(shown("04_graph_capture")[0].partition(": ")[0])


def test_torch() -> None:
    command = [*TORCHRUN, "--nproc-per-node", "2"] if HAS_TORCH else [sys.executable]
    done = subprocess.run(
        [*command, ROOT / "examples" / "06_torch.py"], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = shown("06_torch") if HAS_TORCH else ["this example needs PyTorch: pip install torch"]
    assert done.stdout.splitlines() == expected
