"""What is switched on at this machine and what is not: checks that only read."""
