#pragma once

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/c/waywiser.h"
#include "waywiser/comm/elements.hpp"
#include "waywiser/device/memory.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/group/taken_message.hpp"
#include "waywiser/group/window.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/offload/remote_gpu.hpp"

namespace waywiser {

// The arrays of a group's rank: finds the place of an address, and owns the memory of ww_gpu_allocate. Groups split
// from each other share it.
class CMemory {
 public:
  // `opened`: the devices exist already, CUDA is not opened.
  explicit CMemory(bool opened) : opened_(opened) {}

  Place place_of(const Group& group, const void* address) const;
  void* add(Memory memory);
  // Throws invalid_input.
  void free(void* address);

 private:
  const bool opened_;
  std::mutex mutex_;  // groups that threads use at once
  std::map<void*, Memory> given_;
};

}  // namespace waywiser

struct ww_group {
  waywiser::Group group;
  std::shared_ptr<waywiser::CMemory> memory;
};
struct ww_future {
  waywiser::MessageStatus status;  // of a receive, which tells it to the program
  ww_message_status* told = nullptr;
  waywiser::Future future;  // uses the status
};
struct ww_message {
  waywiser::TakenMessage taken;
  const ww_group* group;
};
struct ww_window {
  waywiser::Window window;
  const ww_group* group;
};
struct ww_prepared {
  waywiser::Prepared prepared;
};
struct ww_halo {
  waywiser::HaloExchange exchange;
  std::size_t cells;
  ww_group* group;
  std::string text;  // of ww_halo_explain
};
struct ww_remote {
  waywiser::RemoteGpu gpu;
  std::mutex mutex = {};  // of the next
  std::map<void*, waywiser::PinnedMemory> pinned = {};
};
struct ww_stream {
  std::shared_ptr<waywiser::Stream> stream;
};

namespace waywiser {

// Keeps the message of the exception being handled for ww_error_text(), and returns its code.
int note_error() noexcept;

template <typename Function>
int guarded(Function function) noexcept {
  try {
    function();
    return WW_OK;
  } catch (...) {
    return note_error();
  }
}

// Throws invalid_input for NULL.
template <typename Handle>
Handle& given(Handle* handle, const char* what) {
  if (handle == nullptr) throw Error(ErrorKind::invalid_input, std::string(what) + " is NULL");
  return *handle;
}

// Throw invalid_input for an unknown type, or for elements without an address.
Elements elements(const ww_group& group, void* data, std::size_t count, ww_type type);
ConstElements elements(const ww_group& group, const void* data, std::size_t count, ww_type type);
DataType data_type(ww_type type);
ReduceOp reduce_op(ww_op op);
std::vector<Exchange> exchanges(const ww_group& group, const ww_exchange* neighbors, std::size_t count);

// call(mode) returns the future of a call that moves data; the future goes to the caller if the mode asks for it.
template <typename Function>
int call_in_mode(ww_group* group, ww_mode mode, Function call) noexcept {
  return guarded([&] {
    given(group, "the group");
    if (mode.future != nullptr && mode.stream != nullptr)
      throw Error(ErrorKind::invalid_input, "a call has a future or a stream, not both");
    if (mode.stream != nullptr) {
      call(Mode::on(*mode.stream->stream));
    } else if (mode.future != nullptr) {
      auto begun = std::make_unique<ww_future>();
      begun->future = call(Mode::begin);
      *mode.future = begun.release();
    } else {
      call(Mode::wait);
    }
  });
}

}  // namespace waywiser
