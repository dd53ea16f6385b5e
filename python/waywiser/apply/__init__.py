"""Turns measurements into settings of UCX, Open MPI, MPICH and NCCL; each setting is checked and has a reason."""
