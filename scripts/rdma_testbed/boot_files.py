"""Boot files of the virtual machines, made once and kept in the user's cache folder."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from provision.messages import SetupError, say

from . import debian_packages, initial_files, kernel

FORMAT = 1
KERNEL = "linux-image-amd64"
# UCX with verbs (the wheel has none) and its programs, an Open MPI that uses it, the driver of Soft-RoCE, the tools
# that set the link and disks with faults up, and Open vSwitch.
GUEST_PACKAGES = (
    *("libucx0", "ucx-utils", "openmpi-bin", "openmpi-common", "ibverbs-providers", "iproute2"),
    *("openvswitch-switch", "openvswitch-common", "dmsetup", "e2fsprogs"),
)
MODULES = (
    *("virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay"),
    *("rdma_rxe", "crc32_generic", "rdma_ucm", "ib_uverbs", "sch_netem", "sch_prio", "cls_u32"),
    *("tls", "aes_generic", "ctr", "ghash_generic", "gcm"),
    *("crc32c_generic", "veth", "sch_ingress", "cls_flower", "cls_matchall", "act_mirred", "act_gact", "act_police"),
    *("act_ct", "act_skbedit", "openvswitch", "loop", "dm_mod", "dm_flakey", "dm_delay", "ext4"),
)


@dataclass(frozen=True)
class BootFiles:
    kernel: Path
    initial: Path
    packages: Path  # overlays this machine's files in the guests


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "waywiser" / "rdma_testbed"


def _in(folder):
    return BootFiles(folder / "kernel", folder / "initial.cpio", folder / "packages")


def prepare():
    """The boot files for apt's present lists; makes them if they do not exist."""
    try:
        names = _packages()
    except SetupError:
        debian_packages.refresh_lists()
        names = _packages()
    folder = _cache() / hashlib.sha256(f"{FORMAT} {MODULES} {_init()} {names}".encode()).hexdigest()[:16]
    if not folder.exists():
        _make(folder, names)
    return _in(folder)


def _packages():
    return [
        *debian_packages.kernel_packages(KERNEL),
        *debian_packages.missing_ones([*GUEST_PACKAGES, "busybox-static"]),
    ]


def _make(folder, names):
    say(f"downloading for the virtual machines, installed nowhere: {' '.join(names)}")
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    made = _in(unfinished)
    try:
        made.packages.mkdir(parents=True)
        try:
            debian_packages.unpack(names, made.packages)
        except SetupError:
            debian_packages.refresh_lists()  # old lists name versions that no longer exist
            debian_packages.unpack(names, made.packages)
        made.kernel.write_bytes(kernel.unpacked_image(made.packages))
        made.initial.write_bytes(_initial(made.packages))
        kernel.remove(made.packages)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _init():
    return (Path(__file__).parent / "guest" / "init").read_text()


def _initial(packages):
    busybox = next((file for file in (packages / "bin/busybox", packages / "usr/bin/busybox") if file.exists()), None)
    shell = (busybox or Path("/bin/busybox")).read_bytes()
    modules = kernel.modules(packages, MODULES)
    files = [(f"modules/{number:02}-{name}.ko", data) for number, (name, data) in enumerate(modules, 10)]
    folders = ["bin", "modules", "proc", "sys", "dev", "machine", "packages", "written", "merged"]
    return initial_files.archive(folders, [("init", _init().encode()), ("bin/busybox", shell), *files])
