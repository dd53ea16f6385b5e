"""Programs of the CUDA driver API with the GPUs of a server: the libcuda.so.1 that forwards to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from encryption_test import needs_tls
from prebuilt import cuda_headers, driver_program
from rank_jobs import COMMAND, ROOT, finish, runtime_folder, start
from remote_gpu import PATIENCE, Server, server
from two_machines import TwoMachines

from waywiser import _core
from waywiser.offload.program import SHIM, settings_of

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
needs_gpu = pytest.mark.skipif(not _core.discover().ids("gpu"), reason="this machine has no GPU")
NO_DEVICE, GONE = 100, 46
# What a program sees without a compiler: the library by its name.
CALLS = """
import ctypes, sys, threading
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        print(name, code, flush=True)
    return code
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
bytes_ = ctypes.create_string_buffer(b"x" * 1000, 1000)
def begin():
    return call("cuInit", 0) or call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0) or call(
        "cuCtxSetCurrent", context)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver_program(tmp_path_factory.mktemp("program"))


def run(
    server: Server, *command: str | Path, before: tuple[str, ...] = (), options: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    words = [*before, *COMMAND, "remote", server.address, "--key", str(server.key), *options, "--", *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_program_of_the_driver_api_runs_unchanged(server: Server, program: Path) -> None:
    code, out, errors = run(server, program, "remote")
    assert (code, out) == (0, "2 GPUs, virtual GPU\nall calls\n"), errors
    told = errors.splitlines()
    assert told[0] == "waywiser: cuMemAllocManaged is not forwarded to the remote GPU"
    assert len(told) == 2 and told[1].startswith("waywiser: cuModuleLoadData: virtual GPU 0 of ")
    assert server.wait_for("left")["why"] == ""


def test_ucx_does_not_take_it_for_the_driver(server: Server, program: Path) -> None:
    code, out, errors = run(server, program, before=("env", "LD_DEBUG=files"))
    assert (code, out) == (0, "2 GPUs, virtual GPU\nall calls\n")
    assert "libucp.so" in errors and "libcuda.so.1" in errors
    assert re.findall(r"libuc[a-z]_cuda|libnvidia-ml", errors.split("initialize program: ")[-1]) == []


@needs_tls
@pytest.mark.parametrize("plain", [False, True])
def test_the_server_may_be_elsewhere(tmp_path: Path, program: Path, plain: bool) -> None:
    machines = TwoMachines()
    on_a, on_b = (("ip", "netns", "exec", name, "env", "WAYWISER_UCX_TLS=tcp,self") for name in machines.names)
    options = ("--data-plain",) * plain
    try:
        server = Server(tmp_path, *options, before=on_a, at="10.99.7.1:0")
        code, out, errors = run(server, program, before=on_b, options=options)
        assert (code, out) == (0, "2 GPUs, virtual GPU\nall calls\n"), errors
        server.close()
    finally:
        machines.close()


def test_its_exit_code_and_arguments_are_its_own(server: Server) -> None:
    code, out, errors = run(server, sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "--key", "-x")
    assert (code, out, errors) == (7, "['--key', '-x']\n", "")


def test_threads_take_turns(server: Server) -> None:
    code, out, errors = run(server, sys.executable, "-c", CALLS + """
begin()
def work(number):
    mine, there = ctypes.create_string_buffer(bytes([number]) * 5000, 5000), ctypes.c_uint64()
    call("cuCtxSetCurrent", context)
    for _ in range(50):
        call("cuMemAlloc_v2", ctypes.byref(there), ctypes.c_size_t(5000))
        call("cuMemcpyHtoD_v2", there, mine, ctypes.c_size_t(5000))
        back = ctypes.create_string_buffer(5000)
        call("cuMemcpyDtoH_v2", back, there, ctypes.c_size_t(5000))
        assert back.raw == bytes([number]) * 5000
        call("cuMemFree_v2", there)
threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
for each in threads: each.start()
for each in threads: each.join()
print("done")
""")  # fmt: skip
    assert (code, out, errors) == (0, "done\n", "")


def test_a_server_that_dies_is_an_error_of_every_later_call(server: Server) -> None:
    program = CALLS + """
begin()
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1000))
print("there", flush=True)
input()
while call("cuMemcpyHtoD_v2", memory, bytes_, ctypes.c_size_t(1000)) == 0: pass
call("cuMemcpyDtoH_v2", bytes_, memory, ctypes.c_size_t(1000))
call("cuCtxSynchronize")
"""  # fmt: skip
    words = [*COMMAND, "remote", server.address, "--key", str(server.key), "--", sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    client = subprocess.Popen(words, text=True, **pipes)  # type: ignore[call-overload]
    assert client.stdout.readline() == "there\n"
    os.kill(int(server.wait_for("joined")["process"]), 9)
    out, errors = client.communicate("\n", timeout=PATIENCE)
    assert client.returncode == 0
    assert out == f"cuMemcpyHtoD_v2 {GONE}\ncuMemcpyDtoH_v2 {GONE}\ncuCtxSynchronize {GONE}\n"
    assert f"waywiser: cuMemcpyHtoD: virtual GPU 0 of {server.address}, put: " in errors


def test_without_a_server_there_is_no_device(server: Server, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("ab" * 32)
    wrong.chmod(0o600)
    settings = settings_of(server.address, wrong, False)
    said = []
    for changed in (settings, settings | {"WAYWISER_REMOTE": "127.0.0.1:1"}, settings | {"WAYWISER_REMOTE": ""}):
        words = [sys.executable, "-c", CALLS + "begin()"]
        done = subprocess.run(
            words, env=os.environ | changed, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        assert done.stdout == f"cuInit {NO_DEVICE}\n"
        said.append(done.stderr)
    assert said[0].endswith(": the server does not know this key\n") and said[0].startswith("waywiser: cuInit: ")
    assert said[1].startswith("waywiser: cuInit: no server of GPUs at 127.0.0.1:1: ")
    assert said[2] == "waywiser: cuInit: WAYWISER_REMOTE is not set: it names a server of GPUs, HOST:PORT\n"


def test_what_is_no_program_is_one_line(server: Server, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o700)
    for command, says in (("no_such_program", "there is no program 'no_such_program'"), (text, "cannot be started: ")):
        code, _, errors = run(server, command)
        assert code == 2 and says in errors and len(errors.splitlines()) == 1, errors
    code, _, errors = finish(start("remote", server.address, "--key", str(server.key), "--data-plain"))
    assert code == 2 and "--data-plain is for a program" in errors
    code, _, errors = finish(start("remote", "127.0.0.1:1", "--key", str(server.key), "--", "true"))
    assert code != 0 and "no server of GPUs at 127.0.0.1:1" in errors


def test_every_function_of_the_driver_api_is_there() -> None:
    headers = cuda_headers()
    words = ["cc", "-E", "-x", "c", "-D__CUDA_API_VERSION_INTERNAL", "-I", str(headers), str(headers / "cuda.h")]
    declared = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"CUresult\s+(cu[A-Z]\w+)\s*\(", declared))
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", SHIM / "libcuda.so.1"], capture_output=True, text=True, check=True
    )
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    stubs = set(
        re.findall(r"WAYWISER_NOT_FORWARDED\((\w+)\)", (ROOT / "plugins/cuda_driver/not_forwarded.inc").read_text())
    )
    assert len(names) > 600 and names <= exported and stubs < exported
    forwarded = {name for name in exported - stubs if not name.endswith(("_ptsz", "_ptds"))}
    page = (ROOT / "docs/howto-remote.md").read_text()
    assert f"{len(forwarded)} of the {len(forwarded | stubs)} functions" in page and f"other {len(stubs)} " in page
    assert len(forwarded) >= 115 and forwarded <= names | {"cuGetProcAddress"}


def test_the_runtime_library_says_that_it_is_not_supported(server: Server) -> None:
    runtime = sorted(cuda_headers().parent.glob("lib*/libcudart.so.1[0-9]"))
    if not runtime:
        pytest.skip("there is no CUDA runtime library")
    program = f"""
import ctypes
runtime, count = ctypes.CDLL({str(runtime[-1])!r}), ctypes.c_int()
print(runtime.cudaGetDeviceCount(ctypes.byref(count)), runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 100))
"""
    code, out, errors = run(server, sys.executable, "-c", program)
    assert (code, out) == (0, "801 801\n") and "waywiser: cuGetExportTable is not forwarded" in errors


@needs_gpu
def test_kernels_run_on_a_gpu(tmp_path: Path, program: Path) -> None:
    server = Server(tmp_path, gpus=())
    code, out, errors = run(server, program, "kernel")
    assert code == 0 and out.endswith("all calls\n"), out + errors
    server.close()
