"""The only door to the machine: files, commands, probes; live or recorded. See README.md."""
