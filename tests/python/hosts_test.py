"""The hosts of a job: files that name them, and ranks that are started there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rank_jobs import finish, run, runtime_folder, start

from waywiser.errors import InputError
from waywiser.run.hosts import Host, place_ranks, read_hosts

__all__ = ["runtime_folder"]


def test_what_cannot_be_run_is_bad_input(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    for text, words in (
        ("node1 slots=x\n", "hosts:1: write NAME"),
        ("# none\n", "no host"),
        (f"node1 slots={'9' * 5000}\n", "hosts:1: write NAME"),
        ("a\nb\n", "3 ranks for 2"),
    ):
        hosts.write_text(text)
        code, _, errors = finish(start("run", "-n", "3", "--hosts", hosts, "true"))
        assert code == 2 and words in errors and errors.count("\n") == 1
    hosts.write_bytes(b"node\xff\n")
    assert finish(start("run", "-n", "3", "--hosts", hosts, "true"))[::2] == (
        2,
        f"waywiser: {hosts}: not text in UTF-8 (byte 4)\n",
    )
    code, _, errors = finish(start("run", "no-such-program"))
    assert (code, errors) == (2, "waywiser: there is no program 'no-such-program'\n")


def test_hosts_are_filled_in_order(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# our machines\nnode1 slots=2\n\nnode2  # one\n")
    assert read_hosts(file) == [Host("node1", 2), Host("node2", 1)]
    assert place_ranks(3, read_hosts(file)) == ["node1", "node1", "node2"]
    with pytest.raises(InputError):
        place_ranks(4, read_hosts(file))


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("localhost:2", Host("localhost", 2)),
        ("\ufefflocalhost slots=2", Host("localhost", 2)),
        ("[::1]", Host("::1")),
        ("[fe80::1%eth0]:3", Host("fe80::1%eth0", 3)),
        ("::1 slots=2", Host("::1", 2)),
        ("me@node1:2  # of MPICH", Host("me@node1", 2)),
        ("node1 2", Host("node1", 2)),
        ("[2001:db8::1]:4", Host("2001:db8::1", 4)),
        ("me@[2001:db8::1]:4", Host("me@2001:db8::1", 4)),
        ("node1 slots=2 max_slots=4  # of Open MPI", Host("node1", 2)),
        ("node1:2 binding=user:0,1", Host("node1", 2)),
        ("node1 max-slots=4\r", Host("node1", 1)),
    ],
)
def test_hosts_as_other_launchers_write_them(line: str, host: Host, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(line + "\n", encoding="utf-8")
    assert read_hosts(tmp_path / "hosts") == [host]


@pytest.mark.parametrize(
    "line",
    [
        *("node:x", "node:", ":2", "[::1", "[::1]2", "[]:2", "node:2 slots=2", "node:0", "-o:2", "a b c", "node slots"),
        *(
            "[node1]:2",
            "a:b:c",
            "[::g]:2",
            "::1:2:",
            "node[3-1]",
            "node[a-b]",
            "node[1-]",
            "node[1",
            "node1]",
            "node[]",
        ),
        *(
            "node[1-99999999]",
            "n[1-9999]m[1-9999]",
            "node\u0661:2",
            "node:\u0662",
            "a;b",
            "$(x)",
            "node slots=2 port=1",
        ),
        *("a,b", "@node", "node@", "node slots=2 slots=3", "-o@node"),
    ],
)
def test_lines_that_are_no_host_are_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(line + "\n")
    with pytest.raises(InputError, match=r"hosts:1: write NAME, NAME slots=N or NAME:N, not '"):
        read_hosts(tmp_path / "hosts")


@pytest.mark.parametrize(
    ("line", "names", "slots"),
    [
        ("node[01-03,7]:2", ["node01", "node02", "node03", "node7"], 2),
        ("rack[1-2]node[8-9]-ib slots=4", ["rack1node8-ib", "rack1node9-ib", "rack2node8-ib", "rack2node9-ib"], 4),
    ],
)
def test_lists_of_slurm(line: str, names: list[str], slots: int, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(line + "\r\n")
    assert read_hosts(tmp_path / "hosts") == [Host(name, slots) for name in names]


def test_ranks_by_ssh(tmp_path: Path) -> None:
    """A stand-in for ssh: runs the command here, through a shell like ssh, and records its visible arguments."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/seen\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o700)
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost\nnode2\n")
    program = (
        "print(group.all_reduce(np.ones(1))[0], os.environ['WAYWISER_LOCAL_SIZE'], len(os.environ['WAYWISER_SECRET']))"
    )
    code, lines, errors = run(2, program, "--hosts", str(hosts), "--ssh", str(ssh))
    assert (code, lines, errors) == (0, ["2.0 1 64"] * 2, "")
    seen = (tmp_path / "seen").read_text()
    assert seen.startswith("node2 cd ")
    assert "WAYWISER_ROOT=localhost:" in seen
    assert not re.search(r"[0-9a-f]{64}", seen)
