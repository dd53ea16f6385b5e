"""A Slurm of one node, for tests: Debian's packages, unpacked below build/ and not installed."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_ports import free_ports
from rank_jobs import ROOT

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"]
SETTINGS = """\
ClusterName=waywiser
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={port}
SlurmdPort={next_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
LaunchParameters=use_interactive_step
PluginDir={plugins}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def unpacked() -> Path:
    """The folder of the packages; skips the test where they cannot be had."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from provision.messages import SetupError
    from rdma_testbed import debian_packages

    folder = ROOT / "build" / "slurm"
    if folder.exists():
        return folder
    unfinished = folder.with_name(f"slurm.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        if names := debian_packages.missing_ones(PACKAGES):
            debian_packages.unpack(names, unfinished)
        unfinished.rename(folder)
    except (SetupError, OSError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        pytest.skip(f"no Slurm here: {error}")
    return folder


class OneSlurm:
    """munged, slurmctld and slurmd of this user, with their files in `folder`, until close()."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.packages = folder, unpacked()
        libraries = Path("usr/lib", f"{os.uname().machine}-linux-gnu")
        roots = [root for root in (self.packages, Path("/")) if (root / libraries / "slurm-wlm").exists()]
        plugins = roots[0] / libraries / "slurm-wlm"
        paths = [str(self.packages / libraries), str(plugins), os.environ.get("LD_LIBRARY_PATH", "")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, paths))}
        self.environment["SLURM_CONF"] = str(folder / "slurm.conf")
        host = socket.gethostname().partition(".")[0]
        port = free_ports(2)
        settings = SETTINGS.format(
            host=host,
            user=getpass.getuser(),
            folder=folder,
            port=port,
            next_port=port + 1,
            plugins=plugins,
            cpus=os.cpu_count(),
        )
        (folder / "slurm.conf").write_text(settings)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "key").write_bytes(secrets.token_bytes(128))
        (folder / "key").chmod(0o600)
        self.daemons: list[subprocess.Popen[bytes]] = []
        try:
            self.start(host)
        except BaseException:
            self.close()
            raise

    def program(self, *names: str) -> str:
        """Of the unpacked packages or of the system; Debian's alternatives have `-wlm` in their names."""
        for name in names:
            for folder in ("usr/bin", "usr/sbin"):
                for root in (self.packages, Path("/")):
                    if (root / folder / name).exists():
                        return str(root / folder / name)
        raise FileNotFoundError(names[0])

    def daemon(self, *words: str) -> None:
        with (self.folder / f"{Path(words[0]).name}.out").open("wb") as out:
            self.daemons.append(subprocess.Popen(words, env=self.environment, stdout=out, stderr=out))

    def start(self, host: str) -> None:
        parts = {name: self.folder / name for name in ("key", "munge.pid", "munge.log", "munge.seed", "munge.socket")}
        self.daemon(
            self.program("munged"), "--force", "--foreground", f"--key-file={parts['key']}",
            f"--pid-file={parts['munge.pid']}", f"--log-file={parts['munge.log']}",
            f"--seed-file={parts['munge.seed']}", f"--socket={parts['munge.socket']}",
        )  # fmt: skip
        self.wait_until(parts["munge.socket"].exists)
        settings = str(self.folder / "slurm.conf")
        self.daemon(self.program("slurmctld-wlm", "slurmctld"), "-D", "-f", settings)
        step = self.program("slurmstepd-wlm", "slurmstepd")
        self.daemon(self.program("slurmd-wlm", "slurmd"), "-D", "-f", settings, "-N", host, "-d", step)
        self.wait_until(lambda: self.run("sinfo", "-h", "-o", "%t").stdout.strip() == "idle")

    def wait_until(self, happens: Callable[[], bool]) -> None:
        end_by = time.monotonic() + 60
        while not happens():
            assert time.monotonic() < end_by and all(each.poll() is None for each in self.daemons), self.told()
            time.sleep(0.05)

    def told(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()[-1000:]}" for path in self.folder.glob("*.out"))

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of Slurm; its jobs wait for those before."""
        command = [self.program(program), *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=100, cwd=self.folder
        )

    def close(self) -> None:
        """All files are in `folder`: nothing needs an orderly end, which takes slurmctld 10 s."""
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        for step in self.steps():
            os.kill(step, signal.SIGKILL)

    def steps(self) -> list[int]:
        """The processes of slurmstepd that still report the end of a job to slurmctld."""
        mine = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"slurmstepd" in (folder / "comm").read_bytes() and mine in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneSlurm]:
    """Import it into the module of the tests."""
    made = OneSlurm(tmp_path_factory.mktemp("slurm"))
    yield made
    made.close()
