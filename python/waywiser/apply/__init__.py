"""From what was measured to settings of UCX, Open MPI, MPICH and NCCL, each with its reason and checked before."""
