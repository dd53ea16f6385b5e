"""Two virtual machines for all tests of this folder; `make test-rdma` runs them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from provision.messages import SetupError  # noqa: E402
from rdma_testbed import boot_files  # noqa: E402
from rdma_testbed.two_guests import TwoGuests  # noqa: E402


@pytest.fixture(scope="session")
def guests() -> Iterator[TwoGuests]:
    try:
        made = TwoGuests(boot_files.prepare())
    except SetupError as error:
        pytest.exit(f"waywiser: {error}", returncode=error.code)
    yield made
    made.close()


@pytest.fixture
def link(guests: TwoGuests) -> Iterator[TwoGuests]:
    """The guests; whatever a test does to their link is undone."""
    yield guests
    guests.shape()
    guests.pull_cable(out=False)
