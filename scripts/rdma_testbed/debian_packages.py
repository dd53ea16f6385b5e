"""Debian packages unpacked into a folder; nothing is installed on this machine."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from provision.messages import SetupError

SECONDS = 300


def _run(*words, cwd=None):
    """Whether the command succeeded, its output, the last line of its errors."""
    environment = dict(os.environ, LC_ALL="C")
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, env=environment)
    except FileNotFoundError:
        raise SetupError(f"no {words[0]} here: Debian's packages are needed", code=2) from None
    except subprocess.TimeoutExpired:
        raise SetupError(f"{' '.join(words[:2])} takes longer than {SECONDS} s") from None
    return done.returncode == 0, done.stdout, (done.stderr.strip().splitlines() or ["no reason given"])[-1]


def refresh_lists():
    """Tries to update apt's lists; without the right to, they stay unchanged."""
    _run("apt-get", "update", "-qq")


def kernel_packages(name):
    """The packages with the newest kernel of the metapackage `name` (linux-image-amd64)."""
    known, depends, _ = _run("apt-cache", "depends", name)
    found = re.findall(r"Depends: (linux-image-\d\S+)", depends)
    if not known or not found:
        raise SetupError(f"apt does not know the package {name}: Debian's kernel is needed", code=2)
    _, parts, _ = _run("apt-cache", "depends", found[0])
    return [found[0], *re.findall(r"Depends: (linux-(?:base|binary|modules)-\d\S+)", parts)]


def missing_ones(names):
    """The packages among `names` and their libraries that are not installed on this machine."""
    leave_out = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    known, text, problem = _run("apt-cache", "depends", "--recurse", *leave_out, *names)
    if not known:
        raise SetupError(f"apt does not know all of {' '.join(names)}: {problem}", code=2)
    needed = {line for line in text.splitlines() if re.match(r"lib[a-z0-9]", line)} | set(names)
    _, text, _ = _run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n")
    return sorted(needed - {line.split()[0] for line in text.splitlines() if line.endswith(" installed")})


def unpack(names, folder):
    """Downloads the packages and unpacks them into `folder`."""
    archives = folder.with_name(folder.name + ".archives")
    shutil.rmtree(archives, ignore_errors=True)
    archives.mkdir(parents=True)
    fetched, _, problem = _run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names, cwd=archives)
    if not fetched:
        raise SetupError(f"cannot download {' '.join(names)}: {problem}", code=2)
    for archive in sorted(archives.glob("*.deb")):
        unpacked, _, problem = _run("dpkg", "-x", str(archive), str(folder))
        if not unpacked:
            raise SetupError(f"cannot unpack {archive.name}: {problem}", code=2)
    shutil.rmtree(archives)
    _follow_links(Path(folder))


def _follow_links(folder):
    """If this machine's /lib is a link to /usr/lib, makes the same link in the packages' folder."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if (folder / name).is_dir() and Path("/", name).is_symlink():
            shutil.copytree(folder / name, folder / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(folder / name)
