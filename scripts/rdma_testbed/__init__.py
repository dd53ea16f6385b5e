"""Two virtual machines with Debian's stock kernel and RDMA in software (Soft-RoCE), joined by a link."""
