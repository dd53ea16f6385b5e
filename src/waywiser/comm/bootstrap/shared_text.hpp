#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace waywiser {

// A text that many ranks say alike: copies of it are one text in memory.
class SharedText {
 public:
  SharedText() = default;
  template <std::convertible_to<std::string_view> Text>
  SharedText(const Text& text) {  // NOLINT(google-explicit-constructor): it stands for a std::string
    if (const std::string_view view(text); !view.empty()) text_ = std::make_shared<const std::string>(view);
  }

  const std::string& text() const noexcept {
    static const std::string nothing;
    return text_ ? *text_ : nothing;
  }
  operator const std::string&() const noexcept { return text(); }  // NOLINT(google-explicit-constructor): likewise
  bool empty() const noexcept { return text_ == nullptr; }
  friend bool operator==(const SharedText& one, const SharedText& other) noexcept {
    return one.text_ == other.text_ || one.text() == other.text();
  }
  friend std::string operator+(std::string before, const SharedText& text) { return std::move(before += text.text()); }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace waywiser
