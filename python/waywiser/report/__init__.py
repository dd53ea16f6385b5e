"""The report of one machine: an HTML page that opens offline, the same plots as PNG, a summary for the terminal."""
