#include "waywiser/offload/worker.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/clear.hpp"
#include "waywiser/offload/array_head_wire.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_arrays = 1'000'000;

std::string names_with_builtins(std::vector<std::string> names) {
  for (const std::string_view name : builtin_functions()) names.emplace_back(name);
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The first line of a text; the others are its details.
RemoteFailure failure_of(ErrorKind kind, const std::string& text) {
  return {kind, text.substr(0, text.find('\n')), text.substr(std::min(text.find('\n'), text.size()), longest_details)};
}

[[noreturn]] void refuse_all_but_builtins() {
  throw Error(ErrorKind::unavailable, "this server was started with --builtins-only: it runs " +
                                          names_with_builtins({}) + ", and nothing else");
}

}  // namespace

std::string array_text(std::uint64_t number) { return "array " + std::to_string(number); }

RemoteWorker::RemoteWorker(WorkerChannel& channel, Setup setup)
    : channel_(channel),
      setup_(std::move(setup)),
      aside_(setup_.platform->open_stream(setup_.gpu)),
      client_memory_(*setup_.platform, setup_.gpu, setup_.limit),
      work_(*setup_.platform, setup_.gpu, setup_.patience),
      staging_(setup_.platform, setup_.gpu, piece_of_array, setup_.patience) {}

bool RemoteWorker::serve(std::span<const std::byte> frame) {
  RequestReader reader(frame);
  while (const auto request = reader.next()) {
    if (std::holds_alternative<requests::End>(*request)) return false;
    ++requests_;
    check_limits();
    std::visit([this](const auto& asked) { carry_out(asked); }, *request);
  }
  return true;
}

void RemoteWorker::pause() {
  attempt("events", [this] { work_.pause(); });
}

bool RemoteWorker::attempt(const std::string& what, const std::function<void()>& work) {
  if (failure_) return false;
  try {
    work();
    return true;
  } catch (const Error& error) {
    failure_ = failure_of(error.kind(), what + ": " + error.what());
  } catch (const std::bad_alloc&) {
    failure_ = failure_of(ErrorKind::device, what + ": the server has no host memory left");
  }
  return false;
}

void RemoteWorker::carry_out(const requests::Synchronize&) {
  answer("synchronize", [this](RemoteReply&) { work_.settle(); });
}

// Nobody reads what another client has left: the memory is filled with the client's bytes or with zeros.
void RemoteWorker::carry_out(const requests::Zeros& zeros) {
  const Seconds begin = now_seconds();
  attempt(array_text(zeros.array), [&] {
    check_new(zeros.array);
    HeldArray made = allocate(zeros.head);
    clear(*aside_, made.memory);
    add(zeros.array, std::move(made));
  });
  input_.add(begin, now_seconds());
}

void RemoteWorker::carry_out(const requests::NewArray& wanted) {
  const Seconds begin = now_seconds();
  HeldArray made;
  const bool is_made = attempt(array_text(wanted.array), [&] {
    check_new(wanted.array);
    made = allocate(wanted.head);
    staging_.prepare(road_, made.memory.bytes);
  });
  receive(is_made ? std::optional(made.memory) : std::nullopt, wanted.head.bytes());
  if (is_made) add(wanted.array, std::move(made));
  input_.add(begin, now_seconds());
}

void RemoteWorker::carry_out(const requests::Put& put) {
  const Seconds begin = now_seconds();
  std::optional<Region> into;
  attempt(array_text(put.array), [&] {
    work_.settle();
    const Region found = find(put);
    staging_.prepare(road_, found.bytes);
    into = found;
  });
  receive(into, put.bytes);
  input_.add(begin, now_seconds());
}

void RemoteWorker::receive(std::optional<Region> into, Bytes bytes) {
  if (!into) return throw_away(bytes);
  staging_.receive(into->place.is_gpu() ? road_ : DataRoad::direct, *into,
                   [this](Region part) { channel_.receive(part); });
}

void RemoteWorker::throw_away(Bytes bytes) {
  std::vector<std::byte> room(std::min(bytes, piece_of_array));
  for (Bytes at = 0; at < bytes; at += piece_of_array)
    channel_.receive({room.data(), std::min(piece_of_array, bytes - at), host(0)});
}

void RemoteWorker::carry_out(const requests::Get& get) {
  HeldArray array;
  const bool is_there = attempt(array_text(get.number), [&] {
    work_.settle();
    array = find(get.number);
    staging_.prepare(road_, array.memory.bytes);
  });
  const Seconds begin = now_seconds();
  RemoteReply told;
  if (is_there) told.head = array.head;
  reply(std::move(told));
  if (is_there) staging_.send(road_, array.memory, [this](ConstRegion part) { channel_.send(part); });
  output_.add(begin, now_seconds());
}

void RemoteWorker::carry_out(const requests::Free& free) {
  const auto array = arrays_.find(free.number);
  if (array == arrays_.end()) return static_cast<void>(work_.forget(free.number) || forget_memory(free.number));
  used_ -= array->second.memory.bytes;
  if (work_.is_under_way()) leaving_ += array->second.memory.bytes;  // the work keeps what it uses
  arrays_.erase(array);
}

Bytes RemoteWorker::taken() {
  if (!work_.is_under_way()) leaving_ = 0;
  return used_ + leaving_;
}

void RemoteWorker::carry_out(const requests::Run& run) {
  attempt(run.function, [&] {
    check_new(run.result);
    add(run.result, result_of(run));
  });
}

ClientKernels& RemoteWorker::kernels() {
  if (setup_.builtins_only) refuse_all_but_builtins();
  if (!kernels_) kernels_.emplace(setup_.kernels(*setup_.platform, setup_.gpu));
  return *kernels_;
}

