"""The processes of a job as their launcher sees them: their ends, their output, and their end when it dies itself."""
