#pragma once

#include "waywiser/transport/defaults.hpp"

// The choices without a plan: the only place for constants that choose protocols, sizes and blocks, besides those of
// transports, which the table has too. Each has its source.
namespace waywiser::defaults {

// Messages between GPUs on streams.
inline constexpr Default messages_ll_beside_ll128{
    "messages by LL where LL128 is available", 4 * kib, "bytes at most",
    "2 of 4 x H100, recorded-4xh100: of the time of LL128 0.65 at 8 B, 1.06 at 1 KiB"};
inline constexpr Default messages_ll128{"messages by LL128", 8 * mib, "bytes at most",
                                        "2 of 4 x H100, recorded-4xh100: the fastest to 4 MiB, bulk takes 1.12 there"};
inline constexpr Default messages_ll{
    "messages by LL without LL128", 256 * kib, "bytes at most",
    "2 of 4 x H100, recorded-4xh100: bulk takes 1.52 of its time at 256 KiB, 0.90 at 1 MiB"};
inline constexpr Default messages_blocks{"blocks of a message", 64, "blocks at most",
                                         "2 of 4 x H100, recorded-4xh100: 16 and 32 blocks take 1.12 to 1.17 at 1 MiB"};
inline constexpr Default messages_bulk_piece{
    "piece of a bulk message", 16 * kib, "bytes at least",
    "2 x H200, docs/lab/gpu-groups.md: 32 KiB take 1.08 at 256 KiB, 8 KiB 1.00"};
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
                                     "4 x H100, recorded-4xh100: pushes take 1.41 at 4 MiB, NCCL 2.08"};
inline constexpr Default fused_ll_blocks{"blocks of a fused collective by LL", 256, "blocks at most",
                                         "no bound: what goes by LL without a plan has 128 at most"};
inline constexpr Default fused_ll128_one_shot_blocks{"blocks of a fused collective by LL128 in one shot", 512,
                                                     "blocks at most",
                                                     "what the kernel takes at most; 2 x H200: 256 take 1.13 at 1 MiB"};
inline constexpr Default fused_ll128_blocks{"blocks of a fused collective by LL128 in two shots", 2,
                                            "blocks a multiprocessor", "2 blocks of 256 threads run at once"};
inline constexpr Default fused_ll128_long_blocks{
    "blocks of a fused collective by LL128 in two shots, if these are too few", 384, "blocks on 132 multiprocessors",
    "4 x H100, recorded-4xh100: 128 blocks of 512 threads take 0.98 at 4 MiB, 1.07 at 1 MiB"};
inline constexpr Default fused_ll128_narrow{"fused collectives by LL128 in blocks of 64 threads", 512,
                                            "pairs of lines at most; four times as many in blocks of 128",
                                            "2 x H200, docs/lab/gpu-groups.md: 2,048 take 1.11 at 1 MiB, 128 1.00"};
inline constexpr Default fused_push_threads{"threads of a block of a fused collective that pushes", 256, "threads",
                                            "2 x H200, docs/lab/gpu-groups.md: 128 take to 1.08, 512 0.97 to 1.13"};
inline constexpr Default fused_one_shot_blocks{
    "blocks of a fused collective that pushes in one shot", 256, "blocks at most",
    "4 x H100, recorded-4xh100: 16 blocks of 512 threads take to 1.4, 128 to 1.02"};
inline constexpr Default fused_two_shot_blocks{
    "blocks of a fused collective that pushes in two shots", 64, "blocks at most",
    "4 x H100, recorded-4xh100: 16 blocks of 512 threads take 1.04 at 1 MiB"};
inline constexpr Default fused_two_shot_long{
    "long fused collectives that push in two shots", 2 * mib, "bytes that a rank sends in a shot",
    "2 x H200, docs/lab/gpu-groups.md: its blocks take 1.09 at half, 0.90 at twice"};
inline constexpr Default fused_two_shot_long_blocks{
    "blocks of a long fused collective that pushes in two shots", 256, "blocks",
    "4 x H100, recorded-4xh100: 128 blocks of 512 threads take 1.01 at 16 MiB, 16 take 1.14"};
