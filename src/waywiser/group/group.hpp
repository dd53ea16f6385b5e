#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/comm/elements.hpp"
#include "waywiser/group/future.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/window.hpp"

namespace waywiser {

class GroupCore;
class Platform;
struct Envelope;
struct JoinOptions;
struct WantedCollective;

// The first array on a GPU opens CUDA; all other options come from the environment.
[[gnu::visibility("default")]] const JoinOptions& usual_options();

// Ranks that exchange arrays. Every call waits at most timeout() and an error names what it waited for; once one rank
// has failed, all calls of all ranks throw. Arrays may be empty and at any address; input and output may be the same
// array. All ranks must call the collectives in the same order.
//
// Threads: one thread at a time may be in a call of a rank, which is one Group::join(), with all groups split from it
// and all that is made of them. A call that meets one of another thread throws invalid_input, and the other call goes
// on. With JoinOptions::threads different groups may be used by different threads at once; two threads in one group
// still throw. Each thread may also join by itself. Destructors wait until the other thread's call is over, or polls.
// A group that was moved from can be assigned to and destroyed; its calls throw invalid_input.
class [[gnu::visibility("default")]] Group {
 public:
  // The group of all ranks that the launcher has started. Throws invalid_input, timeout, io, unavailable (no UCX).
  static Group join(const JoinOptions& options = usual_options());

  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;
  ~Group();

  int rank() const;
  int size() const;
  Seconds timeout() const;
  void set_timeout(Seconds timeout);
  // Throws unavailable if this rank has joined without a platform.
  const std::shared_ptr<Platform>& platform() const;

  // Waits until all enqueued GPU operations have ended and all ranks have closed. No call is possible afterwards.
  // Throws the error of a failed GPU operation, if no call has thrown it yet. If a rank has not closed, the destructor
  // of its last Group waits 0.25 s; the rest of the wait is left to the end of the process, whose exit code may be an
  // error, or to the next join().
  void close();
  // Ends this group and all others of the job at once: all calls of all ranks throw with `why`, those under way too,
  // and kernels that wait stop. Waits for nobody; any thread may call it, while another one is in a call.
  void abort(const std::string& why) noexcept;
  // Why the group has failed; empty if it has not. Asks, and does not wait: a failed operation on a GPU is known after
  // 20 ms, whether or not a call has thrown it. For any thread.
  std::string failure() const;
  // Ranks with the same color form a group, ordered by key, then rank. A color below 0 gives no group.
  std::optional<Group> split(int color, int key = 0);

  // Messages between two ranks arrive in order; `tag` (0 to 32767) tells them apart. Sizes and types must agree. On a
  // stream, messages have no tag, never match messages without a stream, and arrive in the order of their calls. While
  // 2,048 messages out of this rank's GPUs are under way, the next one above 8 KiB waits for one of them.
  Future send(ConstElements data, int to, int tag = 0, Mode mode = Mode::wait);
  // `from` may be any_source and `tag` any_tag, except on a stream. Messages match receives in call order. With
  // `status`, which must live as long as `data`, the message may be shorter than `data` (unless it comes out of a GPU),
  // and once the call is complete the status says what has come.
  Future recv(Elements data, int from, int tag = 0, Mode mode = Mode::wait, MessageStatus* status = nullptr);
  // The first message that has come and that no receive takes. Without `patience` it waits for one as every call; else
  // at most so many seconds, and nothing is returned if none has come. Throws unavailable for a message out of a GPU or
  // by several network cards, whose length only a receive learns.
  std::optional<MessageStatus> probe(int from = any_source, int tag = any_tag, std::optional<Seconds> patience = {});
  // `from` may be any_source. `data` and `into` may be the same array but must not overlap otherwise; on a stream they
  // must not overlap at all.
  Future sendrecv(ConstElements data, int to, Elements into, int from, int tag = 0, Mode mode = Mode::wait);
  // Arrays that are received into must not overlap any other array.
  Future neighbor_exchange(std::span<const Exchange> neighbors, Mode mode = Mode::wait);

