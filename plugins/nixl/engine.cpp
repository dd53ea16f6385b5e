#include "engine.hpp"

#include <cstddef>
#include <cstring>
#include <mutex>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

// Up to here a transfer is carried out in the call that posts it: to wake a thread takes longer than to copy a little.
constexpr std::size_t most_bytes_in_call = std::size_t{1} << 20;
// A transfer that takes so many times what the plan says is told of.
constexpr double too_slow = 2;

struct MemoryText {
  std::uint64_t magic = 0;
  MemoryNumber number;
  GpuExport shared;  // only of GPU memory
};

std::size_t text_bytes(MemoryKind kind) {
  return kind == MemoryKind::vram ? sizeof(MemoryText) : offsetof(MemoryText, shared);
}

class Handle : public RequestHandle {
 public:
  explicit Handle(std::shared_ptr<Request> made) : request(std::move(made)) {}
  const std::shared_ptr<Request> request;
  std::atomic<bool> compare = false;  // with the plan, at the end
};

std::string option(const EngineStart& start, const char* name) {
  const auto found = start.parameters->find(name);
  return found == start.parameters->end() ? "" : found->second;
}

std::string mebibytes(std::size_t bytes) { return std::to_string(static_cast<double>(bytes) / (1 << 20)) + " MiB"; }

}  // namespace

Engine::Engine(const EngineStart& start)
    : EngineBase(start),
      address_(new_address()),
      plan_(option(start, "plan")),
      table_(std::make_shared<OwnMemoryTable>()),
      post_office_(address_.socket, table_),
      self_(std::make_shared<Peer>(table_, [this](const std::string& text) { post_office_.keep(agent_, text); })),
      workers_(plan_.threads()) {
  if (agent_.size() > longest_name) throw Refusal(Status::invalid, "the name of an agent is too long");
}

std::vector<MemoryKind> Engine::served_memories() {
  if (GpuDriver::find() == nullptr) return {MemoryKind::dram};
  return {MemoryKind::dram, MemoryKind::vram};
}

Status Engine::add_memory(const NamedRange& memory, const MemoryKind& kind, Metadata*& made) {
  return told([&] {
    const GpuDriver* gpu = GpuDriver::find();
    const bool on_gpu = kind == MemoryKind::vram && gpu != nullptr;
    if (kind != MemoryKind::dram && !on_gpu)
      throw Refusal(Status::not_supported, "only memory of hosts (DRAM) and of CUDA's GPUs (VRAM) is served");
    const GpuExport shared = on_gpu ? gpu->share(memory.address, memory.bytes) : GpuExport{};
    const MemoryNumber number = table_->add({memory.address, memory.bytes, shared.offset}, !on_gpu);
    made = std::make_unique<OwnMemory>(number, kind, shared).release();
    return Status::success;
  });
}

Status Engine::remove_memory(Metadata* memory) {
  return told([&] {
    const std::unique_ptr<Metadata> ended(memory);
    const auto* own = dynamic_cast<const OwnMemory*>(memory);
    if (own == nullptr) return Status::invalid;
    if (!table_->remove(own->number)) say("a process that has died, or hangs, held a memory that was deregistered");
    return Status::success;
  });
}

Status Engine::forget(Metadata* memory) {
  delete memory;
  return Status::success;
}

Status Engine::connect(const std::string& agent) {
  return told([&] { return find(agent) != nullptr ? Status::success : Status::not_found; });
}

Status Engine::disconnect(const std::string& agent) {
  return told([&] {
    const std::lock_guard lock(mutex_);
    return peers_.erase(agent) != 0 ? Status::success : Status::not_found;
  });
}

std::shared_ptr<Peer> Engine::find(const std::string& agent) const {
  if (agent == agent_) return self_;
  const std::shared_lock lock(mutex_);
  const auto found = peers_.find(agent);
  return found == peers_.end() ? nullptr : found->second;
}

Status Engine::prepare(const Operation& operation, const KnownRanges& local, const KnownRanges& remote,
                       const std::string&, RequestHandle*& made, const PostOptions*) const {
  return told([&] {
    made = std::make_unique<Handle>(std::make_shared<Request>(operation, local, remote, table_)).release();
    return Status::success;
  });
}

// The lists are those of the preparation, and nothing is taken from them: their memories may have been removed.
Status Engine::post(const Operation&, const KnownRanges&, const KnownRanges&, const std::string&,
                    RequestHandle*& request, const PostOptions* options) const {
  return told([&] {
    auto* handle = dynamic_cast<Handle*>(request);
    if (handle == nullptr) return Status::invalid;
    const bool notifies = options != nullptr && options->notifies;
    const std::shared_ptr<Request>& run = handle->request;
    if (!run->begin(notifies, notifies ? options->message : "")) return Status::not_allowed;
    if (run->bytes() > most_bytes_in_call) {
      handle->compare = true;
      workers_.give(run);
      return Status::in_progress;
    }
    while (run->copy_one_part()) {
    }
    return run->status();
  });
}

// Who asks has nothing better to do than to take a part too.
Status Engine::check(RequestHandle* request) const {
  return told([&] {
    auto* handle = dynamic_cast<Handle*>(request);
    if (handle == nullptr) return Status::invalid;
    if (handle->request->status() == Status::in_progress) handle->request->copy_one_part();
    const Status status = handle->request->status();
    if (status == Status::success && handle->compare.exchange(false)) compare_with_plan(*handle->request);
    return status;
  });
}

