#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <waywiser/base/error.hpp>
#include <waywiser/group/group.hpp>
#include <waywiser/halo/halo_exchange.hpp>

#include "apps/parallel.hpp"

namespace apps {

// NCCL (nccl.h, unchanged since 2.10), which is opened at run time: WAYWISER_LIBNCCL, or libnccl.so.2.
class Nccl {
 public:
  // Collective. Throws unavailable at all ranks. One communicator serves all exchanges of groups of one size.
  static std::shared_ptr<Nccl> of(waywiser::Group& group) {
    static std::shared_ptr<Nccl> kept;
    if (!kept || kept->ranks_ != group.size()) kept = std::shared_ptr<Nccl>(new Nccl(group));
    return kept;
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  void start() { check(group_start_(), "ncclGroupStart"); }
  void end() { check(group_end_(), "ncclGroupEnd"); }
  void send(const void* from, std::size_t bytes, int peer, cudaStream_t stream) {
    check(send_(from, bytes, uint8, peer, comm_, stream), "ncclSend");
  }
  void receive(void* to, std::size_t bytes, int peer, cudaStream_t stream) {
    check(receive_(to, bytes, uint8, peer, comm_, stream), "ncclRecv");
  }

 private:
  using Id = std::array<char, 128>;
  struct UniqueId {
    Id bytes;
  };
  static constexpr int uint8 = 1;

  explicit Nccl(waywiser::Group& group) : ranks_(group.size()) {
    std::string why = open();
    std::int32_t lacks = why.empty() ? 0 : 1;
    group.all_reduce(std::span(&lacks, 1), std::span(&lacks, 1), waywiser::ReduceOp::max);
    if (lacks != 0)
      throw waywiser::Error(waywiser::ErrorKind::unavailable, why.empty() ? "another rank has no NCCL" : why);
    // Its ranks meet by sockets that anybody may open: on this machine alone.
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    UniqueId id{};
    if (group.rank() == 0) check(get_unique_id_(&id), "ncclGetUniqueId");
    group.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
    check(comm_init_rank_(&comm_, ranks_, id, group.rank()), "ncclCommInitRank");
  }
  // Why it cannot be opened; empty: it is open.
  std::string open() {
    const char* named = std::getenv("WAYWISER_LIBNCCL");
    void* library = dlopen(named != nullptr && *named != '\0' ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    std::string missing;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) missing = std::string("NCCL lacks ") + name;
    };
    find(get_unique_id_, "ncclGetUniqueId");
    find(comm_init_rank_, "ncclCommInitRank");
    find(group_start_, "ncclGroupStart");
    find(group_end_, "ncclGroupEnd");
    find(send_, "ncclSend");
    find(receive_, "ncclRecv");
    return missing;
  }
  static void check(int result, const char* what) {
    if (result != 0)
      throw waywiser::Error(waywiser::ErrorKind::device, std::string(what) + " failed with " + std::to_string(result));
  }

  const int ranks_;
  void* comm_ = nullptr;  // ends with the process
  int (*get_unique_id_)(UniqueId*) = nullptr;
  int (*comm_init_rank_)(void**, int, UniqueId, int) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  int (*send_)(const void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*receive_)(void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
};

// Between an array and a packed one: elements that do not lie together.
template <typename Word, bool packs>
__global__ void move_listed(Word* array, const std::int64_t* places, std::int64_t count, Word* packed) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (packs)
    packed[i] = array[places[i]];
  else
    array[places[i]] = packed[i];
}

// The exchange of a partition as a program with NCCL does it: on the stream of the loops, one send and one receive for
// each field and part of the boundary; a kernel for each field packs those that are not contiguous.
class NcclHalo {
 public:
  // Collective. Throws unavailable at all ranks.
  NcclHalo(waywiser::Group& group, Processor& processor, const waywiser::HaloPartition& partition,
           const std::vector<waywiser::HaloArray>& fields)
      : nccl_(Nccl::of(group)), stream_(processor.native()) {
    for (const waywiser::HaloArray& field : fields) {
      gives_.push_back(parts_of(processor, partition, field, partition.gives));
      takes_.push_back(parts_of(processor, partition, field, partition.takes));
    }
  }