inline constexpr Default fused_one_shot{"fused collectives in one shot", 1 * mib, "bytes sent at most",
                                        "2 and 4 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default fused_one_shot_of_two{"fused collectives of two ranks in one shot", 4 * mib,
                                               "bytes sent at most", "both shots send as much"};
inline constexpr Default kernels_before_nccl{"all_reduce by kernels before NCCL", 32 * mib, "bytes at most",
                                             "4 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default blocks_before_nccl{"other collectives by kernels before NCCL", 16 * mib, "bytes a block",
                                            "4 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default hierarchy_slice{"slice of a rank between machines", 16 * kib, "bytes at least",
                                         "simulated, docs/lab/host.md: 8 KiB take 0.90 to 0.97 of its time"};

// Memory into which the ranks of a group receive, in its slice of the arena and beyond.
inline constexpr Default slice_ll{"receive buffers for LL in a slice", 384 * kib, "bytes from all ranks",
                                  "what fused collectives by LL send at most"};
inline constexpr Default slice_ll128{"receive buffers for LL128 in a slice", 1 * mib, "bytes from all ranks",
                                     "an all_reduce of 1 MiB is one kernel"};
inline constexpr Default slice_bulk{"receive buffers for pushes in a slice", 2 * mib, "bytes from all ranks",
                                    "an all_reduce of 1 MiB is one kernel"};
inline constexpr Default slice_least{"receive buffers in the smallest slice", 8 * kib, "bytes of a rank",
                                     "operations of up to 8 KiB run alike in every slice"};
inline constexpr Default apart_ll{"receive buffers for LL beyond the slice", 512 * kib, "bytes of a rank",
                                  "more than they send at most by LL"};
inline constexpr Default apart_ll128{"receive buffers for LL128 beyond the slice", 4 * mib, "bytes from all ranks",
                                     "what they send at most by LL128"};
inline constexpr Default apart_bulk{"receive buffers for pushes beyond the slice", 32 * mib, "bytes from all ranks",
                                    "what an all_reduce by kernels takes at most before NCCL"};

// Schedules that a kernel interprets.
inline constexpr Default program_ll{
    "messages of a schedule on GPUs by LL", 64 * kib, "bytes at most",
    "2 of 4 x H100, recorded-4xh100: without packing 1.85 of its time at 64 KiB, 0.71 at 1 MiB"};
inline constexpr Default program_ll_beside_ll128{
    "the same where LL128 is possible", 8 * kib, "bytes at most",
    "2 of 4 x H100, recorded-4xh100: LL128 takes 1.12 at 8 KiB, 1.02 at 64 KiB"};
inline constexpr Default program_ll128{"messages of a schedule on GPUs by LL128", 1 * mib, "bytes at most",
                                       "2 x H100: docs/lab/gpu-halo.md"};
inline constexpr Default program_ll128_piece{"piece of a message of a schedule on GPUs by LL128", 7680,
                                             "bytes at least", "one word a thread"};
inline constexpr Default program_ll_piece{"piece of a message of a schedule on GPUs by LL", 4 * kib, "bytes at least",
                                          "2 of 4 x H100, recorded-4xh100: pieces of 1 KiB take 1.15 at 64 KiB"};
inline constexpr Default program_piece{
    "piece of a message of a schedule on GPUs", 16 * kib, "bytes at least",
    "2 of 4 x H100, recorded-4xh100: pieces of 64 KiB take 1.09 at 64 KiB, 1.00 from 1 MiB on"};
inline constexpr Default program_pieces{"pieces of a message of a schedule on GPUs", 64, "pieces at most",
                                        "2 x H100: docs/lab/gpu-halo.md"};
inline constexpr Default program_blocks{"blocks of a schedule on GPUs", 128, "blocks at most",
                                        "2 x H100: docs/lab/gpu-halo.md"};

inline constexpr Default program_direct_run{
    "runs of an array that a schedule on GPUs stores without packing", 32, "bytes at least",
    "2 x H200, docs/lab/gpu-halo.md: packed ones take 1.2 to 1.6, of 16 bytes 0.98"};

// Schedules of hosts.
inline constexpr Default rough_step{
    "a step of a schedule of hosts", 3000, "ns until a message has arrived",
    "simulated, docs/lab/host.md: 8 B take 1,650 over InfiniBand, 8 KiB 5,510 to 6,020"};
