#include "waywiser/base/started_thread.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <system_error>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

thread_local volatile bool has_data = false;  // this library's variables of a thread are made together

constexpr std::chrono::seconds patience{10};

}  // namespace

void make_thread_data() {
  has_data = true;
  static_cast<void>(std::uncaught_exceptions());  // libstdc++'s
}

std::thread started_thread(std::function<void()> body) {
  std::promise<void> made;
  std::future<void> is_made = made.get_future();
  try {
    std::thread thread([made = std::move(made), body = std::move(body)]() mutable {
      make_thread_data();
      made.set_value();
      body();
    });
    is_made.wait_for(patience);
    return thread;
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::unavailable, std::string("no thread can be started: ") + error.what());
  }
}

}  // namespace waywiser
