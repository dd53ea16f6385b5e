// What a client that knows the key may send to its worker: frames, one after the other.
#include <algorithm>

#include "tests/fuzz/frame_count.hpp"
#include "tests/fuzz/targets.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser::fuzz {
namespace {

constexpr waywiser::Bytes client_memory = 1 << 12;

// A client that gives the bytes it has announced, up to a limit, and looks at what comes back.
class HostileClient final : public WorkerChannel {
 public:
  void receive(Region into) override {
    given_ += into.bytes;
    if (given_ > most_given) throw Error(ErrorKind::invalid_input, "the client has gone");
  }
  void receive_text(Region into) override { receive(into); }
  void send_text(ConstRegion data) override { send(data); }
  void open_plain(const std::string&, const std::function<void(const std::string& address)>& announce) override {
    announce("10.0.0.5:4712");
  }
  // A file that has the secret which a fuzzer finds: 64 times "0".
  Descriptor open_file_of_client(std::uint64_t number) override {
    if (number % 2 != 0) throw Error(ErrorKind::unavailable, "none");
    static const Descriptor file = [] {
      Descriptor made = create_shared_file(pinned_file_bytes(client_memory), "a file");
      const Mapping mapping = Mapping::of_file(made, pinned_file_bytes(client_memory), true, "a file");
      std::fill_n(mapping.data(), mapping.length(), std::byte{'0'});
      return made;
    }();
    return file.duplicate();
  }
  void send(ConstRegion data) override {
    promise(expected_ >= data.bytes, "more bytes than the reply says");
    expected_ -= data.bytes;
  }
  void reply(const ReplyFrame& frame) override {
    promise(expected_ == 0, "fewer bytes than the last reply says");
    const RemoteReply read = read_reply(frame);
    promise(read.used <= client_memory, "more memory than the limit");
    promise(!read.failure || !read.head, "a failure and an array");
    expected_ = read.head && !read.placed ? read.head->bytes() : read.details;
  }

 private:
  static constexpr waywiser::Bytes most_given = 1 << 24;
  waywiser::Bytes given_ = 0, expected_ = 0;
};

}  // namespace

void worker_requests(Bytes input) {
  static FrameCount count;
  static const std::shared_ptr<Platform> platform = [] {
    VirtualMachine machine;
    machine.gpus = 1;
    machine.memory = 1 << 24;
    machine.reorder_seed = 1;  // no threads, and the streams' work in any order
    return open_virtual_platform(machine);
  }();
  HostileClient client;
  RemoteWorker worker(client, {platform, gpu(0), client_memory, {}, patience});
  Choices choices(input);
  reads_or_refuses([&] {
    while (!choices.over()) {
      ++count.frames;
      const std::size_t low = choices.number();
      if (!worker.serve(choices.bytes(low + 256 * (choices.number() % 4)))) return;
      promise(worker.used() <= client_memory, "more memory than the limit");
    }
  });
}

}  // namespace waywiser::fuzz
