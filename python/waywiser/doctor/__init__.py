"""Checks what is enabled on this machine and what is not; the checks only read."""
