"""`apply --ucx-version`, `--nccl-version`: what a version of another machine's library lacks is left out, and said."""

from __future__ import annotations

from pathlib import Path

import made_up
import pytest

import waywiser
from waywiser import cli
from waywiser.apply import ucx
from waywiser.apply.facts import Machine
from waywiser.apply.known_versions import told_libraries, ucx_variables
from waywiser.apply.propose import settings_for
from waywiser.errors import InputError
from waywiser.topology.load import read_machine


def test_what_versions_know() -> None:
    """As their sources have it: src/ucp/core/ucp_context.c, src/uct, src/ucs/config/global_opts.c."""
    published = ucx_variables((1, 14, 1))
    assert published["UCX_PROTO_ENABLE"] == "n" and published["UCX_RNDV_MEMTYPE_DIRECT_SIZE"] == "inf"
    assert published["UCX_CUDA_COPY_BW"] == "10000MBps" and published["UCX_TCP_MAX_BW"] == "2200MBps"
    assert not {"UCX_DISTANCE_BW", "UCX_GDR_COPY_BW"} & published.keys()
    assert "UCX_TCP_MAX_BW" not in ucx_variables((1, 14, 0)) and "UCX_CUDA_IPC_BW" not in ucx_variables((1, 13, 1))
    assert ucx_variables((1, 16, 0))["UCX_PROTO_ENABLE"] == "y"
    assert ucx_variables((1, 18, 0))["UCX_CUDA_COPY_BW"] == "10000MBps"
    assert ucx.USUAL.items() <= ucx_variables((1, 22, 0)).items()


def test_what_a_version_lacks_is_left_out_and_said() -> None:
    machine = Machine(read_machine("dgx-1v"), made_up.read(made_up.profile(2)))
    found = {}
    for version in ("1.13", "1.14.1", "1.22.0"):
        settings = settings_for(machine, ("ucx",), told_libraries(version, ""), unchecked=True)
        found[version] = (
            {one.name: one.value for one in settings.settings},
            {one.name: one.why for one in settings.left_out},
        )
        assert settings.versions == {"ucx": f"{version} (told)"}
    assert found["1.13"][0].keys() < found["1.22.0"][0].keys()
    gone = found["1.22.0"][0].keys() - found["1.13"][0].keys()
    assert all(found["1.13"][1][name] == "1.13 (told) does not know this variable here" for name in gone)
    one_rate, words = (found[version][0]["UCX_CUDA_COPY_BW"] for version in ("1.14.1", "1.22.0"))
    assert ":" not in one_rate and "h2d:" in words


@pytest.mark.parametrize(
    ("ucx_", "nccl", "says"),
    [
        ("1.9.0", "", "--ucx-version 1.9.0: known are 1.12.0 to 1.22"),
        ("1.23", "", "--ucx-version 1.23.0: known are"),
        ("new", "", "write a version like 1.14.1"),
        ("", "2.4.8-1", "--nccl-version 2.4.8-1: known are 2.6 to 2.32"),
        ("", "2", "write a version like 1.14.1"),
    ],
)
def test_other_versions_are_refused(ucx_: str, nccl: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        told_libraries(ucx_, nccl)


def test_the_verb_takes_versions_of_other_machines_only(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["apply", "--for", "ucx", "--ucx-version", "1.13"]
    assert cli.run(words) == 2
    assert "--ucx-version and --nccl-version are for other machines" in capsys.readouterr().err
    machine = Path(waywiser.__file__).with_name("machines") / "hse-c.json"
    assert cli.run([*words, "--from", str(machine)]) == 0
    out = capsys.readouterr().out
    assert "UCX_CUDA_IPC_BW=47700MBs" in out.partition("left out")[2] and "1.13 (told)" in out
