#pragma once

#include <cstdint>
#include <string_view>

// The choices without a plan: the only place for constants that choose protocols, sizes and blocks. Each has its
// source; "not recorded": the reason is not known.
namespace waywiser::defaults {

struct Default {
  std::string_view name;
  std::uint64_t value;
  std::string_view unit, source;

  constexpr operator std::uint64_t() const { return value; }
};

inline constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

// Messages between GPUs on streams.
inline constexpr Default messages_ll_beside_ll128{"messages by LL where LL128 is available", 4 * kib, "bytes at most",
                                                  "not recorded; tune measures it"};
inline constexpr Default messages_ll128{"messages by LL128", 8 * mib, "bytes at most",
                                        "not recorded; tune measures it"};
inline constexpr Default messages_ll{"messages by LL without LL128", 256 * kib, "bytes at most",
                                     "not recorded; tune measures it"};
inline constexpr Default messages_blocks{"blocks of a message", 64, "blocks at most", "not recorded; tune measures it"};
inline constexpr Default messages_bulk_piece{"piece of a bulk message", 16 * kib, "bytes at least", "not recorded"};
inline constexpr Default joint_blocks{"blocks of several messages in one kernel", 96, "blocks at most",
                                      "fewer than the SMs of an A100 (108) and an H100 (132), with room for others"};

// Collectives of GPUs.
inline constexpr Default fused_ll{"fused collectives by LL", 384 * kib, "bytes sent at most",
                                  "2 and 4 x H200: docs/lab/gpu-groups.md, LL128"};
inline constexpr Default fused_ll128_from{"fused collectives by LL128", 8 * kib, "bytes sent at least",
                                          "2 and 4 x H200: docs/lab/gpu-groups.md, LL128"};
inline constexpr Default fused_ll128_one_shot{"fused collectives by LL128 in one shot", 1 * mib, "bytes sent at most",
                                              "2 and 4 x H200: docs/lab/gpu-groups.md, LL128"};
inline constexpr Default fused_ll128{"fused collectives by LL128", 4 * mib, "bytes at most",
                                     "what landing memory has room for at once"};
inline constexpr Default fused_ll128_blocks{"blocks of a fused collective by LL128 in two shots", 264, "blocks",
                                            "2 of 256 threads on each of 132 SMs of an H200"};
inline constexpr Default fused_one_shot{"fused collectives in one shot", 1 * mib, "bytes sent at most",
                                        "2 and 4 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default fused_one_shot_of_two{"fused collectives of two ranks in one shot", 4 * mib,
                                               "bytes sent at most", "both shots send as much"};
inline constexpr Default kernels_before_nccl{"all_reduce by kernels before NCCL", 32 * mib, "bytes at most",
                                             "4 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default blocks_before_nccl{"other collectives by kernels before NCCL", 16 * mib, "bytes a block",
                                            "4 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default hierarchy_slice{"slice of a rank between machines", 16 * kib, "bytes at least",
                                         "not recorded"};

// Schedules that a kernel interprets.
inline constexpr Default program_ll{"messages of a schedule on GPUs by LL", 64 * kib, "bytes at most", "not recorded"};
inline constexpr Default program_piece{"piece of a message of a schedule on GPUs", 16 * kib, "bytes at least",
                                       "not recorded"};
inline constexpr Default program_pieces{"pieces of a message of a schedule on GPUs", 64, "pieces at most",
                                        "not recorded"};
inline constexpr Default program_blocks{"blocks of a schedule on GPUs", 32, "blocks at most", "not recorded"};

// Schedules of hosts.
inline constexpr Default pipeline_pieces{"pieces of a pipeline", 16, "pieces", "not recorded"};
inline constexpr Default pipeline_piece{"piece of a pipeline", 16384, "elements at least", "not recorded"};
inline constexpr Default two_shot_piece{"piece of a two_shot of hosts", 65536, "elements",
                                        "what a core's cache holds while it is reduced"};

// Messages of hosts and of blocking calls.
inline constexpr Default copies_by_kernel{"GPU memory by a kernel, else by a copy engine", 1 * mib, "bytes at most",
                                          "2 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default read_by_receiver{"GPU messages that the receiver reads", 1 * mib, "bytes at most",
                                          "2 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default rails_from{"messages over several rails", 64 * kib, "bytes at least", "not recorded"};
inline constexpr Default lane_short{"messages in a lane of shared memory", 8 * kib, "bytes at most", "not recorded"};
inline constexpr Default ucx_alone{"messages of collectives on one machine by UCX", 256 * kib, "bytes at most",
                                   "UCX copies twice up to here: UCX_RNDV_SEND_NBR_THRESH"};
inline constexpr Default copy_chunk_least{"chunk of a message that both ranks copy", 16 * kib, "bytes at least",
                                          "not recorded"};
inline constexpr Default copy_chunk_most{"chunk of a message that both ranks copy", 256 * kib, "bytes at most",
                                         "not recorded"};
inline constexpr Default pinned_receive{"pinned host memory for a message into a GPU", 1 * mib, "bytes at most",
                                        "not recorded"};

inline constexpr const Default* table[] = {
    &messages_ll_beside_ll128,
    &messages_ll128,
    &messages_ll,
    &messages_blocks,
    &messages_bulk_piece,
    &joint_blocks,
    &fused_ll,
    &fused_ll128_from,
    &fused_ll128_one_shot,
    &fused_ll128,
    &fused_ll128_blocks,
    &fused_one_shot,
    &fused_one_shot_of_two,
    &kernels_before_nccl,
    &blocks_before_nccl,
    &hierarchy_slice,
    &program_ll,
    &program_piece,
    &program_pieces,
    &program_blocks,
    &pipeline_pieces,
    &pipeline_piece,
    &two_shot_piece,
    &copies_by_kernel,
    &read_by_receiver,
    &rails_from,
    &lane_short,
    &ucx_alone,
    &copy_chunk_least,
    &copy_chunk_most,
    &pinned_receive,
};

}  // namespace waywiser::defaults
