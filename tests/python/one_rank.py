"""A group of one rank with virtual GPUs; import the fixtures into the module of the tests."""

from __future__ import annotations

import pytest

import waywiser as ww


@pytest.fixture
def gpus() -> ww.Gpus:
    return ww.virtual_gpus(2)


@pytest.fixture
def alone(gpus: ww.Gpus, monkeypatch: pytest.MonkeyPatch) -> ww.Group:
    """A group of one rank."""
    for name in ("WAYWISER_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    return ww.join(gpus=gpus)
