#pragma once

#include <optional>
#include <span>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/future.hpp"
#include "waywiser/comm/members.hpp"
#include "waywiser/comm/memory_window.hpp"
#include "waywiser/comm/schedule_cache.hpp"
#include "waywiser/comm/session.hpp"
#include "waywiser/device/memory.hpp"

namespace waywiser {

class Execution;
class ExposedMemory;
class GpuCollectives;
struct CollectiveAlgorithm;
class Staging;
class Stream;
struct CollectiveCall;

// What one rank gives to another in a neighbor_exchange, and what it takes from it. Where two ranks are neighbours in
// several ways, what is given with a tag (0 to 32766) is taken with the same.
struct Exchange {
  int rank = 0;
  ConstElements give;
  Elements take;
  int give_tag = 0, take_tag = 0;
};

// Ranks that talk to each other. All calls wait at most timeout() and name what they wait for; once one rank has
// failed, all calls of all ranks throw. Arrays may be empty and at any address; input and output may be the same array.
// The collectives must be called by all ranks in the same order. A rank is used by one thread at a time.
class Group {
 public:
  // The group of all ranks that the launcher has started. Throws invalid_input, timeout, io, unavailable (no UCX).
  static Group join(const JoinOptions& options = {});

  Group(Group&& other) noexcept = default;
  Group& operator=(Group&& other) noexcept = default;
  ~Group();

  int rank() const noexcept { return members_->rank; }
  int size() const noexcept { return members_->size(); }
  Seconds timeout() const noexcept { return session_->timeout(); }
  // Throws unavailable when this rank has joined without one.
  const std::shared_ptr<Platform>& platform() const { return session_->shared_platform(); }
  void set_timeout(Seconds timeout) { session_->set_timeout(timeout); }

  // Waits until what was enqueued on GPUs has ended and all ranks have closed. No call is possible afterwards. Throws
  // what an operation on a GPU has failed with, if no call has yet. The end of the last Group of a rank that has not
  // closed waits for 0.25 s; the rest is left to the end of the process, whose exit code may be an error, or to the
  // next join().
  void close() { session_->close(); }
  void close_quietly() noexcept { session_->close_quietly(); }
  // See Session::part; for process_end.hpp.
  bool part(Deadline patience) noexcept { return session_->part(patience); }
  // This rank cannot go on: the calls of all others throw with `why`.
  void abort(const std::string& why) noexcept { session_->abort(why); }

  // Messages between two ranks arrive in order; `tag` (0 to 32767) tells them apart. Sizes and types must agree.
  void send(ConstElements data, int to, int tag = 0);
  void recv(Elements data, int from, int tag = 0);
  // `data` and `into` may be the same array, but must not overlap otherwise.
  void sendrecv(ConstElements data, int to, Elements into, int from, int tag = 0);
  // With 2,048 messages out of this rank's GPUs under way another one above 8 KiB waits until one has been taken.
  Future start_send(ConstElements data, int to, int tag = 0);
  Future start_recv(Elements data, int from, int tag = 0);

  // One-sided access to memory that all ranks have exposed. put returns when `data` may be used again; signal writes
  // its value after all earlier puts of this rank to that rank have arrived; wait reads this rank's own memory.
  MemoryWindow expose(Region memory);
  // Of a GPU: the ranks must be on one machine, bytes take the plan's path, and every call is complete when it returns.
  // An all_reduce or reduce stores its sums straight into outputs that lie there, if it takes two_shot.
  MemoryWindow expose(const Memory& memory);
  void put(ConstRegion data, const MemoryWindow& window, int to, Bytes offset);
  void get(Region data, const MemoryWindow& window, int from, Bytes offset);
  void signal(const MemoryWindow& window, int to, Bytes offset, std::uint64_t value);
  void wait(const MemoryWindow& window, Bytes offset, std::uint64_t at_least);
  void flush();  // all puts and signals of this rank have arrived

