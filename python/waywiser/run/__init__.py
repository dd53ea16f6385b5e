"""`waywiser run`: starts the ranks of a job, sets each up for its node, watches them. See README.md."""
