"""apps/moe_dispatch: every way is right, on hosts, on virtual GPUs and between two machines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rank_jobs import ROOT, finish, runtime_folder, start

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow
BUILT = ROOT / "build/apps"
SMALL = ["--tokens", "37", "--hidden", "48", "--steps", "3", "--rounds", "1", "--format", "json"]

if not (BUILT / "moe_dispatch").exists():
    pytest.skip("the programs are not built here", allow_module_level=True)


def answer(ranks: int, program: str, *words: str) -> dict[str, Any]:
    code, lines, errors = finish(start("run", "-n", str(ranks), BUILT / program, *SMALL, *words))
    assert (code, errors) == (0, ""), errors
    found: dict[str, Any] = json.loads(lines[0])
    return found


@pytest.mark.parametrize("program", ["moe_dispatch", "moe_dispatch_virtual"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_way_is_right(program: str, ranks: int) -> None:
    found = answer(ranks, program)
    assert found["ranks"] == ranks and ("virtual" in found["place"]) == program.endswith("virtual")
    assert [row["way"] for row in found["rows"]] == ["one_sided", "all_to_all"]
    assert all(found["rows"][0][half] > 0 for half in ("dispatch_seconds", "combine_seconds"))
    assert (found["bytes"] > 0) == (ranks > 1) and found["bytes"] % (2 * 2 * 48) == 0


@pytest.mark.parametrize("program", ["moe_dispatch", "moe_dispatch_virtual"])
def test_rows_go_by_the_proxy_between_machines(program: str) -> None:
    """Each rank is on a machine of its own: stores do not reach the other one."""
    apart = ["bash", "-c", 'WAYWISER_MACHINE=$WAYWISER_RANK exec "$@"', "rank", str(BUILT / program)]
    code, lines, errors = finish(start("run", "-n", "2", *apart, *SMALL, "--way", "one_sided"))
    assert (code, errors) == (0, ""), errors
    assert [row["way"] for row in json.loads(lines[0])["rows"]] == ["one_sided"]


def test_one_expert_a_rank_and_one_for_each_token() -> None:
    assert answer(4, "moe_dispatch", "--experts", "4", "--top", "1")["top"] == 1


def test_a_step_without_an_exchange_is_noticed() -> None:
    code, lines, errors = finish(start("run", "-n", "2", BUILT / "moe_dispatch", *SMALL, "--way", "none"))
    assert code == 1 and lines == [] and "the result of none is wrong" in errors


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--hidden", "12"], "--hidden: a multiple of 8"),
        (["--experts", "5"], "--experts 5: each of 2 ranks has as many"),
        (["--experts", "4"], "--experts 4: each of 2 ranks has as many, and there are at least --top"),
        (["--top", "9"], "--top '9': whole numbers from 1 to 8"),
        (["--way", "both"], "--way 'both': write one of all, one_sided, all_to_all, nccl, none"),
    ],
)
def test_bad_input_gets_one_line(words: list[str], why: str) -> None:
    code, lines, errors = finish(start("run", "-n", "2", BUILT / "moe_dispatch", *words))
    assert (code, lines) == (2, [])
    said = [line for line in errors.splitlines() if not line.startswith("waywiser: rank ")]
    assert len(said) == 1 and said[0].startswith(f"moe_dispatch: {why}"), errors