void RemoteWorker::carry_out(const requests::LoadCode& load) {
  std::string code(load.bytes, ' ');
  channel_.receive_text({reinterpret_cast<std::byte*>(code.data()), code.size(), host(0)});
  answer("kernels", [&](RemoteReply&) { kernels().add(load.code, std::move(code)); });
}

void RemoteWorker::carry_out(const requests::LaunchKernel& launch) {
  attempt(launch.kernel, [&] {
    kernel_arguments_ = launch.arguments;
    std::vector<GpuWork::Kept> keeps;
    keeps.reserve(kernel_arguments_.size());
    for (KernelArgument& argument : kernel_arguments_) {
      if (argument.kind != KernelArgument::Kind::array) continue;
      const HeldArray& array = find(argument.bits);
      keeps.push_back(array.owner);
      argument.bits = reinterpret_cast<std::uintptr_t>(array.memory.data);
    }
    ClientKernels& kernels_of_client = kernels();
    work_.begin(launch.kernel, now_seconds(), keeps, [&](Stream& stream) {
      kernels_of_client.launch(stream, launch.code, launch.kernel, launch.shape, kernel_arguments_);
    });
  });
}

void RemoteWorker::copy_now(Region to, ConstRegion from) {
  aside_->copy(to, from);
  aside_->synchronize(Deadline::in(setup_.patience));
}

HeldArray RemoteWorker::result_of(const requests::Run& run) {
  std::vector<HeldArray> arrays;
  for (const std::uint64_t number : run.arrays) arrays.push_back(find(number));
  const Seconds begin = now_seconds();
  if (is_builtin(run.function)) {
    HeldArray result = allocate(check_builtin(run, arrays));
    std::vector<GpuWork::Kept> keeps{result.owner};
    for (const HeldArray& each : arrays) keeps.push_back(each.owner);
    work_.begin(run.function, begin, keeps,
                [&](Stream& stream) { enqueue_builtin(stream, run, arrays, result.memory); });
    return result;
  }
  if (setup_.builtins_only) refuse_all_but_builtins();
  const ServerFunctions& functions = setup_.functions;
  if (std::ranges::find(functions.names, run.function) == functions.names.end())
    throw Error(ErrorKind::invalid_input, "this server has no function " + quoted(run.function, 64) + "; it has " +
                                              names_with_builtins(functions.names));
  work_.settle_all();
  FunctionResult result = functions.call(run.function, arrays, run.numbers);
  HeldArray made = on_gpu(std::move(result.array));
  work_.add(begin, now_seconds(), result.seconds);
  return made;
}

HeldArray RemoteWorker::on_gpu(HeldArray result) {
  check(result.head);
  if (result.memory.place.is_gpu()) {
    if (taken() + result.memory.bytes > setup_.limit)
      throw Error(ErrorKind::device, "the result has " + std::to_string(result.memory.bytes) +
                                         " bytes, above this server's limit of " + std::to_string(setup_.limit));
    return result;
  }
  HeldArray copy = allocate(result.head);
  if (copy.memory.bytes != 0) copy_now(copy.memory, result.memory);
  return copy;
}

HeldArray RemoteWorker::allocate(ArrayHead head) {
  const Bytes bytes = head.bytes();
  if (bytes > setup_.limit - std::min(setup_.limit, taken())) work_.settle_all();
  if (bytes > setup_.limit - std::min(setup_.limit, used_))
    throw Error(ErrorKind::device, std::to_string(bytes) + " bytes more than the " + std::to_string(used_) +
                                       " in use are above this server's limit of " + std::to_string(setup_.limit));
  const auto memory =
      std::make_shared<Memory>(setup_.platform->allocate(setup_.gpu, std::max<Bytes>(bytes, 1), Allocation::gpu));
  return {std::move(head), memory->region().slice(0, bytes), memory};
}

void RemoteWorker::reply(RemoteReply told) {
  told.failure = std::exchange(failure_, {});
  told.used = used_;
  told.requests = requests_;
  std::string details = told.failure ? std::move(told.failure->details) : std::move(told.text);
  told.details = static_cast<std::uint32_t>(details.size());
  told.times = {input_, work_.compute(), work_.device(), output_, now_seconds()};
  channel_.reply(frame_of(told));
  if (!details.empty())
    channel_.send_text({reinterpret_cast<const std::byte*>(details.data()), details.size(), host(0)});
  attempt("times", [this] { work_.collect(); });  // while the client goes on
}

void RemoteWorker::answer(const std::string& what, const std::function<void(RemoteReply& told)>& work) {
  RemoteReply told;
  attempt(what, [&] { work(told); });
  reply(std::move(told));
}

void RemoteWorker::add(std::uint64_t number, HeldArray array) {
  used_ += array.memory.bytes;
  arrays_.emplace(number, std::move(array));
}

void RemoteWorker::check_new(std::uint64_t number) const {
  if (arrays_.contains(number) || arrays_.size() >= most_arrays)
    throw Error(ErrorKind::invalid_input,
                "there is an " + array_text(number) + " already, or there are " + std::to_string(most_arrays));
}

const HeldArray& RemoteWorker::find(std::uint64_t number) const {
  const auto found = arrays_.find(number);
  if (found == arrays_.end()) throw Error(ErrorKind::invalid_input, "there is no " + array_text(number));
  return found->second;
}

Region RemoteWorker::find(const requests::PartOfArray& part) const {
  return find(part.array).memory.slice(part.offset, part.bytes);
}

}  // namespace waywiser
