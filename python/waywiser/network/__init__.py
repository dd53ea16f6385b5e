"""Packet steering: who may talk to whom, and whether the card or the processors decide it."""
