#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/collective/gpu/rank_offer.hpp"
#include "waywiser/collective/gpu/receive_buffers.hpp"
#include "waywiser/collective/messages/stream_messages.hpp"
#include "waywiser/comm/peer_memory/exposed_memory.hpp"

namespace waywiser {

class Session;

// Divides a group's ranks into parts of at most 8 that kernels could serve: ranks of one machine, in their order, in
// the fewest parts, whose sizes differ by at most one. `machine_of`: a number for each rank.
std::vector<std::vector<int>> kernel_domains(const std::vector<int>& machine_of);

// The part of a group that kernels of this rank's GPU can serve: messages between any two GPUs that reach each other's
// memory, and collectives of the part if all of them do.
class KernelDomain {
 public:
  // Collective over the whole group, with three exchanges: the memory that each rank has left, what each offers, and
  // what each can open of the others' offers.
  KernelDomain(RankExchange& exchange, Session& session, const Members& members, Place gpu, Stream& stream);
  KernelDomain(const KernelDomain&) = delete;
  KernelDomain& operator=(const KernelDomain&) = delete;

  // All parts of the group; the index of this rank's part, and this rank's index in it.
  const std::vector<std::vector<int>>& all() const noexcept { return all_; }
  int index() const noexcept { return index_; }
  const std::vector<int>& ranks() const noexcept { return all_[static_cast<std::size_t>(index_)]; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(ranks().size()); }

  // Whether messages to and from a rank of the group go by kernels; the same at both ends. The reason why not; empty if
  // they do.
  bool reaches(int rank) const;
  std::string why_not(int rank) const;
  // Why kernels do not serve the collectives of the whole group; empty if they do.
  const std::string& why_not_whole() const noexcept { return why_not_whole_; }
  bool is_whole() const noexcept { return why_not_whole_.empty() && fused() != nullptr; }
  bool on_one_machine() const;
  // Whether kernels serve the collectives of each part with more than one rank.
  bool serves_all_parts() const noexcept { return serves_all_parts_; }
  const std::string& why_no_ll128() const noexcept { return why_no_ll128_; }

  // Of this part; nullptr if kernels do not serve its collectives, or messages to no rank.
  FusedCollective* fused() const noexcept { return has_collectives_ ? fused_.get() : nullptr; }
  StreamMessages* messages() const noexcept { return messages_.get(); }
  // Messages between ranks of the group, like StreamMessages::enqueue.
  void enqueue_message(ConstElements give, int to, Elements take, int from, Stream& stream, Seconds deadline);
  void enqueue_messages(std::vector<PeerMessage> messages, const OwnBlock& own, Stream& stream, Seconds deadline);
  void set_message_algorithm(std::optional<MessageAlgorithm> only) {
    if (messages_) messages_->set_algorithm(only);
  }
  ReceiveBuffers& buffers() noexcept { return buffers_; }
  // Of the smallest GPU of the part, for one of the ranks that share it: grids are equal at all its ranks.
  int multiprocessors() const noexcept { return multiprocessors_; }
  // The most blocks of a collective's kernel that all ranks of the part allow.
  unsigned max_ctas() const noexcept { return max_ctas_; }
  // Whether a failure is to keep the context of any rank's GPU: no kernel stops what is enqueued behind it.
  bool keeps_context() const noexcept { return keeps_context_; }
  // The most ranks that share a GPU of the part.
  int ranks_on_a_gpu() const noexcept { return ranks_on_a_gpu_; }
  // Collective over a whole group: memory for larger operations. Returns the reason of a rank that has none left: then
  // all ranks continue with their present memory.
  std::string enlarge(RankExchange& exchange, const FusedOptions& options);
  // The same for memory of any use: `begin` prepares this rank's, `use` gets that of all ranks.
  std::string share_apart(RankExchange& exchange, Bytes bytes, const std::function<void(Region own)>& begin,
                          const std::function<void(std::vector<Region> all)>& use);
  // A window of the group in GPU memory opens or closes.
  void expose(unsigned slot, const ExposedMemory::Window& window, bool gone);

  std::optional<Error> failure(const std::string& stopped) const;
  void stop() noexcept;

 private:
  int part_of(int rank) const;
  int place_of(int rank) const;
  const RankOffer& of(const std::vector<RankOffer>& offers, int place) const;
  RankOffer first_offer() const;
  void set_up(RankExchange& exchange);
  bool shares_its_gpu(const std::vector<RankOffer>& offers);
  void take_memory(const std::vector<RankOffer>& offers, RankOffer& mine);
  void open(const std::vector<RankOffer>& offers, RankOffer& mine);
  void conclude(const std::vector<RankOffer>& offers);
  bool serves_collectives(const std::vector<RankOffer>& offers, const std::vector<int>& part) const;
  std::string ll128_reason(std::string_view peer) const;
  std::string general_reason() const;

  Session& session_;
  Platform& platform_;
  const Place gpu_;
  Stream& stream_;
  const int group_rank_, group_size_;
  std::vector<int> in_job_;  // the ranks of this part, as ranks of the job
  std::vector<int> machine_of_;
  std::vector<std::vector<int>> all_;
  int index_ = 0, rank_ = 0;
  const MessageAlgorithms planned_;
  ReceiveBuffers buffers_;  // for the two below
  std::unique_ptr<FusedCollective> fused_;
  std::unique_ptr<StreamMessages> messages_;
  std::vector<bool> peers_;  // in this part, served by kernels
  bool has_collectives_ = false, serves_all_parts_ = false;
  int multiprocessors_ = 0, ranks_on_a_gpu_ = 1;
  unsigned max_ctas_ = 0;
  bool keeps_context_ = false;
  std::string why_not_whole_, why_no_ll128_, why_no_pairs_;
  std::string why_for_all_;  // a reason that is equal at all ranks of the part
};

}  // namespace waywiser
