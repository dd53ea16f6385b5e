"""Settings against the defaults: statistics, dropped settings, what counters prove, `waywiser verify`."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from made_up_benchmark import BASE, FAST, FAST2, JOBS, SAME, SETTINGS, SLOW, Made, quiet

from waywiser import _core, cli
from waywiser.apply import job_libraries
from waywiser.apply.job_libraries import JobMpi
from waywiser.apply.provable import split
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep, kept
from waywiser.errors import InputError
from waywiser.monitor.counters import Sample
from waywiser.prove import benchmarks
from waywiser.prove.chance import chance_faster
from waywiser.prove.evidence import keep_evidence, summary_json
from waywiser.prove.proof_table import print_proof
from waywiser.prove.prove import AGAIN, Proof, Variant, against, prove, proved
from waywiser.prove.transport_counters import CountedBenchmark, transport_lines
from waywiser.run.clean_environment import clean_environment
from waywiser.run.hosts import Host


def test_chance_of_ranks() -> None:
    assert chance_faster([2, 2.1, 2.2], [1, 1.1, 1.2]) == pytest.approx(1 / 20)
    assert chance_faster([5, 6, 7, 8, 9], [1, 2, 3, 4, 4.5]) == pytest.approx(1 / 252)
    assert chance_faster([1, 2, 3], [1, 2, 3]) > 0.5
    assert chance_faster([1, 2], [3, 4]) == 1


def test_what_wins_is_kept_and_the_rest_dropped_with_figures() -> None:
    proof = prove([[FAST], [SLOW], [SAME]], Made(), 7, BASE, quiet)
    assert proof.kept == "fast"
    assert proof.verdicts["fast"].gain == pytest.approx(1 / 0.6, rel=0.1)
    result = proved(SETTINGS, [[FAST], [SLOW], [SAME]], proof)
    assert [one.name for one in result.settings] == ["OMPI_MCA_fast"] and result.proved
    assert "x the speed" in result.settings[0].proof
    assert {one.name for one in result.left_out} == {"OMPI_MCA_slow", "OMPI_MCA_same"}
    assert all("does not win beyond the noise" in one.why for one in result.left_out)


def test_rounds_are_interleaved_and_the_base_runs_twice() -> None:
    made = Made()
    proof = prove([[FAST], [SLOW]], made, 4, BASE, quiet)
    assert [one.name for one in proof.variants] == ["default", "fast", "slow", AGAIN]
    first = [sorted(one) for one in made.runs[:4]]
    assert sorted(first) == [[], [], ["OMPI_MCA_fast"], ["OMPI_MCA_slow"]]
    assert [sorted(one) for one in made.runs[4:8]] == first[::-1]


def test_noise_never_wins() -> None:
    """Nothing differs, the machine is noisy and slows down while it is measured."""
    for noise, drift in ((0.02, 0.0), (0.3, 0.0), (0.1, 0.05)):
        proof = prove([[SAME]], Made(noise, drift), 7, BASE, quiet)
        assert proof.kept == "default", (noise, drift, proof.verdicts)


def test_few_rounds_prove_nothing() -> None:
    assert prove([[FAST]], Made(), 2, BASE, quiet).kept == "default"


def test_winners_are_tried_together() -> None:
    other = Setting("openmpi", "OMPI_MCA_other", "1", "", "measured", "other")

    def benchmark(variables: Mapping[str, str]) -> benchmarks.Times:
        times = made({name: value for name, value in variables.items() if name != "OMPI_MCA_other"})
        return {case: seconds * (0.7 if "OMPI_MCA_other" in variables else 1) for case, seconds in times.items()}

    made = Made()
    proof = prove([[FAST], [other]], benchmark, 7, BASE, quiet)
    assert proof.kept == "fast + other"
    result = proved(Settings("abcd", "n", settings=(FAST, other)), [[FAST], [other]], proof)
    assert len(result.settings) == 2


def test_what_the_benchmark_fails_with_is_dropped_and_the_base_may_not_fail() -> None:
    def benchmark(variables: Mapping[str, str]) -> benchmarks.Times:
        if "OMPI_MCA_slow" in variables:
            raise InputError("mpirun failed (1): no such component")
        return made(variables)

    made = Made()
    proof = prove([[FAST], [SLOW]], benchmark, 7, BASE, quiet)
    assert proof.kept == "fast" and proof.failed == {"slow": "mpirun failed (1): no such component"}
    assert [one.name for one in proof.variants] == ["default", "fast", AGAIN]
    (left,) = proved(Settings("abcd", "n", settings=(FAST, SLOW)), [[FAST], [SLOW]], proof).left_out
    assert left.name == "OMPI_MCA_slow" and "the benchmark fails with it: mpirun failed" in left.why
    with pytest.raises(InputError, match="no such component"):
        prove([[FAST]], benchmark, 7, Variant("default", {"OMPI_MCA_slow": "1"}), quiet)


def test_what_was_measured_before_an_interruption_counts() -> None:
    def interrupted_at(run: int) -> Proof:
        made = Made()

        def benchmark(variables: Mapping[str, str]) -> benchmarks.Times:
            if len(made.runs) == run:
                raise KeyboardInterrupt
            return made(variables)

        return prove([[FAST], [FAST2]], benchmark, 7, BASE, quiet)

    found = interrupted_at(4 * 5 + 2)  # in the middle of the sixth round of four variants
    assert found.kept in ("fast", "fast2") and {len(one.rounds) for one in found.variants} == {5}
    with pytest.raises(KeyboardInterrupt):
        interrupted_at(4 * 3 + 2)


def test_a_benchmark_on_one_node_decides_nothing_about_networks_and_mpi_nothing_about_gpus() -> None:
    names = ("UCX_MAX_RNDV_RAILS", "UCX_CUDA_COPY_BW", "UCX_POSIX_BW")
    groups = [[Setting("ucx", name, "1", "", "", name)] for name in names]
    for library, gpus, wanted in (("openmpi", 4, names[2:]), ("ucx", 0, names[2:]), ("ucx", 4, names[1:])):
        tried_, why = split(groups, library, gpus)
        assert [group[0].name for group in tried_] == list(wanted), library
        assert set(why) == set(names) - set(wanted) and "network" in why["UCX_MAX_RNDV_RAILS"]


def test_gdrcopy_is_about_gpus() -> None:
    groups = [[Setting("ucx", "UCX_TLS", "^gdr_copy", "all", "", "x")]]
    for library, gpus, is_tried in (("openmpi", 4, False), ("ucx", 0, False), ("ucx", 4, True)):
        assert bool(split(groups, library, gpus)[0]) == is_tried


def test_a_benchmark_between_nodes_decides_about_the_network_and_not_about_one_node() -> None:
    names = ("UCX_MAX_RNDV_RAILS", "UCX_TCP_MAX_BW", "UCX_POSIX_BW", "UCX_DISTANCE_BW", "NCCL_IB_HCA")
    groups = [[Setting("ucx", name, "1", "", "", name)] for name in names]
    tried_, why = split(groups, "openmpi", 0, between_nodes=True)
    assert [group[0].name for group in tried_] == list(names[:2])
    assert "leave out --hosts" in why["UCX_POSIX_BW"] and "no benchmark between nodes" in why["UCX_DISTANCE_BW"]


def test_ranks_on_other_nodes_are_told_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, said = tmp_path / "mpirun", tmp_path / "said"
    times = json.dumps({"tests": {"ping-pong": {"24": 1e-6}}})
    program.write_text(f"#!/bin/sh\nprintf '%s ' \"$@\" > {said}\necho '{times}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    told = {"UCX_IB_GID_INDEX": "3", "UCX_TLS": "tcp", "OMPI_MCA_plm_rsh_agent": "rsh", "PATH": os.environ["PATH"]}
    environment = clean_environment(told)
    mpi = JobMpi(str(program), "4.1.4", str(tmp_path / "libmpi.so"), "")
    run = benchmarks.openmpi(mpi, 2, (24,), environment, ("ping-pong",), [Host("a"), Host("b", 4)])
    run({"UCX_MAX_RNDV_RAILS": "1", "OMPI_MCA_pml": "ucx"})
    where, _, program_words = said.read_text().partition(" -x ")
    assert where == "-n 2 --host a:1,b:4 --map-by node"
    words = program_words.split()
    assert {"UCX_MAX_RNDV_RAILS", "MPI4PY_LIBMPI", "UCX_IB_GID_INDEX"} == {*words[: words.index(sys.executable) : 2]}


@pytest.mark.parametrize(
    ("library", "text", "words"),
    [
        ("ucx", "a\nb\n", "--hosts is for --with openmpi"),
        ("openmpi", "a slots=2\n", "names one node"),
        ("openmpi", "a b c\n", "write NAME, NAME slots=N or NAME:N"),
        ("openmpi", "a\nb\n", "3 ranks for 2 slots"),
    ],
)
def test_bad_hosts(library: str, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hosts").write_text(text)
    assert cli.run(["verify", "--with", library, "-n", "3", "--hosts", str(tmp_path / "hosts")]) == 2
    assert words in capsys.readouterr().err


def test_evidence_keeps_every_round(tmp_path: Path) -> None:
    proof = against(BASE, Variant("fast", {"OMPI_MCA_fast": "1"}), Made(), 5, quiet)
    counted = CountedBenchmark(Made(), Sample)
    file = keep_evidence(tmp_path, SETTINGS, "openmpi", [proof], counted, {"load": "0"})
    value = json.loads(file.read_text())
    (step,) = value["steps"]
    assert step["verdicts"]["fast"]["wins"] is True
    assert all(len(row["rounds"]) == 5 for one in step["variants"] for row in one["seconds"])
    between = keep_evidence(tmp_path, SETTINGS, "openmpi", [proof], counted, {"load": "0"}, ["a", "b"])
    assert json.loads(between.read_text())["nodes"] == ["a", "b"] and file.exists() and between != file


class Network:
    """Counters of a node: what "OMPI_MCA_rdma" selects goes by a software RDMA card, which counts packets only."""

    def __init__(self, benchmark: Made) -> None:
        self.sample = Sample({("network", "eth0", "sent"): 5}, {("rdma", "rxe0:1", "sent"): 0})
        self._benchmark = benchmark

    def __call__(self, variables: Mapping[str, str]) -> benchmarks.Times:
        sent = {("network", "eth0", "sent"): self.sample.bytes["network", "eth0", "sent"] + (8 << 20)}
        packets = self.sample.packets["rdma", "rxe0:1", "sent"] + 3000 * ("OMPI_MCA_rdma" in variables)
        self.sample = Sample(sent, {("rdma", "rxe0:1", "sent"): packets})
        return self._benchmark(variables)


def judged(**more: str) -> tuple[Proof, CountedBenchmark]:
    network = Network(Made())
    counted = CountedBenchmark(network, lambda: network.sample)
    return against(BASE, Variant("other", {"OMPI_MCA_rdma": "1", **more}), counted, 5, quiet), counted


def test_counters_prove_the_transport_and_time_the_speed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    proof, counted = judged(OMPI_MCA_slow="1")
    by_network, by_rdma = "the kernel's network 8 MiB a run", "RDMA 3,000 packets a run"
    lines = transport_lines(proof, counted.carried(proof))
    assert lines == [
        f"transport  default: {by_network}",
        f"transport  other: {by_rdma}, {by_network}",
        "other changes the transport, and this is proved. It is not faster where it was measured",
    ]
    print_proof("title", proof, counted.carried(proof))
    assert lines[-1] in " ".join(capsys.readouterr().out.split())
    (step,) = json.loads(summary_json(SETTINGS, "openmpi", [proof], counted))["steps"]
    assert step["verdicts"]["other"]["wins"] is False
    assert step["carried"]["default"]["kinds"] == ["network"] and step["carried"]["default"]["runs"] == 10
    assert step["carried"]["other"] == {
        "runs": 5, "kinds": ["rdma", "network"], "bytes": {"network": 5 * 8 << 20}, "packets": {"rdma": 15000}
    }  # fmt: skip
    file = keep_evidence(tmp_path, SETTINGS, "openmpi", [proof], counted, {"load": "0"})
    kept_too = {one["name"]: one["carried"]["kinds"] for one in json.loads(file.read_text())["steps"][0]["variants"]}
    assert kept_too == {"default": ["network"], "other": ["rdma", "network"], AGAIN: []}


def test_a_faster_transport_is_not_called_slow_and_the_same_one_is_told_once() -> None:
    proof, counted = judged(OMPI_MCA_fast="1")
    lines = transport_lines(proof, counted.carried(proof))
    assert proof.verdicts["other"].wins and [line.split()[0] for line in lines] == ["transport", "transport"]
    network = Network(Made())
    counted = CountedBenchmark(network, lambda: network.sample)
    proof = against(BASE, Variant("slow", {"OMPI_MCA_slow": "1"}), counted, 5, quiet)
    assert transport_lines(proof, counted.carried(proof)) == ["transport  default: the kernel's network 8 MiB a run"]
    assert transport_lines(proof, {}) == []


def test_variables_around_the_program_do_not_count() -> None:
    told = {"PATH": "/bin", "UCX_TLS": "tcp", "OMPI_MCA_pml": "ob1", "PMIX_RANK": "0", "NCCL_DEBUG": "INFO"}
    assert clean_environment(told) == {"PATH": "/bin"}
    assert clean_environment({"NCCL_NVLS_ENABLE": "0"}) == {"NCCL_NVLS_ENABLE": "0"}


def test_verify_keeps_what_won(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fingerprint = _core.discover().fingerprint
    assert cli.run(["verify", "--with", "openmpi", "--results", str(tmp_path)]) == 2
    assert "waywiser apply" in capsys.readouterr().err
    keep(tmp_path, Settings(fingerprint, "node", settings=(FAST, SAME)))
    monkeypatch.setattr(benchmarks, "openmpi", lambda mpi, ranks, sizes, environment, hosts: Made())
    monkeypatch.setattr(job_libraries, "find_job_libraries", lambda mpirun: JOBS)
    assert cli.run(["verify", "--with", "openmpi", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "kept     fast" in out and "dropped  same" in out and AGAIN in out
    found = kept(tmp_path, fingerprint)
    assert found and found.proved and [one.name for one in found.settings] == ["OMPI_MCA_fast"]
    assert (tmp_path / "evidence" / f"{fingerprint}-openmpi.json").exists()
    own = tmp_path / "settings" / f"{fingerprint}.mca-params.conf"
    assert "fast = 1" in own.read_text() and "same" not in own.read_text()


def test_what_is_set_now_against_what_run_would_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, Settings(_core.discover().fingerprint, "node", settings=(FAST,)))
    made = Made()
    monkeypatch.setattr(benchmarks, "openmpi", lambda mpi, ranks, sizes, environment, hosts: made)
    monkeypatch.setattr(job_libraries, "find_job_libraries", lambda mpirun: JOBS)
    monkeypatch.setenv("OMPI_MCA_slow", "1")
    monkeypatch.setenv("UCX_TLS", "tcp")
    arguments = ["verify", "--with", "openmpi", "--baseline", "environment", "--results", str(tmp_path)]
    assert cli.run(arguments) == 0
    out, said = capsys.readouterr()
    assert "OMPI_MCA_slow=1" in said and "waywiser run" in out
    now = next(one for one in made.runs if "UCX_TLS" in one)
    after = next(one for one in made.runs if "UCX_TLS" not in one)
    before = {key: value for key, value in now.items() if key != "UCX_TLS"}
    assert now["UCX_TLS"] == "tcp"
    assert after == {**before, "OMPI_MCA_fast": "1"}
    assert not (tmp_path / "evidence").exists()
