"""Settings against the defaults: statistics, dropped settings, the benchmarks' output, one real run."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from waywiser import _core, cli
from waywiser.apply import job_libraries
from waywiser.apply.job_libraries import JobLibraries, JobMpi, find_mpi
from waywiser.apply.provable import split
from waywiser.apply.setting import Setting, Settings
from waywiser.apply.store import keep, kept
from waywiser.bench import ucx_perftest
from waywiser.bench.team import NotOffered, TeamError
from waywiser.errors import InputError
from waywiser.monitor.counters import Sample
from waywiser.prove import benchmarks, nccl_benchmarks, ucx_benchmark
from waywiser.prove.carried import CountedBenchmark, transport_lines
from waywiser.prove.chance import chance_faster
from waywiser.prove.evidence import keep_evidence, summary_json
from waywiser.prove.proof_table import print_proof
from waywiser.prove.prove import AGAIN, Proof, Variant, against, prove, proved
from waywiser.run.clean_environment import clean_environment
from waywiser.run.hosts import Host

FAST = Setting("openmpi", "OMPI_MCA_fast", "1", "", "measured", "fast")
SLOW = Setting("openmpi", "OMPI_MCA_slow", "1", "", "measured", "slow")
SAME = Setting("openmpi", "OMPI_MCA_same", "1", "", "measured", "same")
FAST2 = Setting("openmpi", "OMPI_MCA_fast", "2", "", "measured", "fast2")
SETTINGS = Settings("abcd1234", "node", settings=(FAST, SLOW, SAME))
BASE = Variant("default", {})
MPI = JobMpi("/opt/mpi/bin/mpirun", "4.1.4", "/opt/mpi/lib/libmpi.so.40", "")
JOBS = JobLibraries(MPI, "", "", "nobody")


class Made:
    """A benchmark with known factors and a noise of some percent that is the same in every run of the test."""

    def __init__(self, noise: float = 0.02, drift: float = 0.0) -> None:
        self.runs: list[dict[str, str]] = []
        self._noise = noise
        self._drift = drift

    def __call__(self, variables: Mapping[str, str]) -> benchmarks.Times:
        self.runs.append(dict(variables))
        factor = (0.6 if "OMPI_MCA_fast" in variables else 1.0) * (1.7 if "OMPI_MCA_slow" in variables else 1.0)
        number = len(self.runs)
        found = {}
        for index, size in enumerate((24, 1536, 98304)):
            wobble = 1 + self._noise * math.sin(12.9 * number + 7.3 * index) + self._drift * number
            found["ping-pong", size] = 1e-6 * (index + 1) * factor * wobble
        return found


def quiet(text: str) -> None:
    pass


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
    assert first == [[], ["OMPI_MCA_fast"], ["OMPI_MCA_slow"], []]
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
        self.sample = Sample({("network", "eth0", "sent"): 5})
        self._benchmark = benchmark

    def __call__(self, variables: Mapping[str, str]) -> benchmarks.Times:
        sent = {("network", "eth0", "sent"): self.sample.bytes["network", "eth0", "sent"] + (8 << 20)}
        packets = self.sample.packets.get(("rdma", "rxe0:1", "sent"), 0) + 3000 * ("OMPI_MCA_rdma" in variables)
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


def test_output_of_the_benchmarks() -> None:
    text = 'noise\n{"library": "x", "tests": {"ping-pong": {"24": 1e-6}, "one way": {"24": 2e-6}}}\n'
    assert benchmarks.read_mpi4py(text) == ({("ping-pong", 24): 1e-6, ("one way", 24): 2e-6}, "")
    osu = "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n24                      0.53\n48      0.60\n"
    assert benchmarks.read_osu("ping-pong", osu, 2, (24,)) == {("ping-pong", 24): pytest.approx(0.53e-6)}
    assert benchmarks.read_osu("one way", "1536   3072.00\n", 2, (1536,)) == {("one way", 1536): pytest.approx(0.5e-6)}
    nccl = "# size count type redop root time\n 1048576 262144 float sum -1 28.7 36.5 54.8 0 27.9 37.5 56.3 0\n"
    assert nccl_benchmarks.read_nccl_tests(nccl) == {("all-reduce", 1048576): pytest.approx(28.7e-6)}
    with pytest.raises(InputError, match="wrong results"):
        nccl_benchmarks.read_nccl_tests(nccl.replace("54.8 0", "54.8 17"))
    for read in (
        benchmarks.read_mpi4py,
        nccl_benchmarks.read_nccl_tests,
        lambda text: benchmarks.read_osu("one way", text, 2, ()),
    ):
        with pytest.raises(InputError, match="no figures"):
            read("mpirun: something went wrong")


OLDER = """#                                                     out-of-place                    in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    35.10   29.87   52.27  5e-07    34.90   30.05   52.58  5e-07
# Out of bounds values : 0 OK
"""
NEWER = """#       size       count    type  redop  root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576      262144   float    sum     -1    35.10   29.87   52.27      0    34.90   30.05   52.58    N/A
# Out of bounds values : 0 OK
"""
UNCHECKED = NEWER.replace("52.27      0", "52.27    N/A")
MORE_COLUMNS = NEWER.replace("root ", "root stream ").replace("-1    35.10", "-1  7    35.10")


@pytest.mark.parametrize(
    "text",
    [OLDER, NEWER, UNCHECKED, MORE_COLUMNS, OLDER.splitlines()[3], NEWER.splitlines()[1]],
)
def test_tables_of_all_versions_of_nccl_tests(text: str) -> None:
    """Before 2.12 there was no column `root`, and the last one was the largest error."""
    assert nccl_benchmarks.read_nccl_tests(text) == {("all-reduce", 1048576): pytest.approx(35.1e-6)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OLDER.replace("5e-07    34", "3e-01    34"), "wrong results at 1048576 bytes: an error of 3e-01"),
        (OLDER.replace("5e-07    34", "nan    34"), "wrong results at 1048576 bytes: an error of nan"),
        (OLDER.replace("0 OK", "3 FAILED"), "its summary says FAILED"),
        (NEWER.replace("52.27      0", "52.27     17"), "17 wrong results at 1048576 bytes"),
        (" 1048576 262144 float sum 35.10 29.87 52.27 0 34.90 30.05", "10 columns .* is not understood"),
        (" 1048576 262144 float sum", "4 columns .* is not understood"),
        (NEWER.replace("    N/A", ""), "a line of 12 columns below a head of 13"),
        (NEWER.replace("    N/A", "    N/A   1"), "a line of 14 columns below a head of 13"),
        (NEWER.replace("    N/A", "      3"), "3 wrong results at 1048576 bytes"),
        (NEWER.replace("    N/A", "      x"), "'x' in the column '#wrong' is not understood"),
        (OLDER.replace("5e-07\n", "x\n"), "'x' in the column 'error' is not understood"),
        (NEWER.replace("35.10", "-35.1"), "a time of -35.1 us"),
        (NEWER.replace("35.10", "nan"), "a time of nan us"),
        (NEWER.replace("35.10", "0.00"), "a time of 0.00 us"),
        (NEWER.replace("35.10", "3.51"), "1048576 bytes in 3.51 us are not 29.87 GB/s"),
        (NEWER.replace("35.10", "fast"), "'fast' in the column 'time' is not understood"),
    ],
)
def test_other_tables_of_nccl_tests_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        nccl_benchmarks.read_nccl_tests(text)


def test_benchmarks_say_what_they_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(InputError, match="needs mpirun"):
        find_mpi(None)
    with pytest.raises(InputError, match="needs ucx_perftest, and there is no UCX"):
        ucx_benchmark.ucx(JOBS, 0, (24,))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs mpi4py \(pip install mpi4py\) or the OSU"):
        benchmarks.openmpi(MPI, 2, (24,))


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
    before, after = ({key: value for key, value in one.items() if key != "UCX_TLS"} for one in made.runs[:2])
    assert made.runs[0]["UCX_TLS"] == "tcp" and "UCX_TLS" not in made.runs[1]
    assert after == {**before, "OMPI_MCA_fast": "1"}
    assert not (tmp_path / "evidence").exists()


def test_an_mpi_of_this_machine_is_timed_and_steered() -> None:
    """A short form of the real thing: two ranks, three tests, two sizes."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    environment = {**clean_environment(os.environ), "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    environment["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    mpi = find_mpi(None)
    run = benchmarks.openmpi(mpi, 2, (24, 12288), environment)
    times = run({"OMPI_MCA_mpi_yield_when_idle": "1"})  # other tests want the CPUs, too
    assert set(times) == {(test, size) for test in ("ping-pong", "one way", "all-reduce") for size in (24, 12288)}
    assert all(1e-9 < seconds < 1 for seconds in times.values())


def test_a_benchmark_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\necho ------\necho There are not enough slots >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(InputError, match=r"mpirun python failed \(3\): There are not enough slots"):
        benchmarks.openmpi(JobMpi(str(program), "1.0.0", "", ""), 2, (24,))({})


def test_a_perftest_that_cannot_be_started_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ucx_perftest"
    file.write_text("not to be run")
    monkeypatch.setattr(ucx_perftest, "find_perftest", lambda: ucx_perftest.Program(str(file), {}, "made up"))
    with pytest.raises(TeamError, match=r"cannot start .*ucx_perftest: Permission denied"):
        ucx_perftest.UcxPerftest(False).slice("latency host host 8 1 1 1 1 0 blocking", 10)
    with pytest.raises(NotOffered, match="UCX enqueues nothing"):
        ucx_perftest.UcxPerftest(True).slice("latency gpu gpu 8 1 1 1 1 0 graph", 10)
