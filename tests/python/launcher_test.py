"""The launcher: ends, exit codes, whole lines, and the end of its ranks after its own death."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rank_jobs import (
    COMMAND,
    PROGRAM,
    ROOT,
    finish,
    run,
    runtime_folder,  # noqa: F401 (a fixture of all tests here)
    start,
)

from waywiser.run import launcher

pytestmark = pytest.mark.slow
PLAIN = "import os, sys, time\nrank = os.environ['WAYWISER_RANK']\n"
PIECES = PLAIN + (
    "for turn in range(100):\n"
    "    for piece in ('rank ', rank, ' says ', str(turn), '\\n'):\n"
    "        os.write(1 + turn % 2, piece.encode())\n"
    "os.write(1, b'the end of ' + rank.encode())\n"
)


def started(program: str, *options: str, ranks: int = 2) -> subprocess.Popen[str]:
    return start("run", "-n", str(ranks), "--plain", *options, sys.executable, "-c", program)


def until(happens: Callable[[], object], what: str) -> None:
    end_by = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end_by, f"waited for {what}"
        time.sleep(0.01)


def lives(process: int) -> bool:
    """Whether it is there and more than a corpse."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("options", [(), ("--prefix",)])
def test_lines_written_in_pieces_stay_whole(options: tuple[str, ...]) -> None:
    done = started(PIECES, *options, ranks=3)
    out, err = done.communicate(timeout=100)
    for rank in range(3):
        begin = f"[{rank}] " if options else ""
        said = [f"{begin}rank {rank} says {turn}" for turn in range(100)]
        assert [line for line in out.splitlines() if f"rank {rank}" in line] == said[::2]
        assert [line for line in err.splitlines() if f"rank {rank}" in line] == said[1::2]
        assert f"{begin}the end of {rank}\n" in out
    assert done.returncode == 0 and out.count("\n") == 153 and err.count("\n") == 150


@pytest.mark.parametrize(("options", "told"), [((), "None"), (("--trust-network",), "1")])
def test_a_network_is_trusted_only_where_the_user_says_so(options: tuple[str, ...], told: str) -> None:
    done = started("import os; print(os.environ.get('WAYWISER_TRUST_NETWORK'))", *options)
    assert finish(done) == (0, [told] * 2, "")


def test_a_long_line_is_one_write() -> None:
    program = PLAIN + "sys.stdout.write(rank * 300_000 + '\\n')"
    code, lines, _ = finish(started(program))
    assert code == 0 and lines == ["0" * 300_000, "1" * 300_000]


