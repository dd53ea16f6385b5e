"""`waywiser tune`: measures and chooses what the results lack; with another machine if there is one. See README.md."""
