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

class Memory;
class Platform;
struct JoinOptions;

// The first array on a GPU opens CUDA; everything else as the environment says.
[[gnu::visibility("default")]] const JoinOptions& usual_options();

// Ranks that talk to each other. All calls wait at most timeout() and name what they wait for; once one rank has
// failed, all calls of all ranks throw. Arrays may be empty and at any address; input and output may be the same array.
// The collectives must be called by all ranks in the same order. A rank is used by one thread at a time.
class [[gnu::visibility("default")]] Group {
 public:
  // The group of all ranks that the launcher has started. Throws invalid_input, timeout, io, unavailable (no UCX).
  static Group join(const JoinOptions& options = usual_options());

  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;
  ~Group();

  int rank() const noexcept;
  int size() const noexcept;
  Seconds timeout() const noexcept;
  void set_timeout(Seconds timeout);
  // Throws unavailable when this rank has joined without one.
  const std::shared_ptr<Platform>& platform() const;

  // Waits until what was enqueued on GPUs has ended and all ranks have closed. No call is possible afterwards. Throws
  // what an operation on a GPU has failed with, if no call has yet. The end of the last Group of a rank that has not
  // closed waits for 0.25 s; the rest is left to the end of the process, whose exit code may be an error, or to the
  // next join().
  void close();
  // Nobody uses this group any more: closes as the end of the last Group does.
  void end() noexcept;
  // This rank cannot go on: the calls of all others throw with `why`.
  void abort(const std::string& why) noexcept;
  // The ranks with the same color form a group, in the order of key and rank. Nothing for a color below 0.
  std::optional<Group> split(int color, int key = 0);

  // Messages between two ranks arrive in order; `tag` (0 to 32767) tells them apart. Sizes and types must agree.
  // On streams they have no tag, are apart from all others and arrive in the order of their calls; a collective on
  // GPUs comes first. With 2,048 messages out of this rank's GPUs begun another one above 8 KiB waits for one of them.
  Future send(ConstElements data, int to, int tag = 0, Mode mode = Mode::wait);
  Future recv(Elements data, int from, int tag = 0, Mode mode = Mode::wait);
  // `data` and `into` may be the same array, but must not overlap otherwise; on a stream they must not at all.
  Future sendrecv(ConstElements data, int to, Elements into, int from, int tag = 0, Mode mode = Mode::wait);
  // What is taken must not overlap anything else.
  Future neighbor_exchange(std::span<const Exchange> neighbors, Mode mode = Mode::wait);

  // Collectives. On a stream, the first one sets up what the others and messages use. The operations of one group run
  // one after another: two graphs of them must not run at once. Where no kernel serves a call, it waits for the stream
  // and is complete on return; in a stream that is being captured it throws unavailable, as the first one does.
  Future barrier(Mode mode = Mode::wait);
  Future broadcast(Elements data, int root, Mode mode = Mode::wait);
  // Only the root's output is filled; those of the others may be empty.
  Future reduce(ConstElements input, Elements output, ReduceOp op, int root, Mode mode = Mode::wait);
  Future all_reduce(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum, Mode mode = Mode::wait);
  Future reduce_scatter(ConstElements input, Elements output, ReduceOp op = ReduceOp::sum, Mode mode = Mode::wait);
  Future all_gather(ConstElements input, Elements output, Mode mode = Mode::wait);
  Future all_to_all(ConstElements input, Elements output, Mode mode = Mode::wait);
  Future gather(ConstElements input, Elements output, int root, Mode mode = Mode::wait);
  Future scatter(ConstElements input, Elements output, int root, Mode mode = Mode::wait);
  // With as many elements of each rank as it says.
  Future all_gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts,
                      Mode mode = Mode::wait);
  Future all_to_all_v(ConstElements input, std::span<const std::size_t> give, Elements output,
                      std::span<const std::size_t> take, Mode mode = Mode::wait);
  Future gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, int root,
                  Mode mode = Mode::wait);
  Future scatter_v(ConstElements input, std::span<const std::size_t> counts, Elements output, int root,
                   Mode mode = Mode::wait);
  // Sets up what operations of up to `largest` bytes a block need on this rank's GPU, by all ranks together: then the
  // first of them waits for no rank on the host, and can be captured. Without it that is done at the first ones.
  void prepare(Place gpu, Bytes largest);
  // Waits for the stream, and throws what an operation of this group has failed with on any stream.
  void synchronize(Stream& stream);

  // The same exchange again and again, at less cost: by all ranks together, also those without neighbours.
  // Prepared::of_parts does that with boxes and lists of elements, Prepared::of_schedule with any schedule.
  Prepared prepare_exchange(std::span<const Exchange> neighbors);

  // One-sided access to memory that all ranks have exposed.
  Window expose(Region memory);
  // Of a GPU: the ranks must be on one machine, bytes take the plan's path, and every call is complete when it returns.
  // An all_reduce or reduce stores its sums straight into outputs that lie there, if it takes two_shot.
  Window expose(const Memory& memory);
  // All puts and signals of this rank, in all windows, have arrived.
  void flush();

  // Why the collectives of GPU arrays go through host memory; empty while they do not, and before the first one.
  std::string why_staged() const;
  // The same for the last message of GPU memory from or to a rank.
  std::string why_staged(int rank) const;
  // What encrypts the messages to a rank of another machine: "openssl" or "kernel"; empty: nothing does, or none has
  // been sent yet.
  std::string encrypted_by(int rank) const;
  // For measuring: what carries collectives and messages out from now on, at all ranks: an algorithm of
  // docs/algorithms.md for host arrays; "LL", "LL128", "one_shot", "two_shot_LL128", "two_shot", "nccl" or "host" for
  // those on GPUs, "LL", "LL128" or "bulk(blocks=16)" for messages on their streams; empty: the choice. Calls that it
  // does not serve throw.
  void set_algorithm(std::string_view name);

 private:
  struct State;
  explicit Group(std::shared_ptr<State> state);
  friend class Prepared;

  std::shared_ptr<State> state_;  // what is prepared has it, too
};

// A view of a stream of this program, for Mode::on; null: CUDA's default stream. The stream must outlive the view.
// Throws unavailable without CUDA.
[[gnu::visibility("default")]] std::shared_ptr<Stream> borrow_stream(const Group& group, Place gpu, void* cuda_stream);

}  // namespace waywiser
