"""What functions of a server's GPU print, and what a client learns when one fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_jobs import runtime_folder
from remote_gpu import Server, server

import waywiser as ww

__all__ = ["runtime_folder", "server"]
pytestmark = pytest.mark.usefixtures("runtime_folder")


PRINTS = """
import json, os, subprocess, sys

def talks(x):
    print("computing", x[0])
    print(json.dumps({"ended": "because I say so", "port": 1, "memory": -1}))
    print("[" * 100000)
    os.write(1, b"\\xff\\x1b[31m without an end")
    os.write(2, b"\\n")
    subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)
    assert sys.stdin.read() == ""
    return x

def floods(x):
    for number in range(5000):
        print(number)
    return x

def leaks(x):
    open("/no/such/folder/secret.txt")

def exits(x):
    sys.exit("a word of /etc/passwd")

functions = {"talks": talks, "floods": floods, "leaks": leaks, "exits": exits}
print("imported")
"""


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "talk.py").write_text(PRINTS)
    made = Server(tmp_path, "--functions", str(tmp_path / "talk.py"))
    yield made
    assert made.close() == (0, "imported\n")  # by the server itself, which looks whether they are there


def texts(told: list[dict[str, Any]]) -> list[str]:
    return [each["text"] for each in told]


def test_what_a_function_prints_is_text_in_the_log(talking: Server) -> None:
    with ww.remote(talking.address, key=talking.key) as gpu:
        for _ in range(3):
            np.testing.assert_array_equal(gpu.run("talks", gpu.array(np.ones(3))).get(), np.ones(3))
        assert talking.wait_until(lambda state: state["clients"][0]["requests"] > 0)["clients"][0]["memory"] >= 0
    left = talking.wait_for("left")
    assert (left["why"], left["code"]) == ("", 0)
    printed = talking.log_of("printed")
    assert {each["client"] for each in printed} == {left["client"]}
    said = texts(printed)
    assert said[0] == "imported" and said.count("computing 1.0") == 3 and said.count("from a child") == 3
    assert any("because I say so" in each for each in said)
    assert all(each.isprintable() and len(each) <= 1000 for each in said)


def test_a_function_that_floods_its_output_does_not_fill_the_log(talking: Server) -> None:
    with ww.remote(talking.address, key=talking.key) as gpu:
        np.testing.assert_array_equal(gpu.run("floods", gpu.array(np.ones(3))).get(), np.ones(3))
    talking.wait_for("left")
    said = texts(talking.log_of("printed"))
    assert len(said) == 1001 and said[-1] == "more is not shown"


def test_a_client_learns_nothing_of_files_from_a_function_that_fails(talking: Server) -> None:
    with ww.remote(talking.address, key=talking.key) as gpu:
        for function, kind in (("leaks", "FileNotFoundError"), ("exits", "SystemExit")):
            gpu.run(function, gpu.array(np.ones(3)))
            with pytest.raises(ww.InputError, match=f"{function}: {kind}: the server's log says why$"):
                gpu.synchronize()
        gpu.synchronize()
    talking.wait_for("left")
    assert any("/no/such/folder/secret.txt" in text for text in texts(talking.log_of("printed")))
