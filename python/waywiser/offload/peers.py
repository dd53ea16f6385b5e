"""To which machines a server connects when a client has an array copied between two servers."""

from __future__ import annotations

import ipaddress

from waywiser.errors import InputError


class Peers:
    """Addresses and networks, as "10.0.0.6,10.1.0.0/16"; "": none. Raises InputError for what is neither."""

    def __init__(self, text: str) -> None:
        try:
            self._networks = [ipaddress.ip_network(word.strip(), strict=False) for word in text.split(",") if text]
        except ValueError as error:
            raise InputError(f"{error}: write addresses and networks, as 10.0.0.6,10.1.0.0/16") from None

    def admit(self, host: str) -> bool:
        """Whether the host that a client names is one of them. No name is: whoever asks decides where it leads."""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)