  // Collectives. A group's first call on GPUs, be it a message on a stream or prepare(), sets up what all others use:
  // all ranks make one, and wait for each other there. The operations of one group run one after another: two graphs of
  // them must not run at once. If no kernel serves a call, the hosts carry it out while the stream waits; in a stream
  // that is being captured it throws unavailable, as does the first call.
  Future barrier(Mode mode = Mode::wait);
  Future broadcast(Elements data, int root, Mode mode = Mode::wait);
  // Only the root's output is filled; the other ranks' outputs may be empty.
  Future reduce(ConstElements input, Elements output, ReduceOp op, int root, Mode mode = Mode::wait);
  Future all_reduce(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum, Mode mode = Mode::wait);
  Future reduce_scatter(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum, Mode mode = Mode::wait);
  Future all_gather(ConstElements input, Elements output, Mode mode = Mode::wait);
  Future all_to_all(ConstElements input, Elements output, Mode mode = Mode::wait);
  Future gather(ConstElements input, Elements output, int root, Mode mode = Mode::wait);
  Future scatter(ConstElements input, Elements output, int root, Mode mode = Mode::wait);
  // `counts` gives the number of elements of each rank.
  Future all_gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts,
                      Mode mode = Mode::wait);
  Future all_to_all_v(ConstElements input, std::span<const std::size_t> give, Elements output,
                      std::span<const std::size_t> take, Mode mode = Mode::wait);
  Future gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, int root,
                  Mode mode = Mode::wait);
  Future scatter_v(ConstElements input, std::span<const std::size_t> counts, Elements output, int root,
                   Mode mode = Mode::wait);
  // The calls above with Mode::begin.
  [[nodiscard]] Future send(ConstElements data, int to, int tag, BeginMode mode) {
    return send(data, to, tag, Mode(mode));
  }
  [[nodiscard]] Future recv(Elements data, int from, int tag, BeginMode mode, MessageStatus* status = nullptr) {
    return recv(data, from, tag, Mode(mode), status);
  }
  [[nodiscard]] Future sendrecv(ConstElements data, int to, Elements into, int from, int tag, BeginMode mode) {
    return sendrecv(data, to, into, from, tag, Mode(mode));
  }
  [[nodiscard]] Future neighbor_exchange(std::span<const Exchange> neighbors, BeginMode mode) {
    return neighbor_exchange(neighbors, Mode(mode));
  }
  [[nodiscard]] Future barrier(BeginMode mode) { return barrier(Mode(mode)); }
  [[nodiscard]] Future broadcast(Elements data, int root, BeginMode mode) { return broadcast(data, root, Mode(mode)); }
  [[nodiscard]] Future reduce(ConstElements input, Elements output, ReduceOp op, int root, BeginMode mode) {
    return reduce(input, output, op, root, Mode(mode));
  }
  [[nodiscard]] Future all_reduce(ConstElements input, Elements output, ReduceOp op, BeginMode mode) {
    return all_reduce(input, output, op, Mode(mode));
  }
  [[nodiscard]] Future reduce_scatter(ConstElements input, Elements output, ReduceOp op, BeginMode mode) {
    return reduce_scatter(input, output, op, Mode(mode));
  }
  [[nodiscard]] Future all_gather(ConstElements input, Elements output, BeginMode mode) {
    return all_gather(input, output, Mode(mode));
  }
  [[nodiscard]] Future all_to_all(ConstElements input, Elements output, BeginMode mode) {
    return all_to_all(input, output, Mode(mode));
  }
  [[nodiscard]] Future gather(ConstElements input, Elements output, int root, BeginMode mode) {
    return gather(input, output, root, Mode(mode));
  }
  [[nodiscard]] Future scatter(ConstElements input, Elements output, int root, BeginMode mode) {
    return scatter(input, output, root, Mode(mode));
  }
  [[nodiscard]] Future all_gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts,
                                    BeginMode mode) {
    return all_gather_v(input, output, counts, Mode(mode));
  }
  [[nodiscard]] Future all_to_all_v(ConstElements input, std::span<const std::size_t> give, Elements output,
                                    std::span<const std::size_t> take, BeginMode mode) {
    return all_to_all_v(input, give, output, take, Mode(mode));
  }
  [[nodiscard]] Future gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, int root,
                                BeginMode mode) {
    return gather_v(input, output, counts, root, Mode(mode));
  }
  [[nodiscard]] Future scatter_v(ConstElements input, std::span<const std::size_t> counts, Elements output, int root,
                                 BeginMode mode) {
    return scatter_v(input, counts, output, root, Mode(mode));
  }

  // Collective: sets up what operations of up to `largest` bytes a block need on this rank's GPU. Then the first of
  // them waits for no rank on the host and can be captured. Without prepare() the first operations do this.
  void prepare(Place gpu, Bytes largest);
  // Waits for the stream, and throws the error of any failed operation of this group, on any stream.
  void synchronize(Stream& stream);

  // For an exchange that repeats, at less cost. Collective: ranks without neighbours call it too. Prepared::of_parts
  // serves boxes and lists of elements, Prepared::of_collective a collective, Prepared::of_schedule any schedule.
  Prepared prepare_exchange(std::span<const Exchange> neighbors);

  // One-sided access to memory that all ranks have exposed: all in host memory, or all on GPUs. For GPU memory all
  // ranks must be on one machine, bytes take the plan's path, and every call is complete when it returns. If the memory
  // of all ranks begins at a multiple of 16 bytes, an all_reduce or reduce that uses two_shot stores its sums directly
  // into outputs that lie in the window. Throws unavailable at all ranks if GPU memory cannot be shared.
  // `symmetric`, for GPU memory: the program promises that the arrays of a collective lie at equal offsets of one
  // window at all ranks, or in no symmetric window at any rank. Long collectives between such arrays stage nothing and
  // copy by the copy engines. All ranks give it, and equally many bytes. Where a call breaks the promise, it fails.
  Window expose(Region memory, bool symmetric = false);
  // Returns when all puts and signals of this rank, in all windows, have arrived.
  void flush();

  // Why collectives of GPU arrays go through host memory; empty if they do not, and before the first one.
  std::string why_staged() const;
  // The same for the last message of GPU memory from or to `rank`.
  std::string why_staged(int rank) const;
  // What encrypts messages to a rank of another machine: "openssl" or "kernel" (before the first message, what was
  // asked for); empty: nothing does.
  std::string encrypted_by(int rank) const;
  // For measuring: sets, at all ranks, the algorithm of what is called or prepared later. For host arrays: an algorithm
  // of docs/algorithms.md; for GPU collectives: "LL", "LL128", "one_shot", "two_shot_LL128", "two_shot", "nccl" or
  // "host"; for messages on streams: "LL", "LL128" or "bulk(blocks=16)"; for messages of what is prepared: "LL", "bulk"
  // or "direct(piece=64K)"; empty: the group chooses. A call that the algorithm does not serve throws.
  void set_algorithm(std::string_view name);

 private:
  struct State;
  Future recv_any(Elements data, Envelope wanted, Mode mode, MessageStatus* status);
  explicit Group(std::shared_ptr<State> state);
  friend class Prepared;
  friend bool authenticated(const Group& group);
  friend const std::shared_ptr<GroupCore>& core_of(const Group& group);
  friend void leave_to_end(Group& group) noexcept;
  friend Future run(Group& group, const WantedCollective& wanted, Mode mode);

  struct StatePointer : std::shared_ptr<State> {
    StatePointer(std::shared_ptr<State> state) noexcept : std::shared_ptr<State>(std::move(state)) {}
    State* operator->() const;  // throws if the group was moved from
  };
  StatePointer state_;  // shared with prepared operations
};

// Whether only ranks of the group can have sent what arrives: all are on one machine, or the job encrypts.
[[gnu::visibility("default")]] bool authenticated(const Group& group);

// A view of a stream of this program, for Mode::on; nullptr: CUDA's default stream. The stream must outlive the view.
// Throws unavailable without CUDA.
[[gnu::visibility("default")]] std::shared_ptr<Stream> borrow_stream(const Group& group, Place gpu, void* cuda_stream);

}  // namespace waywiser