  void barrier() { barrier_on(nullptr); }
  void broadcast(Elements data, int root) { broadcast_on(nullptr, data, root); }
  // Only the root's output is filled; those of the others may be empty.
  void reduce(ConstElements input, Elements output, ReduceOp op, int root) {
    reduce_on(nullptr, input, output, op, root);
  }
  void all_reduce(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum) {
    all_reduce_on(nullptr, input, output, op);
  }
  void all_gather(ConstElements input, Elements output) { all_gather_on(nullptr, input, output); }
  void all_gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts) {
    all_gather_v_on(nullptr, input, output, counts);
  }
  void reduce_scatter(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum) {
    reduce_scatter_on(nullptr, input, output, op);
  }
  void all_to_all(ConstElements input, Elements output) { all_to_all_on(nullptr, input, output); }
  void all_to_all_v(ConstElements input, std::span<const std::size_t> give, Elements output,
                    std::span<const std::size_t> take) {
    all_to_all_v_on(nullptr, input, give, output, take);
  }
  void gather(ConstElements input, Elements output, int root) { gather_on(nullptr, input, output, root); }
  void gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, int root) {
    gather_v_on(nullptr, input, output, counts, root);
  }
  void scatter(ConstElements input, Elements output, int root) { scatter_on(nullptr, input, output, root); }
  void scatter_v(ConstElements input, std::span<const std::size_t> counts, Elements output, int root) {
    scatter_v_on(nullptr, input, counts, output, root);
  }
  // What is taken must not overlap anything else.
  void neighbor_exchange(std::span<const Exchange> neighbors);

  // The same, begun: complete when the future is. The arrays must not overlap unless they are the same; those of GPUs
  // go through host memory, since no rank may wait for another in here.
  Future start_barrier() {
    return begin([&] { barrier(); });
  }
  Future start_broadcast(Elements data, int root) {
    return begin([&] { broadcast(data, root); });
  }
  Future start_reduce(ConstElements input, Elements output, ReduceOp op, int root) {
    return begin([&] { reduce(input, output, op, root); });
  }
  Future start_all_reduce(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum) {
    return begin([&] { all_reduce(input, output, op); });
  }
  Future start_all_gather(ConstElements input, Elements output) {
    return begin([&] { all_gather(input, output); });
  }
  Future start_reduce_scatter(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum) {
    return begin([&] { reduce_scatter(input, output, op); });
  }
  Future start_all_to_all(ConstElements input, Elements output) {
    return begin([&] { all_to_all(input, output); });
  }
  Future start_gather(ConstElements input, Elements output, int root) {
    return begin([&] { gather(input, output, root); });
  }
  Future start_scatter(ConstElements input, Elements output, int root) {
    return begin([&] { scatter(input, output, root); });
  }

  // On a stream of the GPU that has the arrays: enqueued behind what is in it, complete when the stream is through.
  // The first collective sets up what the others and messages use. Messages on streams are apart from all others and
  // arrive in the order of their calls. The operations of one group run one after another: two graphs of them must not
  // run at once. Where no kernel serves a call, it waits for the stream and is complete on return; in a stream that is
  // being captured it throws unavailable, as the first one does.
  void barrier(Stream& stream) { barrier_on(&stream); }
  void broadcast(Elements data, int root, Stream& stream) { broadcast_on(&stream, data, root); }
  void all_reduce(ConstElements input, Elements output, ReduceOp op, Stream& stream) {
    all_reduce_on(&stream, input, output, op);
  }
  void reduce(ConstElements input, Elements output, ReduceOp op, int root, Stream& stream) {
    reduce_on(&stream, input, output, op, root);
  }
  void all_gather(ConstElements input, Elements output, Stream& stream) { all_gather_on(&stream, input, output); }
  void reduce_scatter(ConstElements input, Elements output, ReduceOp op, Stream& stream) {
    reduce_scatter_on(&stream, input, output, op);
  }
  void all_to_all(ConstElements input, Elements output, Stream& stream) { all_to_all_on(&stream, input, output); }
  // These go as messages, each rank's block straight to where it belongs; all arrays are on GPUs, at all ranks.
  void all_gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, Stream& stream) {
    all_gather_v_on(&stream, input, output, counts);
  }
  void all_to_all_v(ConstElements input, std::span<const std::size_t> give, Elements output,
                    std::span<const std::size_t> take, Stream& stream) {
    all_to_all_v_on(&stream, input, give, output, take);
  }
  void gather(ConstElements input, Elements output, int root, Stream& stream) {
    gather_on(&stream, input, output, root);
  }
  void gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, int root, Stream& stream) {
    gather_v_on(&stream, input, output, counts, root);
  }
  void scatter(ConstElements input, Elements output, int root, Stream& stream) {
    scatter_on(&stream, input, output, root);
  }
  void scatter_v(ConstElements input, std::span<const std::size_t> counts, Elements output, int root, Stream& stream) {
    scatter_v_on(&stream, input, counts, output, root);
  }
  void send(ConstElements data, int to, Stream& stream);
  void recv(Elements data, int from, Stream& stream);
  void sendrecv(ConstElements data, int to, Elements into, int from, Stream& stream);
  void neighbor_exchange(std::span<const Exchange> neighbors, Stream& stream);
  // Waits for the stream, and throws what an operation of this group has failed with on any stream.
  void synchronize(Stream& stream);
  // Why the collectives of GPU arrays go through host memory; empty while they do not, and before the first one.
  std::string why_staged() const;
  // The same for the last message of GPU memory from or to a rank.
  std::string why_staged(int rank) const;

  // What encrypts the messages to a rank of another machine: "openssl" or "kernel"; empty: nothing does, or none has
  // been sent yet.
  std::string encrypted_by(int rank) const;

  // Runs a schedule that the caller has made: every rank its own.
  void execute(std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output,
               ReduceOp op = ReduceOp::sum);
  // For measuring: what carries the collectives out from now on, at all ranks: an algorithm of docs/algorithms.md for
  // host arrays; "packets", "lines", "one_shot", "two_shot_lines", "two_shot", "nccl" or "host" for those on GPUs;
  // empty: the choice. Calls that it does not serve throw.
  void set_way(std::string_view way);
  // The ranks with the same color form a group, in the order of key and rank. Nothing for a color below 0.
  std::optional<Group> split(int color, int key = 0);

 private:
  Group(std::shared_ptr<Session> session, Members members);

  Call next_call(CallKind kind, ConstElements data, int peer, ReduceOp op = ReduceOp::sum, int root = -1);
  void send_labelled(ConstElements data, int to, int label);
  void recv_labelled(Elements data, int from, int label);
  bool send_at_once(const Call& call, ConstElements data, int label);
  std::optional<unsigned> announcement_number_for(const Call& call, ConstElements data);
  std::optional<ucp_tag_recv_info_t> receive_at_once(const Call& call, Elements data, int label);
  void check_sendrecv(ConstElements data, int to, Elements into, int from) const;
  void sendrecv_labelled(ConstElements data, int to, Elements into, int from, int label);
  Future start_send_labelled(ConstElements data, int to, int label);
  Future start_recv_labelled(Elements data, int from, int label);
  // Makes a collective start() where it would run().
  template <typename Collective>
  Future begin(Collective collective) {
    Future future;
    const struct Beginning {
      Future*& begins;
      ~Beginning() { begins = nullptr; }
    } beginning{begins_};
    begins_ = &future;
    collective();
    return future;
  }
  Future begun(std::shared_ptr<Activity> operation, std::unique_ptr<Staging> staging);
  void finish(void* request, const Call& call, std::uint32_t peer);
  void check_peer(int rank, const char* what) const;
  const CollectiveAlgorithm& algorithm_for(const CollectiveCall& complete, DataType type) const;
  std::shared_ptr<const Schedule> schedule_for(const CollectiveCall& call, DataType type);
  // With a stream or, for calls that are complete when they return, without.
  void barrier_on(Stream* stream);
  void broadcast_on(Stream* stream, Elements data, int root);
  void all_reduce_on(Stream* stream, ConstElements input, Elements output, ReduceOp op);
  void reduce_on(Stream* stream, ConstElements input, Elements output, ReduceOp op, int root);
  void all_gather_on(Stream* stream, ConstElements input, Elements output);
  void reduce_scatter_on(Stream* stream, ConstElements input, Elements output, ReduceOp op);
  void all_to_all_on(Stream* stream, ConstElements input, Elements output);
  void all_gather_v_on(Stream* stream, ConstElements input, Elements output, std::span<const std::size_t> counts);
  void all_to_all_v_on(Stream* stream, ConstElements input, std::span<const std::size_t> give, Elements output,
                       std::span<const std::size_t> take);
  void gather_on(Stream* stream, ConstElements input, Elements output, int root);
  void gather_v_on(Stream* stream, ConstElements input, Elements output, std::span<const std::size_t> counts, int root);
  void scatter_on(Stream* stream, ConstElements input, Elements output, int root);
  void scatter_v_on(Stream* stream, ConstElements input, std::span<const std::size_t> counts, Elements output,
                    int root);
  GpuCollectives& gpu_collectives(Place gpu, bool capturing);
  bool done_by_gpus(const Call& call, const CollectiveCall& wanted, ConstElements input, Elements output,
                    Stream* stream);
  // A block to and from each rank, as messages. False: no kernel can.
  bool exchanged_by_gpus(const Call& call, const std::vector<ConstRegion>& give, const std::vector<Region>& take,
                         Stream& stream);
  bool all_gathered_by_gpus(const Call& call, ConstElements input, Elements output,
                            const std::vector<std::size_t>& counts, Stream& stream);
  bool shuffled_by_gpus(const Call& call, ConstElements input, const std::vector<std::size_t>& give, Elements output,
                        const std::vector<std::size_t>& take, Stream& stream);
  bool gathered_by_gpus(const Call& call, ConstElements input, Elements output, const std::vector<std::size_t>& counts,
                        Stream& stream);
  bool scattered_by_gpus(const Call& call, ConstElements input, const std::vector<std::size_t>& counts, Elements output,
                         Stream& stream);
  std::vector<std::size_t> even(std::size_t count) const {
    return std::vector<std::size_t>(static_cast<std::size_t>(size()), count);
  }
  void check_neighbors(std::span<const Exchange> neighbors) const;
  bool neighbors_by_gpus(const Call& call, std::span<const Exchange> neighbors, Stream& stream);
  bool message_by_gpus(const Call& call, ConstElements data, int to, Elements into, int from, Stream& stream);
  static void copy_on(Stream& stream, ConstElements data, Elements into);
  void finish_on(GpuCollectives& gpus, Stream& stream, const Call& call);
  void before_host_call(const Call& call, Stream* stream);
  void run(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output);
  void run_apart(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output);
  Future start(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output);

  std::shared_ptr<Session> session_;
  std::shared_ptr<const Members> members_;
  std::uint64_t messages_ = 0, collectives_ = 0;
  Future* begins_ = nullptr;  // of the call that only begins
  ScheduleCache schedules_;
  std::shared_ptr<Execution> execution_;  // of the collectives that wait
  std::shared_ptr<ExposedMemory> exposed_;
  std::shared_ptr<GpuCollectives> on_gpus_;
  std::string way_;  // empty: the choice
};

}  // namespace waywiser