  // Behind all loops so far; later ones come after it.
  void start() {
    for (Parts& each : gives_) move<true>(each);
    nccl_->start();
    for (const Parts& each : gives_)
      for (const Message& message : each.messages) nccl_->send(message.data, message.bytes, message.peer, stream_);
    for (const Parts& each : takes_)
      for (const Message& message : each.messages) nccl_->receive(message.data, message.bytes, message.peer, stream_);
    nccl_->end();
    for (Parts& each : takes_) move<false>(each);
  }

 private:
  struct Message {
    int peer;
    std::byte* data;
    std::size_t bytes;
  };
  // Of one field.
  struct Parts {
    std::byte* field;
    std::size_t element;  // bytes
    std::int64_t count = 0;
    std::shared_ptr<Array<std::int64_t>> places;  // elements, one after the other as they are packed
    std::shared_ptr<Array<std::uint8_t>> packed;
    std::vector<Message> messages;
  };

  static Parts parts_of(Processor& processor, const waywiser::HaloPartition& partition,
                        const waywiser::HaloArray& field, const std::vector<waywiser::HaloSide>& sides) {
    Parts parts{field.values.region.data, waywiser::bytes_of(field.values.type), 0, {}, {}, {}};
    if (parts.element > sizeof(std::uint64_t))
      throw waywiser::Error(waywiser::ErrorKind::unavailable, "elements of more than eight bytes");
    std::vector<std::int64_t> places;
    std::vector<std::size_t> packed_at;  // elements; of each message
    constexpr std::size_t in_place = ~std::size_t{0};
    const bool planar = field.planar && field.components > 1;
    for (const waywiser::HaloSide& side : sides) {
      const waywiser::ArrayPart& cells = side.cells;
      if (cells.count == 0) continue;
      const std::size_t count = cells.count * field.components;
      const bool contiguous = !cells.apart && !planar;
      parts.messages.push_back(
          {side.peer, parts.field + cells.offset * field.components * parts.element, count * parts.element});
      packed_at.push_back(contiguous ? in_place : places.size());
      if (!contiguous) list(cells, partition.cells, field.components, planar, places);
    }
    parts.count = static_cast<std::int64_t>(places.size());
    if (places.empty()) return parts;
    parts.places = std::make_shared<Array<std::int64_t>>(processor, parts.count);
    parts.places->assign(places);
    parts.packed = std::make_shared<Array<std::uint8_t>>(processor, parts.count * static_cast<int>(parts.element));
    for (std::size_t i = 0; i < parts.messages.size(); ++i)
      if (packed_at[i] != in_place)
        parts.messages[i].data = reinterpret_cast<std::byte*>(parts.packed->data()) + packed_at[i] * parts.element;
    return parts;
  }
  static void list(const waywiser::ArrayPart& cells, std::size_t all, std::size_t components, bool planar,
                   std::vector<std::int64_t>& places) {
    const std::size_t run = cells.apart ? cells.layout.run : cells.count;
    for (std::size_t plane = 0; plane < (planar ? components : 1); ++plane)
      for (std::size_t at = 0; at < cells.count / run; ++at) {
        const std::size_t first = cells.offset + (cells.apart ? cells.layout.run_at(at) : 0);
        for (std::size_t i = 0; i < run; ++i)
          for (std::size_t each = 0; each < (planar ? 1 : components); ++each)
            places.push_back(
                static_cast<std::int64_t>(planar ? plane * all + first + i : (first + i) * components + each));
      }
  }

  template <bool packs>
  void move(Parts& parts) {
    if (parts.count == 0) return;
    switch (parts.element) {
      case 1: return launch<std::uint8_t, packs>(parts);
      case 2: return launch<std::uint16_t, packs>(parts);
      case 4: return launch<std::uint32_t, packs>(parts);
      default: return launch<std::uint64_t, packs>(parts);
    }
  }
  template <typename Word, bool packs>
  void launch(Parts& parts) {
    const auto blocks = static_cast<unsigned>((parts.count + block_threads - 1) / block_threads);
    move_listed<Word, packs><<<blocks, block_threads, 0, stream_>>>(reinterpret_cast<Word*>(parts.field),
                                                                    parts.places->data(), parts.count,
                                                                    reinterpret_cast<Word*>(parts.packed->data()));
    check(cudaGetLastError(), "a kernel that packs");
  }

  std::shared_ptr<Nccl> nccl_;
  cudaStream_t stream_;
  std::vector<Parts> gives_, takes_;
};

}  // namespace apps
