#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waywiser {

// A shared library opened at run time; never closed, because drivers do not survive that. Copies share it.
class DynamicLibrary {
 public:
  // Tries the names in order. Then loaded() says whether one opened, and why_not() gives the loader's message.
  explicit DynamicLibrary(const std::vector<std::string>& names);

  bool loaded() const noexcept { return handle_ != nullptr; }
  const std::string& name() const noexcept { return name_; }
  const std::string& why_not() const noexcept { return why_not_; }

  // nullptr if the symbol does not exist.
  template <typename Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;
  void* handle_ = nullptr;
  std::string name_;
  std::string why_not_;
};

}  // namespace waywiser
