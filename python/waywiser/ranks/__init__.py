"""The launcher's side of a job's processes: detects their ends, writes their output, ends them if the launcher dies."""
