"""Atheris's libFuzzer on a target that is written in Python: python_fuzzer.py TARGET [libFuzzer's arguments]."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["waywiser"]):
    from python_targets import TARGETS

target = TARGETS[sys.argv.pop(1)]
atheris.Setup(sys.argv, target)
atheris.Fuzz()