inline constexpr Default rough_step_nearby{"the same between ranks of one machine", 300,
                                           "ns until a message has arrived",
                                           "16 cores beside an H200: docs/lab/host.md, choice without a plan"};
inline constexpr Default rough_message{"a message of a schedule of hosts", 300, "ns until the next can be sent",
                                       "as the one before"};
inline constexpr Default rough_byte{"a byte of a schedule of hosts", 100, "ps to send", "10 GB/s"};
inline constexpr Default rough_worked{"a byte of a schedule of hosts", 30, "ps to copy or reduce", "as the one before"};
inline constexpr Default pipeline_pieces{
    "pieces of a pipeline", 16, "pieces",
    "4 ranks, docs/lab/host.md: at 8 MiB 4 take 0.74 to 0.91, 64 take 1.10 to 1.38; more ranks need more"};
inline constexpr Default pipeline_piece{
    "piece of a pipeline", 16384, "elements at least",
    "4 ranks, docs/lab/host.md: at 128 KiB a fourth takes 0.87 to 1.18, four times as much 0.85 to 1.05"};
inline constexpr Default two_shot_piece{"piece of a two_shot of hosts", 65536, "elements",
                                        "what a core's cache holds while it is reduced"};

// Messages of hosts and of blocking calls.
inline constexpr Default copies_by_kernel{"GPU memory by a kernel, else by a copy engine", 1 * mib, "bytes at most",
                                          "2 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default peer_kernel_blocks{"blocks of a kernel that copies GPU memory of another process", 16,
                                            "blocks",
                                            "2 of 4 x H200, recorded-4xh200: 4 take 1.24 at 1 MiB, 64 take 0.99"};
inline constexpr Default peer_staged_chunk{
    "chunk of a copy between GPUs through the host", 2 * mib, "bytes",
    "2 of 4 x H200, recorded-4xh200: 1 MiB takes 1.10 at 16 MiB, 4 MiB 1.06, 8 MiB 1.18"};
inline constexpr Default peer_staged_depth{"chunks under way of a copy between GPUs through the host", 4, "chunks",
                                           "2 of 4 x H200, recorded-4xh200: 2 take 1.09 at 16 MiB"};
inline constexpr Default read_by_receiver{"GPU messages that the receiver reads", 1 * mib, "bytes at most",
                                          "2 x H200: docs/lab/gpu-groups.md"};
inline constexpr Default rails_from{"messages over several rails", 64 * kib, "bytes at least", "as ucx_split"};
inline constexpr Default lane_short{"messages in a lane of shared memory", 8 * kib, "bytes at most",
                                    "a quarter of a lane, 32 KiB: half of one may find no room for ever"};
inline constexpr Default lane_units_most{"messages of a lane that lie between their neighbours", 256, "bytes at most",
                                         "docs/lab/host.md: longer ones lie in pages of their own"};
inline constexpr Default ucx_alone{"messages of collectives on one machine by UCX", 256 * kib, "bytes at most",
                                   "UCX copies twice up to here: UCX_RNDV_SEND_NBR_THRESH"};
inline constexpr Default ucx_copies{"messages of one machine that UCX copies twice", 64 * kib, "bytes at most",
                                    "docs/lab/host.md"};
inline constexpr Default ucx_copies_before_1_22{"messages of one machine that UCX before 1.22 copies twice", 16 * kib,
                                                "bytes at most", "it takes twice as long to copy: docs/lab/host.md"};
inline constexpr Default encrypted_unasked{
    "encrypted messages that are sent before they are asked for", 64 * kib, "bytes at most",
    "docs/lab/host.md: 16 KiB takes 1.4 for 64 KiB, 1 MiB 0.8 for 128 KiB; each takes memory unasked"};
inline constexpr Default copy_chunk_least{"chunk of a message that both ranks copy", 8 * kib, "bytes at least",
                                          "docs/lab/host.md: 16 KiB takes 1.1 to 1.2 for messages of 12 and 16 KiB"};
inline constexpr Default read_alone{"messages of one machine that the receiver alone copies", 64 * kib, "bytes at most",
                                    "docs/lab/host.md: alone and together 64 KiB take as long"};
