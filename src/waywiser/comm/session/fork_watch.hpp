#pragma once

#include <mutex>
#include <vector>

namespace waywiser {

class Session;

// In a forked child, tells the sessions that they belong to the parent.
class ForkWatch {
 public:
  static void add(Session& session);
  static void remove(Session& session) noexcept;

 private:
  ForkWatch();
  static ForkWatch& of_this_process();
  static void before() { of_this_process().mutex_.lock(); }
  static void after_in_parent() { of_this_process().mutex_.unlock(); }
  static void after_in_child();

  std::mutex mutex_;
  std::vector<Session*> sessions_;
};

}  // namespace waywiser
