"""The networks of `waywiser bench offload --network`: which there are, and what keeps a connection to one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from waywiser.lists import among, words_in
from waywiser.look.networks import IPOIB, SLINGSHOT, TCP, networks
from waywiser.look.root import Root

LOOPBACK = "loopback"
_ALL = "all"
_BY_TCP = (LOOPBACK, TCP, IPOIB)


def networks_here(root: Root) -> dict[str, str]:
    """The kinds of the networks by UCX's names: loopback, active RDMA ports, interfaces that are up."""
    return {"lo": LOOPBACK} | {name: kind for name, kind in networks(root) if kind != SLINGSHOT}


def networks_in(text: str, here: Mapping[str, str]) -> dict[str, str]:
    """Those of the option --network, in its order. Raises InputError for one that is not here."""
    names = among(words_in(text), (_ALL, *here), "--network")
    return dict(here) if _ALL in names else {name: here[name] for name in names}


def variables_for(name: str, kind: str, end: str = "") -> dict[str, str]:
    """With them a group's traffic goes over this network alone. `end`: for two ends on one machine, which then treat
    each other as machines of these names.
    """
    transports = "tcp,self" if kind in _BY_TCP else "ib,self"
    found = {"WAYWISER_UCX_TLS": transports, "WAYWISER_UCX_NET_DEVICES": name}
    return found | ({"WAYWISER_MACHINE": end} if end else {})


@contextmanager
def with_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """This process has them within the block, for groups that form there."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