def test_one_place_for_both_outputs_keeps_their_order() -> None:
    program = PLAIN + "for turn in range(50): os.write(1 + turn % 2, f'{rank} {turn}\\n'.encode())"
    command = [*COMMAND, "run", "-n", "2", "--plain", sys.executable, "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=100)
    for rank in "01":
        assert [line for line in done.stdout.splitlines() if line[0] == rank] == [f"{rank} {t}" for t in range(50)]


def test_a_reader_that_goes_ends_the_job_quietly() -> None:
    job = started(PLAIN + "while True: os.write(1, b'again\\n')", "--prefix")
    assert job.stdout is not None and job.stderr is not None
    assert job.stdout.readline().endswith("again\n")
    job.stdout.close()
    assert job.wait(60) == 128 + signal.SIGPIPE
    assert job.stderr.read() == ""
    job.stderr.close()


def test_a_terminal_sees_lines_as_they_come_and_questions() -> None:
    """The ranks have terminals too: their libraries write each line when it is complete."""
    program = PLAIN + "print('line of', rank)\nif rank == '0': input('what now? ')\n"
    ours, theirs = pty.openpty()
    command = [*COMMAND, "run", "-n", "2", "--plain", sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as job:
        os.close(theirs)
        seen = b""
        while not (b"line of 1\r\n" in seen and b"what now? " in seen):
            seen += os.read(ours, 4096)
        os.write(ours, b"nothing\n")
        assert job.wait(60) == 0
    assert b"line of 0\r\n" in seen
    os.close(ours)


def test_the_first_that_failed_is_named_whoever_is_looked_at_first(tmp_path: Path) -> None:
    """The launcher is stopped while rank 1 fails, then rank 0."""
    program = PLAIN + (
        f"open('{tmp_path}/' + rank, 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists('{tmp_path}/go'): time.sleep(0.01)\n"
        "if rank == '1': sys.exit(7)\n"
        f"first = open('{tmp_path}/1').read()\n"
        "while open(f'/proc/{first}/stat').read().rpartition(')')[2].split()[0] != 'Z': time.sleep(0.01)\n"
        "sys.exit(1)\n"
    )
    job = started(program)
    until(lambda: all((tmp_path / rank).exists() and (tmp_path / rank).read_text() for rank in "01"), "both ranks")
    job.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    until(lambda: not lives(int((tmp_path / "0").read_text())), "the end of rank 0")
    job.send_signal(signal.SIGCONT)
    code, _, errors = finish(job)
    assert re.fullmatch(r"waywiser: rank 1 \(process \d+\) ended with exit code 7\n", errors), (code, errors)
    assert code == 7


@pytest.mark.parametrize("wrapper", ["", "setsid "])
def test_the_launchers_death_ends_its_ranks(tmp_path: Path, wrapper: str) -> None:
    """Also ranks behind a shell, and ranks in a new session."""
    program = PLAIN + f"open('{tmp_path}/' + rank, 'w').write(str(os.getpid()) + ' ')\ntime.sleep(1000)"
    (tmp_path / "rank.py").write_text(program)
    shell = f"{wrapper}{sys.executable} {tmp_path}/rank.py; true"
    job = start("run", "-n", "2", "--plain", "sh", "-c", shell)
    until(lambda: all((tmp_path / r).exists() and (tmp_path / r).read_text().endswith(" ") for r in "01"), "both ranks")
    ranks = [int((tmp_path / rank).read_text()) for rank in "01"]
    job.kill()
    job.communicate()
    until(lambda: not any(map(lives, ranks)), "the ends of the ranks")


def test_the_launchers_death_ends_ranks_elsewhere(tmp_path: Path) -> None:
    """On another machine: a program does not end with the ssh that started it, but its input does."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\n"
        "sys.exit(subprocess.run(['sh', '-c', sys.argv[2]], start_new_session=True).returncode)\n"
    )
    ssh.chmod(0o700)
    (tmp_path / "hosts").write_text("node1\nnode2\n")
    program = PLAIN + f"open('{tmp_path}/' + rank, 'w').write(str(os.getpid()) + ' ')\ntime.sleep(1000)"
    job = started(program, "--hosts", str(tmp_path / "hosts"), "--ssh", str(ssh))
    until(lambda: all((tmp_path / r).exists() and (tmp_path / r).read_text().endswith(" ") for r in "01"), "both ranks")
    ranks = [int((tmp_path / rank).read_text()) for rank in "01"]
    job.kill()
    job.communicate()
    until(lambda: not any(map(lives, ranks)), "the ends of the ranks")


WAITS = PLAIN + (
    "import signal, subprocess\n"
    "hold = sys.argv[1]\n"
    "numbers = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]\n"
    "if 'ignores' in hold: [signal.signal(one, signal.SIG_IGN) for one in numbers]\n"
    "def note(number, frame): open(sys.argv[2] + '/heard' + rank, 'w').close()\n"
    "if 'notes' in hold: [signal.signal(one, note) for one in numbers]\n"
    "others = [subprocess.Popen(['sleep', '1000'], start_new_session='apart' in hold).pid] if 'child' in hold else []\n"
    "open(sys.argv[2] + '/' + rank, 'w').write(' '.join(map(str, [os.getpid(), *others])) + '\\n')\n"
    "while True: time.sleep(1000)\n"
)


def waiting(folder: Path, how: str, before: Sequence[str] = ()) -> tuple[subprocess.Popen[str], list[int]]:
    """A job of two ranks that wait, and their processes."""
    command = [*before, *COMMAND, "run", "-n", "2", "--plain", sys.executable, "-c", WAITS, how, str(folder)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    files = [folder / rank for rank in "01"]
    until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files), "the ranks")
    return job, [int(word) for file in files for word in file.read_text().split()]


ENDINGS = [  # ranks that ignore signals take the launcher's whole patience
    pytest.param(number, how, marks=[pytest.mark.long] if how.startswith("ignores") and number != last else [])
    for how, last in (
        ("ends", None), ("ignores", signal.SIGTERM), ("ends, child", None), ("ignores, child", signal.SIGHUP),
        ("ends, child apart", None),
    )
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
]  # fmt: skip


@pytest.mark.parametrize(("number", "how"), ENDINGS)
def test_a_signal_ends_the_launcher_and_its_ranks(number: signal.Signals, how: str, tmp_path: Path) -> None:
    job, processes = waiting(tmp_path, how)
    job.send_signal(number)
    _, errors = job.communicate(timeout=60)
    assert (job.returncode, errors) == (128 + number, "")
    until(lambda: not any(map(lives, processes)), "the ends of the ranks")


def test_a_rank_that_ignores_signals_is_killed_within_ten_seconds() -> None:
    assert launcher._PATIENCE_AFTER_SIGNAL + launcher._PATIENCE_AFTER_TERM < 10  # what the pages promise


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_ends_ranks_at_once(number: signal.Signals, tmp_path: Path) -> None:
    job, processes = waiting(tmp_path, "notes")
    job.send_signal(number)
    until(lambda: all((tmp_path / f"heard{rank}").exists() for rank in "01"), "the first signal")
    job.send_signal(number)
    job.communicate(timeout=60)
    assert job.returncode in (128 + number, 137)
    assert not any(map(lives, processes))


def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    job, processes = waiting(tmp_path, "ends", before=["nohup"])
    job.send_signal(signal.SIGHUP)
    for process in [job.pid, *processes]:
        ignored = re.search(r"^SigIgn:\s*(\w+)", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
        assert ignored and int(ignored[1], 16) & 1 << (signal.SIGHUP - 1)
    job.send_signal(signal.SIGTERM)
    assert job.communicate(timeout=60) and job.returncode == 128 + signal.SIGTERM


def test_a_terminal_that_closes_ends_the_job(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*COMMAND, "run", "-n", "2", "--plain", sys.executable, "-c", WAITS, "ends", str(tmp_path)]
    begin = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", begin, *command], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as job:
        os.close(theirs)
        files = [tmp_path / rank for rank in "01"]
        until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files), "the ranks")
        os.close(ours)
        assert job.wait(60) == 128 + signal.SIGHUP
    assert not any(lives(int(file.read_text())) for file in files)


def test_joining_leaves_sighup_to_the_program() -> None:
    """UCX would take it for an attached debugger."""
    caught = "[int(line.split()[1], 16) for line in open('/proc/self/status') if line.startswith('SigCgt')][0]"
    code, lines, errors = run(2, f"print({caught} & 1 << (signal.SIGHUP - 1))")
    assert (code, lines) == (0, ["0", "0"]), errors


LEAVES = {
    "at once": "if group.rank == 1: sys.exit(7)\n",
    "in a function": "def leave():\n    mine = group\n    sys.exit(7)\nif group.rank == 1: leave()\n",
    "from main": (
        "group = None\ndef main():\n    mine = ww.join()\n    if mine.rank == 1: return 7\n"
        "    mine.all_reduce(np.ones(1))\nsys.exit(main())\n"
    ),
    "with": "with group:\n    if group.rank == 1: raise SystemExit(7)\n    group.all_reduce(np.ones(1))\n",
}


@pytest.mark.parametrize("how", LEAVES)
def test_a_rank_that_ends_with_a_code_is_an_error_at_the_others(how: str) -> None:
    program = PROGRAM.replace("group = ww.join()\n", "") if how == "from main" else PROGRAM
    begin = time.monotonic()
    code, _, errors = run(
        2, LEAVES[how] + ("" if how == "from main" else "group.all_reduce(np.ones(1))"), program=program
    )
    assert code == 7 and time.monotonic() - begin < 30  # the timeout is 60
    assert re.search(r"Error: rank 1 \(process \d+ on .*\) ended with exit code 7\n", errors)
    assert re.search(r"waywiser: rank 1 \(process \d+\) ended with exit code 7\n", errors)


@pytest.mark.faults("forming E")
@pytest.mark.parametrize("how", [[], ["slowly"]], ids=["at once", "slowly"])
def test_a_rank_of_cpp_whose_main_returns_a_code_is_an_error_at_the_others(how: list[str]) -> None:
    begin = time.monotonic()
    code, _, errors = finish(start("run", "-n", "3", ROOT / "build" / "returns_a_code", *how))
    assert code == 7 and time.monotonic() - begin < 30  # the timeout is 60
    assert len(re.findall(r"rank 1 \(process \d+ on .*\) ended with exit code 7\n", errors)) == 2
    assert re.search(r"waywiser: rank 1 \(process \d+\) ended with exit code 7\n", errors)


def test_words_at_the_end_are_exit_code_1() -> None:
    code, _, errors = run(2, "if group.rank == 0: sys.exit('bad input')\ngroup.barrier()")
    assert code == 1 and "bad input\n" in errors
    assert re.search(r"Error: rank 0 \(process \d+ on .*\) ended with exit code 1\n", errors)


def test_exit_code_0_is_no_error_whoever_comes_later() -> None:
    code = "import time\nif group.rank == 1: sys.exit(0)\ntime.sleep(0.5)\nprint('late')"
    assert run(2, code) == (0, ["late"], "")
