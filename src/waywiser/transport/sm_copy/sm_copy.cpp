#include "waywiser/transport/sm_copy/sm_copy.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/copy.hpp"
#include "waywiser/transport/peer_access.hpp"

namespace waywiser {
namespace {

bool is_push(const Path& path) {
  const std::string_view direction = path.parameter("direction");
  if (direction != "push" && direction != "pull")
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'direction' must be push or pull");
  return direction == "push";
}

unsigned blocks_of(const Path& path) { return static_cast<unsigned>(path.integer("blocks", 1, 65535)); }

unsigned threads_of(const Path& path) {
  return path.has("threads") ? static_cast<unsigned>(path.integer("threads", 32, 1024)) : 512;
}

class SmCopy : public Transport {
 public:
  SmCopy(const Path& path, std::unique_ptr<LaunchCache> launches)
      : blocks_(blocks_of(path)), threads_(threads_of(path)), launches_(std::move(launches)) {}

  void put(Region destination, ConstRegion source, Stream& stream) override {
    launch_copy(stream, destination, source, blocks_, threads_, launches_.get());
  }

  void signal(Region flag, std::uint64_t value, Stream& stream) override { stream.write_value(flag, value); }

 private:
  unsigned blocks_;
  unsigned threads_;
  std::unique_ptr<LaunchCache> launches_;
};

Place works_on(const Path& path) { return is_push(path) ? path.source : path.destination; }

Place other_end(const Path& path) { return is_push(path) ? path.destination : path.source; }

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  blocks_of(path);
  threads_of(path);
  const Place worker = works_on(path);
  if (!worker.is_gpu())
    return std::string("direction=") + (is_push(path) ? "push needs a GPU at the source"
                                                      : "pull needs a GPU at the "
                                                        "destination");
  if (auto why = why_no_access(context, worker, other_end(path))) return why;
  return why_not_shareable(path, context);
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  switch_on_access(context, works_on(path), other_end(path));
  return std::make_unique<SmCopy>(path, context.platform.create_launch_cache(works_on(path)));
}

PathSteps steps(const Path& path, Bytes) {
  const Place worker = works_on(path);
  return {enqueue(worker, "a kernel with blocks=" + std::to_string(blocks_of(path))),
          {"multiprocessors of " + text(worker), is_push(path) ? "store" : "load", StepEnd{path.source},
           StepEnd{path.destination}}};
}

}  // namespace

Mechanism sm_copy_mechanism() {
  return {"sm_copy", "A kernel moves the bytes: push by stores or pull by loads.", why_not, works_on, open, steps};
}

}  // namespace waywiser