Status Engine::release(RequestHandle* request) const {
  return told([&] {
    auto* handle = dynamic_cast<Handle*>(request);
    if (handle == nullptr) return Status::invalid;
    handle->request->cancel();
    delete handle;
    return Status::success;
  });
}

Status Engine::told_of_memory(const Metadata* memory, std::string& text) const {
  return told([&] {
    const auto* own = dynamic_cast<const OwnMemory*>(memory);
    if (own == nullptr) return Status::invalid;
    const MemoryText about{magic, own->number, own->shared};
    text.assign(reinterpret_cast<const char*>(&about), text_bytes(own->kind));
    return Status::success;
  });
}

Status Engine::told_of_agent(std::string& text) const {
  return told([&] {
    text = address_.text();
    return Status::success;
  });
}

// With "not supported" NIXL goes on to its other back ends.
Status Engine::learn_agent(const std::string& agent, const std::string& text) {
  return told([&] {
    const AgentAddress address = address_from(text);
    disconnect(agent);
    std::shared_ptr<Peer> peer;
    try {
      peer = std::make_shared<Peer>(agent_, address);
    } catch (const Refusal& refusal) {
      throw Refusal(refusal.status, "agent " + agent + " is left to NIXL's other back ends: " + refusal.what());
    }
    post_office_.watch(peer);
    const std::lock_guard lock(mutex_);
    peers_[agent] = std::move(peer);
    return Status::success;
  });
}

// Of memory that cannot be reached: an error would end the exchange of all metadata, with those of other back ends.
// NIXL keeps the range that it passes, and finds no transfer for this back end in one of no bytes.
Status Engine::learn_memory(const NamedRange& memory, const MemoryKind& kind, const std::string& agent,
                            Metadata*& made) {
  return told([&] {
    MemoryText about{};
    if (memory.metadata.size() == text_bytes(kind)) std::memcpy(&about, memory.metadata.data(), memory.metadata.size());
    if (about.magic != magic || about.number.slot >= MemoryTable::slots)
      throw Refusal(Status::mismatch, "what is said of a memory is not of this version of the plug-in");
    std::shared_ptr<Peer> peer = find(agent);
    std::uint64_t allocation = 0;
    try {
      if (peer && kind == MemoryKind::vram && !peer->is_here()) allocation = peer->open_gpu_memory(about.shared);
    } catch (const Refusal& refusal) {
      say("GPU memory of agent " + agent + " is left to NIXL's other back ends: " + refusal.what());
      peer = nullptr;
    }
    if (!peer) const_cast<NamedRange&>(memory).bytes = 0;
    made = std::make_unique<PeerMemory>(std::move(peer), about.number, allocation).release();
    return Status::success;
  });
}

Status Engine::learn_own_memory(Metadata* memory, Metadata*& made) {
  return told([&] {
    const auto* own = dynamic_cast<const OwnMemory*>(memory);
    if (own == nullptr) return Status::invalid;
    made = std::make_unique<PeerMemory>(self_, own->number, 0).release();
    return Status::success;
  });
}

Status Engine::take_notifications(Notifications& taken) {
  return told([&] {
    for (auto& each : post_office_.take()) taken.push_back(std::move(each));
    return Status::success;
  });
}

Status Engine::notify(const std::string& agent, const std::string& message) const {
  return told([&] {
    const std::shared_ptr<Peer> peer = find(agent);
    if (!peer) return Status::not_found;
    peer->notify(message);
    return Status::success;
  });
}

Status Engine::estimate(const Operation&, const KnownRanges&, const KnownRanges&, const std::string&,
                        RequestHandle* const& request, Microseconds& time, Microseconds& margin, CostMethod& method,
                        const void*) const {
  return told([&] {
    const auto* handle = dynamic_cast<const Handle*>(request);
    if (handle == nullptr) return Status::invalid;
    const Request& asked = *handle->request;
    const auto expected = expect(asked);
    if (!expected) return Status::not_supported;
    time = std::chrono::duration_cast<Microseconds>(std::chrono::duration<double>(expected->seconds));
    margin =
        std::chrono::duration_cast<Microseconds>(std::chrono::duration<double>(expected->seconds * (too_slow - 1)));
    method = CostMethod::analytical;
    return Status::success;
  });
}

// What number the plan has for another agent's GPU is not known.
std::optional<Expected> Engine::expect(const Request& request) const {
  if (request.on_gpu()) return {};
  return plan_.expect(request.bytes(), request.peer().is_here() ? 1 : 2);
}

void Engine::compare_with_plan(const Request& request) const {
  const bool here = request.peer().is_here();
  const auto expected = expect(request);
  if (!expected || request.seconds() < too_slow * expected->seconds) return;
  const bool scattered = request.bytes() / request.ranges() < most_bytes_in_call;
  say("host memory to host memory " + std::string(here ? "of this process" : "of another process") + ", " +
      mebibytes(request.bytes()) + ": " + std::to_string(request.seconds() * 1e3) + " ms, and the plan says " +
      std::to_string(expected->seconds * 1e3) + " by " + expected->way + "; " +
      (scattered ? std::to_string(request.ranges()) + " ranges, and the plan is for one"
                 : "pages that are touched for the first time, or a machine that is busy, take longer"));
}

}  // namespace waywiser_nixl
