#include "waywiser/bench/exercise.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {

Exercise::Exercise(const Bench& bench, const BenchRequest& request) : group_(bench.group), request_(request) {
  if (request.mode == CallMode::blocking || request.mode == CallMode::kernel) return;
  if (request.input == "host" || request.output == "host")
    throw Error(ErrorKind::unavailable, "calls are enqueued only if both arrays are in GPU memory");
  stream_ = bench.platform.open_stream(bench.place("gpu"));
  group_.barrier(Mode::on(*stream_));  // the first collective sets up what messages use
  group_.synchronize(*stream_);
  if (request.mode == CallMode::graph) check_graphs();
}

// At all ranks alike, also at those that take no part.
void Exercise::check_graphs() const {
  if (const std::string why = group_.why_staged(); !why.empty())
    throw Error(ErrorKind::unavailable, "a graph cannot capture a call that goes through the host: " + why);
  stream_->capture([] {});
}

void Exercise::run(int calls) {
  if (!taking_part()) return;
  if (request_.mode == CallMode::graph) {
    const int each = std::min(calls, most_calls_in_graph);
    if (captured_ != each) capture(each);
    for (int done = 0; done < calls; done += each) graph_->launch(*stream_);
  } else {
    for (int i = 0; i < calls; ++i) call();
  }
  if (stream_) group_.synchronize(*stream_);
}

void Exercise::capture(int calls) {
  call();  // what a first call sets up cannot be captured
  group_.synchronize(*stream_);
  graph_ = stream_->capture([&] {
    for (int i = 0; i < calls; ++i) call();
  });
  captured_ = calls;
}

void Exercise::refuse_streams() const {
  if (stream_)
    throw Error(ErrorKind::unavailable, request_.operation + " is the host's: it cannot be enqueued on a stream");
}

}  // namespace waywiser
