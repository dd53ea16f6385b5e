#pragma once

#include <atomic>
#include <string>
#include <utility>

namespace waywiser {

// Whether anybody in this process has opened a library. Any thread may ask.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(std::string name) : name_(std::move(name)) {}

  // Cheap: the loader is asked only after it has loaded something, because it looks for an absent library in every
  // folder that it knows. A library that has been there once counts as loaded.
  bool is_loaded();
  // How often the loader was asked.
  int searches() const noexcept { return searches_; }

 private:
  const std::string name_;
  std::atomic<bool> found_{false};
  std::atomic<unsigned long long> loads_without_{0};  // of any library, when this one was not there
  std::atomic<int> searches_{0};
};

}  // namespace waywiser
