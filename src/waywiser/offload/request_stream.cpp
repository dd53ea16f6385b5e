#include "waywiser/offload/request_stream.hpp"

#include <algorithm>

#include "waywiser/offload/serve_client.hpp"

namespace waywiser {
namespace {

// Without control characters but the ends of lines.
std::string lines_of(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n'; }, ' ');
  return text;
}

void check_names(std::string_view function, const requests::Numbers& numbers) {
  if (function.size() > longest_function_name ||
      std::ranges::any_of(numbers, [](const auto& number) { return number.first.size() > longest_number_name; }))
    throw Error(ErrorKind::invalid_input, "names of functions have at most " + std::to_string(longest_function_name) +
                                              " bytes, names of numbers " + std::to_string(longest_number_name));
}

void check_limits(const auto&) {}
void check_limits(const requests::Run& run) { check_names(run.function, run.numbers); }
void check_limits(const requests::LaunchKernel& launch) {
  if (launch.arguments.size() > most_kernel_arguments)
    throw Error(ErrorKind::invalid_input,
                "a kernel takes at most " + std::to_string(most_kernel_arguments) + " arguments");
  check_names(launch.kernel, {});
}

}  // namespace

std::vector<std::byte> fitting_bytes(const RemoteRequest& request) {
  std::visit([](const auto& asked) { check_limits(asked); }, request);
  std::vector<std::byte> bytes = bytes_of_request(request);
  if (bytes.size() > frame_room)
    throw Error(ErrorKind::invalid_input, "a call of " + std::to_string(bytes.size()) + " bytes; at most " +
                                              std::to_string(frame_room) + ": fewer arrays and numbers");
  return bytes;
}

void RequestStream::add(std::span<const std::byte> request) {
  if (used_ + request.size() > frame_room) flush();
  std::ranges::copy(request, frames_[filled_].begin() + 2 + static_cast<std::ptrdiff_t>(used_));
  used_ += request.size();
  if (going_.done()) send();
}

void RequestStream::send() {
  Frame& frame = frames_[filled_];
  frame[0] = static_cast<std::byte>(used_ & 0xff);
  frame[1] = static_cast<std::byte>(used_ >> 8);
  used_ = 0;
  filled_ = 1 - filled_;
  going_ = group_.send(std::span(std::as_const(frame)), worker_rank, request_tag, Mode::begin);
}

void RequestStream::flush() {
  going_.wait();
  if (used_ == 0) return;
  send();
  going_.wait();
}

RemoteReply RequestStream::receive_reply() {
  ReplyFrame frame{};
  group_.recv(std::span(frame), worker_rank, request_tag);
  RemoteReply reply = read_reply(frame);
  if (reply.details == 0) return reply;
  std::string details(reply.details, ' ');
  group_.recv(std::span(reinterpret_cast<std::uint8_t*>(details.data()), details.size()), worker_rank, array_tag);
  (reply.failure ? reply.failure->details : reply.text) = lines_of(details);
  return reply;
}

}  // namespace waywiser