inline constexpr Default read_alone_of_several{"the same where several are under way", 512 * kib, "bytes at most",
                                               "docs/lab/host.md: what a core's cache holds"};
inline constexpr Default copy_chunk_most{"chunk of a message that both ranks copy", 256 * kib, "bytes at most",
                                         "docs/lab/host.md: 64 KiB takes 1.1 to 1.2 from 1 MiB on, 1 MiB 1.04 to 1.19"};

// Files.
inline constexpr Default file_chunk{"chunk of a copy between a file and a GPU", 2 * mib, "bytes",
                                    "docs/lab/host.md: of cached 16 MiB 8 MiB take 1.39, 1 MiB 1.08"};
inline constexpr Default file_depth{"chunks under way of a copy between a file and a GPU", 3, "chunks",
                                    "docs/lab/host.md: 2 and 4 take 0.97 and 1.02 of cached 16 MiB"};
inline constexpr Default file_slow{"a way to a file that has become slow", 2, "times the plan's time at least",
                                   "a decision, not a measurement: less is noise of a device that others use too"};
inline constexpr Default file_slow_after{"calls by a way to a file until it is judged", 1000, "milliseconds in all",
                                         "a third of the 3 s within which a slow way is to be replaced"};
inline constexpr Default file_section{"a long part of a file is moved in sections", 64 * mib, "bytes",
                                      "the largest size that tune --storage times; each section is judged"};
inline constexpr Default file_many{"parts of one call to a file from which on it is judged", 64, "parts at least",
                                   "a decision, not a measurement: the plan's time is that of one of 256"};
inline constexpr Default file_cached_tail{
    "a part that is written and no whole blocks goes through the page cache alone", 256 * kib, "bytes at most",
    "docs/storage.md: the tail as a write of its own takes 1.39 to 1.11 of 4 to 256 KiB, 1.02 of 1 MiB"};
// Ways past the page cache. docs/lab/host.md: of io_uring's time direct takes 0.9 to 1.2, buffered 1.2 to 4.
inline constexpr std::string_view file_ways[] = {"io_uring", "direct", "buffered"};

// Messages into GPUs.
inline constexpr Default pinned_unasked{
    "page-locked memory for a message into a GPU that may come out of another", 1 * mib, "bytes at most",
    "docs/lab/host.md: from 64 KiB on ordinary memory takes 1.8 to 3.9 times as long"};

inline constexpr const Default* table[] = {
    &host_copy_share,
    &ucx_split,
    &courier_message,
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
    &fused_ll_blocks,
    &fused_ll128_one_shot_blocks,
    &fused_ll128_blocks,
    &fused_ll128_long_blocks,
    &fused_ll128_narrow,
    &fused_push_threads,
    &fused_one_shot_blocks,
    &fused_two_shot_blocks,
    &fused_two_shot_long,
    &fused_two_shot_long_blocks,
    &fused_one_shot,
    &fused_one_shot_of_two,
    &kernels_before_nccl,
    &blocks_before_nccl,
    &hierarchy_slice,
    &slice_ll,
    &slice_ll128,
    &slice_bulk,
    &slice_least,
    &apart_ll,
    &apart_ll128,
    &apart_bulk,
    &program_ll,
    &program_ll_beside_ll128,
    &program_ll128,
    &program_ll128_piece,
    &program_ll_piece,
    &program_piece,
    &program_pieces,
    &program_blocks,
    &program_direct_run,
    &rough_step,
    &rough_step_nearby,
    &rough_message,
    &rough_byte,
    &rough_worked,
    &pipeline_pieces,
    &pipeline_piece,
    &two_shot_piece,
    &copies_by_kernel,
    &peer_kernel_blocks,
    &peer_staged_chunk,
    &peer_staged_depth,
    &read_by_receiver,
    &rails_from,
    &lane_short,
    &lane_units_most,
    &ucx_alone,
    &ucx_copies,
    &ucx_copies_before_1_22,
    &encrypted_unasked,
    &read_alone,
    &read_alone_of_several,
    &copy_chunk_least,
    &copy_chunk_most,
    &file_chunk,
    &file_depth,
    &file_slow,
    &file_slow_after,
    &file_section,
    &file_many,
    &file_cached_tail,
    &pinned_unasked,
};

}  // namespace waywiser::defaults
