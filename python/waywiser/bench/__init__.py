"""`waywiser bench`: times of the group's operations, beside other libraries in the same run. See README.md."""
